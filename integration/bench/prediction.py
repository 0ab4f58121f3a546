"""What ``advise`` predicts, and what a rewrite brings: ``python -m integration.bench.prediction``.

``advise`` learns a layout from the older half of a log and predicts what the newer half would read.
A table is rewritten by exactly this layout, and what the newer half reads of it is taken from the
bounds in its log and in its footers. A copy of the table is rewritten by hand-picked columns, in
turn, and the seconds of both are compared: those of the clock, and those of the cores, which other
work on the machine hardly changes.
"""

import argparse
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

import zadapter
from integration.bench.measures.calls import Clock, Cost
from integration.bench.session import session
from integration.bench.tables.logs import LOGS, NEWER, OLDER
from integration.bench.tables.workloads import WORKLOADS
from zadapter.base.phases import observing
from zadapter.inspection.advice import LEARNED

MOST_FILES = 100_000
"""More files than a table has, so that all footers are read."""
OFF, SLOWER = 0.03, 1.10
"""Goals: difference between predicted and measured share, and ratio of the seconds."""


@dataclass(frozen=True)
class Found:
    """Predicted and measured shares, by file and by row group; and costs of the rewrites."""

    files: int
    predicted: tuple[float, float]
    measured: tuple[float, float]
    learned: list[Cost]
    plain: list[Cost]
    phases: dict[str, tuple[float, float]]
    """Median core seconds of fitting and of writing, of the learned and of the plain layout."""

    @property
    def off(self):
        """By how much the predictions are off."""
        return tuple(abs(a - b) for a, b in zip(self.predicted, self.measured, strict=True))

    def ratio(self, figure):
        """Return a figure of the learned layout beside the plain one, the median of the pairs."""
        pairs = zip(self.learned, self.plain, strict=True)
        return float(np.median([getattr(a, figure) / getattr(b, figure) for a, b in pairs]))

    def median(self, figure):
        """Return the medians of a figure as text."""
        both = [
            median(getattr(each, figure) for each in some) for some in (self.learned, self.plain)
        ]
        return "{:.1f} beside {:.1f}".format(*both)


def found(spark, name, options):
    """Rewrite a workload's table by a learned and by a plain layout, in turn."""
    data = WORKLOADS[name].data(options.folder, options.scale)
    older, newer = (LOGS[name].filters(seed) for seed in (OLDER, NEWER))
    table = str(options.folder / "tables" / name)
    copied(spark, data, table)
    advice = zadapter.advise(table, [*older, *newer], spark=spark)
    learned = next(each for each in advice.candidates if each.name == LEARNED)
    layouts = {"plain": WORKLOADS[name].by(), "learned": learned.keys}
    costs, phases = ({each: [] for each in layouts} for _ in range(2))
    for _ in range(options.rounds):
        for each, by in layouts.items():  # the learned one last: it is measured
            copied(spark, data, table)
            clock, busy = Clock.of(spark), dict[str, float]()
            with observing(partial(counted, spark, busy)):
                report = zadapter.optimize(table, by=by, force=True, spark=spark)
            costs[each].append(clock.since())
            print(name, each, costs[each][-1], busy, file=sys.stderr, flush=True)
            phases[each].append(busy)
    after = zadapter.analyze(
        table,
        queries=[(text, 1.0) for text in newer],
        row_groups=True,
        sample_files=MOST_FILES,
        spark=spark,
    )
    weights = [each.weight for each in after.queries]
    by_group = [each.row_groups.rows / after.totals.rows for each in after.queries]
    return Found(
        files=report.files_added,
        predicted=(learned.share, learned.row_group_share),
        measured=(after.reads.share, float(np.average(by_group, weights=weights))),
        **costs,
        phases={
            phase: tuple(
                float(np.median([found[phase] for found in phases[each]]))
                for each in ("learned", "plain")
            )
            for phase in ("fit", "write")
        },
    )


@contextmanager
def counted(spark, busy, phase):
    """Add the core seconds of a phase to *busy*."""
    clock = Clock.of(spark)
    yield
    busy[phase.name] = busy.get(phase.name, 0.0) + clock.since().core_seconds


def copied(spark, data, table):
    """Write a workload's files as a Delta table, in their order."""
    shutil.rmtree(table, ignore_errors=True)
    spark.read.parquet(str(data)).write.format("delta").save(table)


def main():
    """Print the shares and the seconds."""
    parser = argparse.ArgumentParser(
        prog="python -m integration.bench.prediction", description=__doc__
    )
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "logs")
    parser.add_argument("--workloads", nargs="+", default=list(LOGS), choices=list(LOGS))
    options = parser.parse_args()
    spark = session(options.folder)
    print(f"goals: off by at most {OFF}; seconds of a learned layout x a plain one {SLOWER}\n")
    print(
        "| | files | predicted, by file / row group | measured | off by | seconds | x plain | "
        "core seconds | x plain | of which fit | write |"
    )
    print("|---|" + "---|" * 10, flush=True)
    every = []
    for name in options.workloads:
        each = found(spark, name, options)
        every.append(each)
        cells = ["{:.3f} / {:.3f}".format(*pair)
                 for pair in (each.predicted, each.measured, each.off)]  # fmt: skip
        for figure in ("seconds", "core_seconds"):
            cells += [each.median(figure), f"{each.ratio(figure):.2f}"]
        phases = ["{:.1f} beside {:.1f}".format(*each.phases[p]) for p in ("fit", "write")]
        print("|", " | ".join([name, f"{each.files:,}", *cells, *phases]), "|", flush=True)
    worst = np.max([each.off for each in every], axis=0)
    ratio = np.exp(np.mean(np.log([each.ratio("core_seconds") for each in every])))
    print(
        f"\noff by at most {worst[0]:.3f} / {worst[1]:.3f}; core seconds x plain {ratio:.2f}, "
        "geometric mean"
    )


if __name__ == "__main__":
    main()
