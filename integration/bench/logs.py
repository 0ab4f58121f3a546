"""Layouts learned from a query log, judged by other queries: ``python -m integration.bench.logs``.

Rows are sampled by Spark, which also reads the filters; everything else is computed from the
sample. The curves ``zorder`` and ``hilbert`` stand for those of Iceberg and of Delta's liquid
clustering, with the best number of the most filtered columns for the queries that they are judged
by, which no tool knows beforehand. After a drift, the queries filter the same columns by other
ranges, the least frequent ones most often.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import zadapter.spark
from integration.bench.tables import synthetic, tpc
from integration.bench.tables.workloads import WORKLOADS
from zadapter.advice.candidates import filtered, in_turn, learned
from zadapter.arguments.options import ROW_GROUPS
from zadapter.arguments.where import condition
from zadapter.base.ranks import rank
from zadapter.filters.boxes import boxes
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.filters import Filter, Keys, rank_filters
from zadapter.layout.layout import Curve, Request
from zadapter.planning.predict import Boxes, shares_by_filter

ROWS = 300_000
A_FILE = 400
"""Rows of the sample for each file that a layout is fitted with."""
REPEATED = (0, 100, 200)
LOGS = {
    "tpch": lambda seed: tpc.lineitem_filters(seed, 30),
    "tpcds": lambda seed: tpc.store_sales_filters(seed, 25),
    "connections": lambda seed: repeated(synthetic.connection_filters, seed),
    "hot": lambda seed: repeated(synthetic.hot_filters, seed),
    "taxi": lambda seed: repeated(synthetic.taxi_filters, seed),
}
OLDER, NEWER = 1_001, 2_002


def repeated(draw, seed):
    """Return the filters of several seeds."""
    return [text for more in REPEATED for text in draw(seed + more)]


@dataclass(frozen=True)
class Case:
    """A table's rows, and the filters to learn from and to judge by."""

    columns: tuple[tuple[str], ...]
    values: Sequence[pa.Array]
    older: Sequence[Filter]
    newer: Sequence[Filter]

    def shares(self, keys: Keys, curve: Curve, files: int, judged: Sequence[Filter]):
        """Return the mean shares of the rows that filters read, by file and by row group."""
        at = [self.columns.index((name,)) for name in keys.weights]
        request = Request(
            columns=tuple(self.columns[n] for n in at),
            weights=tuple(keys.weights.values()),
            curve=curve,
            target_file_size=1 << 20,
            row_groups=ROW_GROUPS,
            filters=keys.filters,
        )
        rows = len(self.values[0])
        some = pa.array(np.arange(0, rows, max(1, rows // max(40_000, A_FILE * files))))
        sample = [self.values[n].take(some) for n in at]
        layout = fit(request, sample, [()], np.zeros(len(some), np.int64), [files])
        leaf = assign.leaves(layout, [self.values[n] for n in at], np.zeros(rows, np.int64))
        file = assign.files(layout, leaf, np.arange(rows))
        group = assign.row_groups(layout, leaf, file, np.full(layout.files, ROW_GROUPS))
        return self._read(file, judged), self._read(group, judged)

    def _read(self, part_of, judged):
        ranked = [rank(column) for column in self.values]
        ranks = np.stack([each.ranks for each in ranked], axis=1)
        parts = int(part_of.max()) + 1
        low = np.full((parts, len(ranked)), np.iinfo(np.int64).max)
        high = np.full_like(low, -1)
        np.minimum.at(low, part_of, np.where(ranks == 0, low[0, 0], ranks))
        np.maximum.at(high, part_of, ranks)
        asked = rank_filters(judged, self.columns, [each.distinct for each in ranked])
        found = shares_by_filter(Boxes(low, high, np.bincount(part_of, minlength=parts)), asked)
        return float(np.average(found, weights=asked.weight))

    def drifted(self):
        """Return the newer filters with the least filtered columns most often."""
        used = {c: n for n, c in enumerate(filtered(self.newer, self.columns))}
        weight = [
            1 + sum(used.get(part.column, 0) for box in each.boxes for part in box) ** 2
            for each in self.newer
        ]
        return [Filter(f.boxes, float(w)) for f, w in zip(self.newer, weight, strict=True)]


def case(spark, name, folder, scale):
    """Return a workload's table and filters."""
    rows = spark.read.parquet(str(WORKLOADS[name].data(folder, scale)))
    schema = rows.limit(0).toArrow().schema
    older, newer = (
        [Filter(boxes(condition(t, rows, schema, later=False).predicate), 1.0) for t in log(seed)]
        for log, seed in ((LOGS[name], OLDER), (LOGS[name], NEWER))
    )
    usable = [(each,) for each in schema.names]
    columns = tuple(
        dict.fromkeys([*filtered(older, usable), *((key,) for key in WORKLOADS[name].keys)])
    )
    drawn = rows.select(*[c for (c,) in columns]).orderBy(F.rand(3)).limit(ROWS).toArrow()
    values = [column.combine_chunks() for column in drawn.columns]
    return Case(columns, values, older, newer)


def contenders(case, name, files):
    """Yield each contender's name, and its shares on the newer and on the drifted filters."""
    weights = filtered(case.older, case.columns)
    turns = in_turn(weights)
    tried = {
        "hand-picked, adaptive": [(Keys(dict.fromkeys(WORKLOADS[name].keys, 1.0)), "adaptive")],
        "most filtered, adaptive": [(turns[-1], "adaptive")],
        "sorted by one column": [(turns[0], "linear")],
        "zorder, best columns": [(keys, "zorder") for keys in turns],
        "hilbert, best columns": [(keys, "hilbert") for keys in turns],
        "learned": [(learned(case.older, weights), "adaptive")],
    }
    for contender, choices in tried.items():
        now = [case.shares(keys, Curve(curve), files, case.newer) for keys, curve in choices]
        best = int(np.argmin([by_file for by_file, _ in now]))
        keys, curve = choices[best]
        drift = case.shares(keys, Curve(curve), files, case.drifted())
        yield contender, now[best], drift


def main():
    """Print the shares, and the geometric means beside the hand-picked columns."""
    parser = argparse.ArgumentParser(prog="python -m integration.bench.logs", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "logs")
    options = parser.parse_args()
    spark = zadapter.spark.session()
    cases = {name: case(spark, name, options.folder, options.scale) for name in LOGS}
    for files in options.files:
        print(f"\n{files} files: by file / by row group; after a drift\n")
        print("| |", " | ".join(cases), "| x hand-picked |\n|---|" + "---|" * (len(cases) + 1))
        first = None
        by_case = {name: dict_of(contenders(each, name, files)) for name, each in cases.items()}
        for contender in next(iter(by_case.values())):
            found = np.array([by_case[name][contender] for name in cases])
            first = found if first is None else first
            means = np.exp(np.log(found / first).mean(axis=0))
            cells = [f"{a:.3f} / {b:.3f}; {c:.3f} / {d:.3f}" for a, b, c, d in found]
            ratio = "{:.2f} / {:.2f}; {:.2f} / {:.2f}".format(*means)
            print("|", contender, "|", " | ".join(cells), "|", ratio, "|", flush=True)


def dict_of(found):
    """Return the shares of each contender in one row."""
    return {contender: (*now, *drift) for contender, now, drift in found}


if __name__ == "__main__":
    main()
