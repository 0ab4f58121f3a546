"""Rounds of a trial, each drawn from a seed of its own."""

import time
from random import Random

from integration.migration.tables import Lakes
from integration.trials import TRIALS
from integration.trials.tally import Tally


def run(name: str, lakes: Lakes, *, rounds: int, seed: int, scale: float = 1.0) -> Tally:
    """Run so many rounds; what one of them raises is a failure, and the others go on.

    Args:
        name: Of the trial.
        lakes: Where tables are made.
        rounds: How many.
        seed: With a round's number it draws all of it.
        scale: Of the trials of size.
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
