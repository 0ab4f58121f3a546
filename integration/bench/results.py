"""Evaluation of a run: tables for people, and whether the goals are reached."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from integration.bench.contenders import CHECKED, COPY, OURS, SORT, TUNED
from integration.bench.measures import optimum
from integration.bench.race import Result
from integration.bench.tables import synthetic
from integration.bench.tables.workloads import WORKLOADS

PEERS = {
    "delta": ("Delta ZORDER", "Delta liquid"),
    "iceberg": ("Iceberg zorder", "Iceberg hilbert"),
    "parquet": (),
}
"""The formats' own methods of clustering by several columns."""
RAW_BITS = "delta-rs z_order"
SKEWED = ("zipf", "hot")
TO_COPY = 1.10
"""Goal: seconds of a rewrite, relative to a plain copy."""
SKIPPED = 0.8
"""Goal: share of rows that filters skip on skewed tables."""
OF_OPTIMUM = 1.15
"""Goal: files that boxes touch in uniform data, relative to the best grid."""
NO_PEERS = {"input", COPY, OURS, CHECKED}


@dataclass(frozen=True)
class Goal:
    """Goal and its result, both as text."""

    what: str
    asked: str
    found: str
    reached: bool


Races = dict[tuple[str, str], dict[str, Result]]
"""Results by workload and format, then by contender."""


def seconds(result: Result) -> float:
    """Return the median seconds of a contender's rounds."""
    return statistics.median(effort.seconds for effort in result.efforts)


def to_copy(result: Result, race: Mapping[str, Result]) -> float | None:
    """Return the time relative to a plain copy; None: one of them was not timed."""
    return seconds(result) / seconds(race[COPY]) if result.efforts and COPY in race else None


def row(result: Result, race: dict[str, Result]) -> list[str]:
    """Return one contender's row of the table; see :data:`HEADS`."""
    shares = result.shares
    line = [result.workload, result.format, result.contender]
    if result.efforts:
        efforts, ratio = result.efforts, to_copy(result, race)
        line += [_range(result), "" if ratio is None else f"{ratio:.2f}"]
        passes = max(effort.rows_read for effort in efforts) / result.rows
        spilled = max(effort.bytes_spilled for effort in efforts)
        heap = max(effort.heap for effort in efforts)
        in_spark = [f"{passes:.2f}", f"{spilled >> 20}", f"{heap >> 20}"]
        line += in_spark if passes else [""] * 3  # metrics cover contenders that read by Spark only
    else:
        line += [""] * 5
    before = race["input"].shares.size
    line += [f"{shares.files}", f"{shares.row_groups}", f"{shares.size / before:.3f}"]
    line += [f"{each.mean():.3f}" for each in (shares.in_files, shares.in_row_groups)]
    return [*line, f"{result.spark_seconds:.2f}", f"{result.duckdb_seconds:.2f}"]


def _range(result: Result) -> str:
    each = [effort.seconds for effort in result.efforts]
    ends = f" ({min(each):.1f} to {max(each):.1f})" if len(each) > 1 else ""
    return f"{seconds(result):.1f}{ends}"


HEADS = (
    "workload", "format", "who", "s", "x copy", "passes", "spilled MB", "heap MB", "files",
    "row groups", "x bytes", "in files", "in row groups", "Spark s", "DuckDB s",
)  # fmt: skip
EXPLAINED = (
    "s: median of the rounds (and range); passes, spilled, heap: most of any round, rows read / "
    "rows, MB put on disk, the JVM's peak, where the contender runs in it; x bytes: of the "
    "input; in files, in row groups: mean share of the rows that a filter cannot exclude by "
    "min and max of it, pages not counted; Spark s, DuckDB s: some of the filters as queries. In a "
    "first round some pay for classes that are loaded. Each filter by itself is in the JSON that "
    "--save writes; Spark's bytes_read there leave out vectored reads."
)


def goals(found: Races) -> Iterator[Goal]:
    """Compare results with zadapter's goals; goals without results are left out."""
    for format_ in ("delta", "iceberg", "parquet"):
        mine = {key: race for key, race in found.items() if key[1] == format_ and OURS in race}
        timed = {key[0]: race for key, race in mine.items() if key[0].startswith("lineitem")}
        for other, most in (
            (COPY, TO_COPY),
            *((peer, 0.5) for peer in PEERS[format_]),
            (SORT, 1.0),
        ):
            ratios = {
                name: seconds(race[OURS]) / seconds(race[other])
                for name, race in timed.items()
                if other in race
            }
            yield from _at_most(f"{format_}: seconds, x {other}", most, ratios)
        yield from _skipping(format_, mine)
        yield from _to_optimum(format_, mine)
    yield from _of_zadapter(found)


