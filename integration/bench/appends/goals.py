"""Evaluation of tables that aged: a table for people, and whether the goals are reached."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from integration.bench.appends.ageing import Aged, Look
from integration.bench.contenders import OURS
from integration.bench.results import Goal, markdown


@dataclass(frozen=True)
class Asked:
    """Goals of one workload.

    Attributes:
        by_file: Rows in files, relative to a fresh fit, on average.
        by_row_group: Rows in row groups, relative to a fresh fit, on average.
        written: Rows written per row appended.
        worst: Any of these relative to a fresh fit.
    """

    by_file: float
    by_row_group: float
    written: float = 4.2
    worst: float | None = None


ASKED = {
    "appends": Asked(1.40, 1.20, worst=1.6),
    "appends-deletes": Asked(1.40, 1.20, worst=1.6),
    "appends-time": Asked(1.10, 1.05, written=3.5),
    "appends-skew": Asked(1.45, 1.40),
    "appends-drift": Asked(1.45, 1.40),
}
MEASURES = ("by_file", "by_row_group")
HEADS = (
    "workload", "format", "who", "appends", "by file", "worst", "by row group", "worst",
    "written", "s a call", "files", "x fresh", "row groups",
)  # fmt: skip
EXPLAINED = (
    "by file, by row group: rows that a filter cannot exclude by min and max of it, relative to a "
    "fresh fit of the same rows, mean of some moments, and worst; written: rows that the "
    "maintenance wrote per row appended; s a call: median of the maintenance; files, row groups: "
    "in the end, and files relative to the fresh fit's."
)


def table(found: Aged) -> tuple[str, str, int]:
    """Return workload, format and number of appends."""
    return found.workload, found.format, found.appends


def mean(found: Aged, what: str) -> float:
    """Return the mean of a measure of the looks."""
    return statistics.fmean(getattr(look, what) for look in found.looks)


def worst(found: Aged, what: str) -> float:
    """Return the highest value of a measure of the looks."""
    return max(getattr(look, what) for look in found.looks)


def aged_table(every: Iterable[Aged]) -> str:
    """Return all results as a Markdown table."""
    return markdown(HEADS, map(row, every))


def row(found: Aged) -> list[str]:
    """Return one contender's row of the table; see :data:`HEADS`."""
    last = found.looks[-1]
    line = [found.workload, found.format, found.contender, f"{found.appends}"]
    line += [f"{of(found, what):.2f}" for what in MEASURES for of in (mean, worst)]
    line += [f"{last.written:.1f}", f"{statistics.median(found.seconds):.1f}"]
    return [*line, f"{last.files}", f"{last.files / last.fresh_files:.2f}", f"{last.row_groups}"]


def course(found: Aged) -> str:
    """Return the looks of one contender as one line of text."""
    looks = "; ".join(map(_said, found.looks))
    return f"{found.workload}, {found.format}, {found.contender}: {looks}"


def _said(look: Look) -> str:
    files, groups = (f"{getattr(look, what):.2f}" for what in MEASURES)
    return f"after {look.appends}: {files} x by file, {groups} x by row group"


def goals(every: Sequence[Aged]) -> Iterator[Goal]:
    """Compare zadapter's results with its goals; goals without results are left out."""
    for ours in every:
        if ours.contender != OURS:
            continue
        asked, label = ASKED[ours.workload], ", ".join(map(str, table(ours)))
        means, worsts = ([of(ours, what) for what in MEASURES] for of in (mean, worst))
        most = (asked.by_file, asked.by_row_group)
        yield _pair(f"{label}: x fresh by file / by row group, mean", most, means)
        if asked.worst is not None:
            yield _pair(f"{label}: worst of these", (asked.worst, asked.worst), worsts)
        written, most_written = ours.looks[-1].written, asked.written
        reached = written <= most_written
        what = f"{label}: rows written a row appended"
        yield Goal(what, f"<= {most_written}", f"{written:.1f}", reached)
        yield from _against_peers(label, ours, every)


def _pair(what: str, most: tuple[float, float], found: Sequence[float]) -> Goal:
    asked = " / ".join(f"<= {each:.2f}" for each in most)
    reached = all(value <= limit for value, limit in zip(found, most, strict=True))
    return Goal(what, asked, " / ".join(f"{each:.2f}" for each in found), reached)


def _against_peers(label: str, ours: Aged, every: Sequence[Aged]) -> Iterator[Goal]:
    """Name the others that write no more rows than zadapter, and have filters read no more."""
    others = [each for each in every if each is not ours and table(each) == table(ours)]
    better = [
        f"{each.contender} ({what.replace('_', ' ')})"
        for each, what in product(others, MEASURES)
        if _below(_point(each, what), _point(ours, what))
    ]
    if others:
        what = f"{label}: others that write and have read no more"
        yield Goal(what, "none", ", ".join(better) or "none", not better)


def _point(found: Aged, what: str) -> tuple[float, float]:
    """Return a contender's point of the curve: rows written, and rows to read."""
    return found.looks[-1].written, mean(found, what)


def _below(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Tell whether a point is as good as another in both, and better in one."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
