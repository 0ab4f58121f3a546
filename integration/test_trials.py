"""One small round of each trial; ``python -m integration.fuzz.trials`` runs more."""

from itertools import chain

from integration.fuzz.trials import TRIALS
from integration.fuzz.trials.rounds import run
from integration.migration.tables import Lakes
from tests.kit.variants import slow

OF = {"iceberg": ["equality"], "parquet": ["writers"]}
"""Trials by the format that they are run with."""
SLOW = {
    "delta": ["deltars"],
    "iceberg": ["evolution", "vectors"],
    "parquet": ["files", "columns", "cells"],
    "migration": ["kills", "limits", "clocks", "threads"],
}
"""The same of those that are slow."""
SMALL = 0.01


def pytest_generate_tests(metafunc):
    """Parametrize with the trials of the selected formats."""
    if "name" in metafunc.fixturenames:
        formats = metafunc.config.getoption("--format")
        names, others = (
            [name for each in formats for name in of.get(each, ())] for of in (OF, SLOW)
        )
        metafunc.parametrize("name", [*names, *slow(*others)])


def test_every_trial_is_run():
    """Every trial belongs to a format."""
    assert sorted(chain(*OF.values(), *SLOW.values())) == sorted(TRIALS)


def test_no_row_is_lost_doubled_or_changed(spark, catalog, tmp_path, name):
    """Independent readers compare each row, and nothing fails."""
    found = run(name, Lakes(spark, catalog, tmp_path), rounds=1, seed=3, scale=SMALL)

    assert found.failures == []
    assert found.is_clean()
    assert found.compared