def _skipping(format_: str, mine: Races) -> Iterator[Goal]:
    """Compare the rows to read with those of the best peer on each workload."""
    files = _against(mine, "in_files", tuned=True)
    yield from _mean(f"{format_}: rows in files, x best peer", 0.8, files)
    yield from _at_most(f"{format_}: rows in files, x best peer, worst", 1.0, files)
    alone = _against(mine, "in_row_groups", tuned=False)
    yield from _mean(f"{format_}: rows in row groups, x best peer as it writes them", 0.4, alone)
    among = {key: race for key, race in mine.items() if any(who.endswith(TUNED) for who in race)}
    tuned = _against(among, "in_row_groups", tuned=True)
    yield from _mean(f"{format_}: rows in row groups, x best peer with as many too", 0.4, tuned)


def _against(mine: Races, what: str, *, tuned: bool) -> dict[str, float]:
    """Return zadapter's mean share of rows relative to the best peer's, by workload."""
    ratios = {}
    for (workload, _), race in mine.items():
        names = race.keys() - NO_PEERS
        peers = [race[name] for name in names if tuned or not name.endswith(TUNED)]
        if peers:
            best = min(getattr(peer.shares, what).mean() for peer in peers)
            ratios[workload] = float(getattr(race[OURS].shares, what).mean() / best)
    return ratios


def _mean(what: str, most: float, ratios: dict[str, float]) -> Iterator[Goal]:
    if ratios:
        mean = statistics.geometric_mean(ratios.values())
        yield Goal(f"{what}, geometric mean", f"<= {most}", f"{mean:.2f}", mean <= most)


def _to_optimum(format_: str, mine: Races) -> Iterator[Goal]:
    """Compare the files that boxes touch with the best grid, per workload and on average.

    The grid has as many cells as files were requested, not as were written.
    """
    ratios = {}
    for (workload, _), race in mine.items():
        if workload.startswith("uniform"):
            shares, columns = race[OURS].shares, race[OURS].columns
            sides = [synthetic.side(number, columns) for number in range(synthetic.BOXES)]
            best = optimum.touched(WORKLOADS[workload].files or shares.files, columns, sides)
            ratios[f"{format_}, {workload}: files"] = float(shares.touched.mean()) / best
    if len(ratios) > 1:
        ratios[f"{format_}, uniform: files, geometric mean"] = statistics.geometric_mean(
            ratios.values()
        )
    for what, ratio in ratios.items():
        yield Goal(f"{what}, x best grid", f"<= {OF_OPTIMUM}", f"{ratio:.2f}", ratio <= OF_OPTIMUM)


def _of_zadapter(found: Races) -> Iterator[Goal]:
    ours = {key: race for key, race in found.items() if OURS in race}
    for (workload, format_), race in ours.items():
        label, shares = f"{format_}, {workload}", race[OURS].shares
        if workload in SKEWED:
            skipped = 1 - shares.in_files.mean()
            said = f"{skipped:.0%}"
            if RAW_BITS in race:
                said += f"; by raw bits {1 - race[RAW_BITS].shares.in_files.mean():.0%}"
            yield Goal(f"{label}: skipped", f">= {SKIPPED:.0%}", said, skipped >= SKIPPED)
    bytes_ = {
        f"{key[1]}, {key[0]}": race[OURS].shares.size / race["input"].shares.size
        for key, race in ours.items()
    }
    yield from _at_most("bytes written, x input", 1.0, bytes_)
    errors = {
        f"{key[1]}, {key[0]}": abs(race[OURS].predicted - race[OURS].found)
        for key, race in ours.items()
    }
    yield from _at_most("share of rows predicted, off by", 0.05, errors, ".3f")


def _at_most(what: str, most: float, values: dict[str, float], how: str = ".2f") -> Iterator[Goal]:
    """Yield the largest of *values*, with its name."""
    if values:
        where = max(values, key=values.__getitem__)
        found = values[where]
        yield Goal(what, f"<= {most}", f"{found:{how}} ({where})", found <= most)


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    every = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in every) + "\n"
