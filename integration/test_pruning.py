"""A few trials of ``integration.fuzz.pruning``: whoever prunes finds what a scan finds."""

import pytest

from integration.fuzz.pruning.trials import SESSION, WRITERS, Trial
from integration.kit.lakes import settings
from integration.migration.tables import Lakes
from tests.kit.variants import slow


class Trials:
    """What all formats have in common."""

    format: str

    @pytest.fixture(scope="class")
    def lakes(self, spark, catalog, tmp_path_factory):
        return Lakes(spark, catalog, tmp_path_factory.mktemp("pruned"))

    @pytest.mark.parametrize("writer", [1, *slow(0)])
    def test_conditions_find_the_rows_that_a_full_scan_finds(self, lakes, writer):
        """In files by Spark and by others, before and after an optimize."""
        trial = Trial(lakes, self.format, WRITERS[self.format][writer], 1, rows=300, conditions=12)

        with settings(lakes.spark, SESSION):
            found = trial.run()

        assert found.wrong == []
        assert all(found.asked[f"{when}, files"] > 8 for when in ("before", "after"))
        assert sum(found.pruned["after, files"]) > 0


class TestDelta(Trials):
    """Delta."""

    format = "delta"


class TestIceberg(Trials):
    """Iceberg."""

    format = "iceberg"


class TestParquet(Trials):
    """Plain Parquet."""

    format = "parquet"
