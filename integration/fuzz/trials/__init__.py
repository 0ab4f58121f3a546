"""Trials: seeded rounds of other programs' changes between rewrites, checked by other readers.

``python -m integration.fuzz.trials`` runs them and prints a table, and
``integration/test_trials.py`` runs a few rounds.
"""

from collections.abc import Callable
from random import Random

from integration.fuzz.trials import deletes, deltars, evolution, folders, size
from integration.fuzz.trials.interruptions import clocks, kills, limits, threads
from integration.fuzz.trials.tally import Tally
from integration.migration.tables import Lakes

Trial = Callable[[Lakes, Random, Tally, float], None]

TRIALS: dict[str, Trial] = {
    "files": size.files,
    "columns": size.columns,
    "cells": size.cells,
    "writers": folders.writers,
    "evolution": evolution.evolution,
    "equality": deletes.equality,
    "vectors": deletes.vectors,
    "deltars": deltars.deltars,
    "kills": kills.kills,
    "limits": limits.limits,
    "clocks": clocks.clocks,
    "threads": threads.threads,
}
