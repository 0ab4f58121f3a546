"""Rounds of a trial, each with its own seed."""

import time
from random import Random

from integration.fuzz.trials import TRIALS
from integration.fuzz.trials.tally import Tally
from integration.migration.tables import Lakes


def run(name: str, lakes: Lakes, *, rounds: int, seed: int, scale: float = 1.0) -> Tally:
    """Run rounds; an exception is recorded as a failure, and the other rounds go on.

    Args:
        name: Name of the trial.
        lakes: Where tables are made.
        rounds: Number of rounds.
        seed: Seed, combined with the number of the round.
        scale: Scale of the trials of size.
    """
    tally, start = Tally(), time.perf_counter()
    for number in range(rounds):
        draw = Random(f"{name} {seed} {number}")
        try:
            TRIALS[name](lakes, draw, tally, scale)
        except Exception as error:  # noqa: BLE001 - it is what the trial looks for
            text = str(error).strip()[:1_000]
            tally.failures.append(f"round {number}: {type(error).__name__}: {text}")
        tally.rounds += 1
    tally.seconds = time.perf_counter() - start
    return tally
