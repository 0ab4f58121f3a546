"""One other tool beside zadapter: ``python -m integration.bench.compare --with zorder``.

Prints the figures of a page of ``zadapter/docs/comparison``: what filters read before and after a
rewrite of lineitem, its cost, and what keeps the table clustered while rows are appended.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from integration.bench.appends import goals
from integration.bench.appends.ageing import Aged, Course
from integration.bench.appends.rows import AGEING
from integration.bench.contenders import DEFAULTS, OURS, TUNED
from integration.bench.race import Result, Track, race
from integration.bench.results import markdown, seconds
from integration.bench.session import CORES, session
from integration.bench.tables.workloads import WORKLOADS
from zadapter.backend.plugins import formats

WORKLOAD = "lineitem"
FILES, ASKED, APPENDS = 12, 20, 4
"""Files to write, queries by DuckDB, and appends of a tenth of the table."""


@dataclass(frozen=True)
class Rival:
    """Another tool.

    Attributes:
        format: Format of its tables.
        rewrites: Contenders that are its rewrites.
        keepers: Contenders that keep a table clustered by it.
    """

    format: str
    rewrites: Sequence[str]
    keepers: Sequence[str]


RIVALS = {
    "zorder": Rival(
        "delta",
        ("Delta ZORDER" + DEFAULTS, "Delta ZORDER", "Delta ZORDER" + TUNED),
        ("Delta ZORDER",),
    ),
    "liquid": Rival("delta", ("Delta liquid", "Delta liquid" + TUNED), ("Delta liquid",)),
    "delta-rs": Rival("delta", ("delta-rs z_order",), ("delta-rs z_order",)),
    "rewrite-data-files": Rival(
        "iceberg",
        ("Iceberg zorder" + DEFAULTS, "Iceberg sort", "Iceberg zorder", "Iceberg zorder" + TUNED),
        ("Iceberg zorder", "Iceberg binpack"),
    ),
}
"""The tools, by the option ``--with``."""
REWRITTEN = (
    "", "files", "row groups", "rows in files", "rows in row groups", "DuckDB s", "rewrite s",
    "core s", "x bytes",
)  # fmt: skip
KEPT = (
    "",
    "rows written a row appended",
    "s a call",
    "in files, x fresh",
    "in row groups, x fresh",
)


def main() -> None:
    """Compare on a new table, and print both tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with", dest="rival", choices=RIVALS, required=True)
    parser.add_argument("--scale", type=float, default=0.1, help="1: 6 million rows")
    parser.add_argument("--repeat", type=int, default=3, help="rounds, in drawn orders")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="zadapter-compare-") as made:
        track = Track(session(Path(made)), Path(made), asked.scale, FILES, asked.repeat, ASKED)
        compare(track, RIVALS[asked.rival], partial(print, flush=True))
        track.spark.stop()


def compare(track: Track, rival: Rival, tell: Callable[[str], None]) -> None:
    """Let zadapter and another tool rewrite a table, and then maintain one.

    Raises:
        RuntimeError: The other tool has failed.
    """
    rewriting = replace(track, only=(*rival.rewrites, OURS))
    said = partial(print, file=sys.stderr)
    results, failed = race(rewriting, WORKLOADS[WORKLOAD], rival.format, _ignore, said)
    tell(f"{used(track, rival.format)}; {results[0].rows:,} rows of {WORKLOAD}\n")
    order = ["input", *rival.rewrites, *rival.keepers, OURS]
    results.sort(key=lambda each: order.index(each.contender))
    tell(markdown(REWRITTEN, [row(each, results[0]) for each in results]))
    keeping = replace(track, only=(*rival.keepers, OURS))
    kept = list(Course(keeping, AGEING["appends"], rival.format, APPENDS).run(failed))
    kept.sort(key=lambda each: order.index(each.contender))
    tell(markdown(KEPT, map(kept_row, kept)))
    if failed:
        raise RuntimeError(f"no figures of {failed}")


def used(track: Track, format_: str) -> str:
    """Return the releases and the machine that figures are of."""
    library = formats()[format_].library
    jars = "" if library is None else f", {format_} {library.packages[0].rpartition(':')[2]}"
    rs = f", deltalake {version('deltalake')}" if format_ == "delta" else ""
    return f"Spark {track.spark.version}{jars}{rs}, DuckDB {version('duckdb')}, {CORES} cores"


def row(result: Result, before: Result) -> list[str]:
    """Return one line of the first table, see :data:`REWRITTEN`."""
    shares = result.shares
    line = [result.contender, f"{shares.files}", f"{shares.row_groups}"]
    line += [f"{each.mean():.1%}" for each in (shares.in_files, shares.in_row_groups)]
    line.append(f"{result.duckdb_seconds:.2f}")
    if not result.efforts:
        return [*line, "", "", "1.00"]
    core = statistics.median(effort.core_seconds for effort in result.efforts)
    size = shares.size / before.shares.size
    return [*line, f"{seconds(result):.1f}", f"{core:.1f}", f"{size:.2f}"]


def kept_row(aged: Aged) -> list[str]:
    """Return one line of the second table, see :data:`KEPT`."""
    read = [f"{goals.mean(aged, what):.2f}" for what in goals.MEASURES]
    written, each = aged.looks[-1].written, statistics.median(aged.seconds)
    return [aged.contender, f"{written:.1f}", f"{each:.1f}", *read]


def _ignore(_: str) -> None:
    """Print nothing before a rewrite."""


if __name__ == "__main__":
    main()
