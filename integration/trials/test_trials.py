"""One small round of each trial; ``python -m integration.trials`` runs more."""

from itertools import chain

from integration.migration.tables import Lakes
from integration.trials import TRIALS
from integration.trials.rounds import run
from tests.kit.variants import slow

OF = {
    "delta": ["deltars"],
    "iceberg": ["equality", "evolution", "vectors"],
    "parquet": ["writers", "files", "columns", "cells"],
    "migration": ["kills"],
    "journeys": [],
}
"""Trials by the format that they are run with; all but the first are slow."""
SMALL = 0.01


def pytest_generate_tests(metafunc):
    """Parametrize with the trials of the selected formats."""
    if "name" in metafunc.fixturenames:
        for_formats = [OF[each] for each in metafunc.config.getoption("--format")]
        first, others = [names[:1] for names in for_formats], [names[1:] for names in for_formats]
        metafunc.parametrize("name", [*chain(*first), *slow(*chain(*others))])


def test_every_trial_is_run():
    """Every trial belongs to a format."""
    assert sorted(name for names in OF.values() for name in names) == sorted(TRIALS)


def test_no_row_is_lost_doubled_or_changed(spark, catalog, tmp_path, name):
    """Independent readers compare each row, and nothing fails."""
    found = run(name, Lakes(spark, catalog, tmp_path), rounds=1, seed=3, scale=SMALL)

    assert found.failures == []
    assert found.is_clean()
    assert found.compared
