"""Growth of time with rows, and speed-up by cores."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from integration.bench.contenders import COPY, OURS
from integration.bench.race import Track, race
from integration.bench.results import TO_COPY, Goal, seconds
from integration.bench.session import session
from integration.bench.tables.workloads import ROWS, WORKLOADS

ROWS_A_FILE = 500_000
SLOPE = 1.05
"""Goal: slope of log time over log rows."""
SPEED_UP = 1.7
"""Goal: speed-up by a second core."""


@dataclass(frozen=True)
class Point:
    """Seconds of a plain copy and of zadapter, for a number of rows and cores."""

    rows: int
    cores: int
    copy: float
    ours: float
    spilled: int
    heap: int


def scaling(track: Track, format_: str, step: Callable[[str], None]) -> list[Point]:
    """Rewrite lineitem at a tenth of the scale, at the scale, and at ten times it.

    The middle one is also rewritten on one core. Each has its own session, and files of equal size.

    Args:
        track: Parameters of the run; its session is stopped.
        format_: Format of the tables.
        step: Called with a description before each rewrite.
    """
    points = []
    for times, cores in ((0.1, 2), (1, 2), (10, 2), (1, 1)):
        track.spark.stop()
        scale = track.scale * times
        files = max(1, round(ROWS * scale / ROWS_A_FILE))
        track = replace(track, spark=session(track.folder, cores), asked=1, only=(COPY, OURS))
        at = replace(track, scale=scale, files=files)
        step(f"{cores} cores, scale {scale:g}")
        results, _ = race(at, WORKLOADS["lineitem"], format_, step, step)
        found = {result.contender: result for result in results}
        efforts = found[OURS].efforts
        points.append(
            Point(
                rows=found[OURS].rows,
                cores=cores,
                copy=seconds(found[COPY]),
                ours=seconds(found[OURS]),
                spilled=max(effort.bytes_spilled for effort in efforts),
                heap=max(effort.heap for effort in efforts),
            )
        )
    return points


def goals(points: list[Point]) -> Iterator[Goal]:
    """Compare the points with the goals."""
    two = sorted((point for point in points if point.cores > 1), key=lambda point: point.rows)
    for at in two:
        ratio = at.ours / at.copy
        said = f"{ratio:.2f} ({at.ours:.1f} s / {at.copy:.1f} s); "
        said += f"spilled {at.spilled / 1e6:.0f} MB, heap {at.heap / 1e6:.0f} MB"
        yield Goal(f"{at.rows:,} rows: seconds, x copy", f"<= {TO_COPY}", said, ratio <= TO_COPY)
    for less, more in itertools.pairwise(two):
        slope = math.log(more.ours / less.ours) / math.log(more.rows / less.rows)
        what = f"slope of time, {less.rows:,} to {more.rows:,} rows"
        yield Goal(what, f"<= {SLOPE}", f"{slope:.2f}", slope <= SLOPE)
    for one in points:
        for other in two:
            if one.cores == 1 and one.rows == other.rows:
                gain = one.ours / other.ours
                said = f"{gain:.2f}; the copy {one.copy / other.copy:.2f}"
                yield Goal("1 -> 2 cores", f">= {SPEED_UP}", said, gain >= SPEED_UP)
