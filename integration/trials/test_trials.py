"""One small round of each trial; ``python -m integration.trials`` runs more."""

from integration.migration.tables import Lakes
from integration.trials import TRIALS
from integration.trials.rounds import run

OF = {
    "delta": ["deltars"],
    "iceberg": ["evolution", "equality", "vectors"],
    "parquet": ["writers", "files", "columns", "cells"],
    "migration": ["kills"],
    "journeys": [],
}
"""Trials by the format that they are run with."""
SMALL = 0.01


def pytest_generate_tests(metafunc):
    """Parametrize with the trials of the selected formats."""
    if "name" in metafunc.fixturenames:
        formats = metafunc.config.getoption("--format")
        metafunc.parametrize("name", [name for each in formats for name in OF[each]])


def test_every_trial_is_run():
    """Every trial belongs to a format."""
    assert sorted(name for names in OF.values() for name in names) == sorted(TRIALS)


def test_no_row_is_lost_doubled_or_changed(spark, catalog, tmp_path, name):
    """Independent readers compare each row, and nothing fails."""
    found = run(name, Lakes(spark, catalog, tmp_path), rounds=1, seed=3, scale=SMALL)

    assert found.failures == []
    assert found.is_clean()
    assert found.compared
