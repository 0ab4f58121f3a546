"""Layouts learned from a query log, judged by other queries: ``python -m integration.bench.logs``.

Rows are sampled by Spark, which also reads the filters and counts the rows that match; everything
else is computed from the sample. Queries to judge by have other parameters than those to learn
from. After a drift, they filter the same columns, the least frequent ones most often. In the last
tables, they are of templates that no query to learn from has.

The curves ``zorder`` and ``hilbert`` stand for those of Iceberg and of Delta's liquid clustering.
Both cut columns at quantiles, and Iceberg interleaves bytes. They and the sort have those of the
most filtered columns, or the hand-picked ones, that are best for the queries that they are judged
by, which no tool knows beforehand.
"""

import argparse
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import zadapter.spark
from integration.bench.tables.logs import LOGS, NEWER, OLDER, SELECTIVE
from integration.bench.tables.workloads import WORKLOADS
from zadapter.base.names import join
from zadapter.base.ranks import Ints, rank
from zadapter.inspection.advise.choice import Judge, weigh_columns
from zadapter.inspection.advise.columns import MOST_COLUMNS
from zadapter.inspection.advise.judging import SampledTable
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.filters import Filter, Floats, Keys, RankedFilters, rank_filters
from zadapter.layout.layout import Curve, Request
from zadapter.layout.predict import Boxes, shares_by_filter
from zadapter.planning.options import ROW_GROUPS
from zadapter.predicates.boxes import boxes
from zadapter.spark.where import condition
from zadapter.table import file_stats

ROWS = 300_000
A_FILE = 400
"""Rows of the sample for each file that a layout is fitted with."""
SOME = 8
"""Of so many rows one is looked at where a column is chosen for a level."""
MOST_IN_TURN = 4
"""Maximum number of columns of a layout that cuts them in turn."""
SPLITS = 4
"""Number of draws of the templates to learn from."""
JUDGED = 2
"""Of so many rows one is in the sample that layouts are chosen by."""
AT_ONCE = 40
"""Number of filters whose rows one job counts."""
BOUND = "rows that match"


@dataclass(frozen=True, eq=False)
class Case:
    """A table's rows, and the filters to learn from and to judge by.

    Attributes:
        columns: The columns.
        values: Sampled values of each column.
        ranks: Their ranks, shape (rows, columns).
        distinct: Known values of each column.
        hand_picked: Key columns that somebody picked.
        older: Filters to learn from, each with its template.
        newer: Filters to judge by.
        templates: Template of each filter to judge by.
        asked: Filters to judge by, in ranks.
        matching: Share of the rows that match each of them.
        known: Shares that filters read of layouts that are not learned, by layout.
    """

    columns: tuple[tuple[str], ...]
    values: Sequence[pa.Array]
    ranks: Ints
    distinct: Sequence[pa.Array]
    hand_picked: Keys
    older: Sequence[tuple[int, Filter]]
    newer: Sequence[Filter]
    templates: Ints
    asked: RankedFilters
    matching: Floats
    known: dict = field(default_factory=dict)

    def shares(self, keys: Keys, curve: str, files: int) -> Floats:
        """Return the shares of the rows that filters read, by file and by row group."""
        if keys.filters:
            return self._shares(keys, Curve(curve), files)
        layout = (*keys.weights.items(), curve, files)
        if layout not in self.known:
            self.known[layout] = self._shares(keys, Curve(curve), files)
        return self.known[layout]

    def _shares(self, keys: Keys, curve: Curve, files: int) -> Floats:
        at = [self.columns.index((name,)) for name in keys.weights]
        request = Request(
            columns=tuple(self.columns[n] for n in at),
            weights=tuple(keys.weights.values()),
            curve=curve,
            target_file_size=1 << 20,
            row_groups=ROW_GROUPS,
            filters=keys.filters,
        )
        rows = len(self.ranks)
        some = pa.array(np.arange(0, rows, max(1, rows // max(40_000, A_FILE * files))))
        sample = [self.values[n].take(some) for n in at]
        layout = fit(request, sample, [()], np.zeros(len(some), np.int64), [files])
        leaf = assign.leaves(layout, [self.values[n] for n in at], np.zeros(rows, np.int64))
        file = assign.files(layout, leaf, np.arange(rows))
        group = assign.row_groups(layout, leaf, file, np.full(layout.files, ROW_GROUPS))
        return np.stack([self.read(file, self.asked), self.read(group, self.asked)])

    def level_by_level(self, older: Sequence[Filter], files: int) -> Floats:
        """Return these shares of a tree with one column a level, each node cut at its median.

        A level has the column by which the filters *older* then read least.
        """
        asked = rank_filters(older, self.columns, self.distinct)
        node, shares = np.zeros(len(self.ranks), np.int64), []
        for count in (files, ROW_GROUPS):
            for _ in range(round(np.log2(count))):
                tried = [_halved(node, self.ranks[:, at]) for at in np.unique(asked.column)]
                read = [self.read(each, asked, SOME) @ asked.weight for each in tried]
                node = tried[int(np.argmin(read))]
            shares.append(self.read(node, self.asked))
        return np.stack(shares)

    def read(self, part_of: Ints, asked: RankedFilters, step: int = 1) -> Floats:
        """Return the share of the rows that filters read of some parts, from one row in *step*."""
        part_of, ranks = part_of[::step], self.ranks[::step]
        parts = int(part_of.max()) + 1
        low = np.full((parts, len(self.columns)), np.iinfo(np.int64).max)
        high = np.full_like(low, -1)
        np.minimum.at(low, part_of, np.where(ranks == 0, low[0, 0], ranks))
        np.maximum.at(high, part_of, ranks)
        return shares_by_filter(Boxes(low, high, np.bincount(part_of, minlength=parts)), asked)

    @property
    def drifted(self) -> Floats:
        """Weights of the filters to judge by, of the least filtered columns most often."""
        used = {c: n for n, c in enumerate(weigh_columns(self.newer, self.columns))}
        columns = [[part.column for box in each.boxes for part in box] for each in self.newer]
        return np.array([1.0 + sum(used.get(c, 0) for c in each) ** 2 for each in columns])


def _halved(node: Ints, ranks: Ints) -> Ints:
    """Cut each node at the median of a column, and return the numbers of its halves."""
    order = np.lexsort((ranks, node))
    starts = np.searchsorted(node[order], np.arange(int(node.max()) + 2))
    middle = order[np.minimum((starts[:-1] + starts[1:]) // 2, len(order) - 1)]
    return node * 2 + (ranks >= ranks[middle][node])


def case(spark, name, folder, scale):
    """Return a workload's table and filters."""
    log = (LOGS | SELECTIVE)[name]
    rows = spark.read.parquet(str(WORKLOADS[name].data(folder, scale)))
    schema = rows.limit(0).toArrow().schema
    older, newer = (
        [
            (template, Filter(boxes(condition(t, rows, schema, later=False).predicate), 1.0))
            for template, t in log.by_template(seed)
        ]
        for seed in (OLDER, NEWER)
    )
    by = WORKLOADS[name].by()
    usable = [(each,) for each in schema.names]
    used = weigh_columns([each for _, each in older], usable)
    columns = tuple(dict.fromkeys([*used, *((key,) for key in WORKLOADS[name].keys)]))
    drawn = rows.select(*[c for (c,) in columns]).orderBy(F.rand(3)).limit(ROWS).toArrow()
    values = [column.combine_chunks() for column in drawn.columns]
    ranked = [rank(each) for each in values]
    distinct = [each.distinct for each in ranked]
    filters = [each for _, each in newer]
    return Case(
        columns=columns,
        values=values,
        ranks=np.stack([each.ranks for each in ranked], axis=1),
        distinct=distinct,
        hand_picked=Keys(by if isinstance(by, dict) else dict.fromkeys(by, 1.0)),
        older=older,
        newer=filters,
        templates=np.array([template for template, _ in newer]),
        asked=rank_filters(filters, columns, distinct),
        matching=matching(rows, log.filters(NEWER)),
    )


def matching(rows, texts):
    """Return the share of a table's rows that match each filter."""
    found = []
    for at in range(0, len(texts), AT_ONCE):
        some = texts[at : at + AT_ONCE]
        found += rows.agg(*[F.avg(F.when(F.expr(t), 1.0).otherwise(0.0)) for t in some]).first()
    return np.array(found)


def columns_in_turn(weights):
    """Return layouts that cut the most filtered columns in turn: one column, two, and so on."""
    names = [join(column) for column in weights][:MOST_IN_TURN]
    return [Keys(dict.fromkeys(names[: n + 1], 1.0)) for n in range(len(names))]


def unwritten(case: Case, files: int) -> SampledTable:
    """Return a sample of a case's rows, as a table of one file that has no bounds."""
    rows = len(case.ranks)
    some = pa.array(np.arange(0, rows, JUDGED))
    one = [["file"], [None], [1 << 30], [rows], [None], [{}], [{}]]
    schema = file_stats.schema({}, {})
    held = pa.table([pa.array(v, f.type) for v, f in zip(one, schema, strict=True)], schema=schema)
    return SampledTable(
        columns=case.columns,
        values=tuple(each.take(some) for each in case.values),
        files=held,
        roots=((),),
        root_of=np.zeros(len(some), np.int64),
        budget=np.array([files]),
        target_file_size=1 << 24,
        partition=frozenset(),
    )


def learned_keys(case: Case, older: Sequence[Filter], files: int) -> Keys:
    """Return the layout that is learned from filters without any columns that are steady."""
    keys = Judge(unwritten(case, files), older, older, case.columns).learn(older)
    assert keys is not None
    return keys


def contenders(case, older, files):
    """Return the shares that filters read of each contender's layouts; the best layout counts."""
    weights = weigh_columns(older, case.columns)
    turns = columns_in_turn(weights)
    frequent = {name: weights[(name,)] for name in turns[-1].weights}
    single = [Keys({join(column): 1.0}) for column in list(weights)[:MOST_COLUMNS]]
    several = [case.hand_picked, *turns]
    layouts = {
        "hand-picked": [(case.hand_picked, "adaptive")],
        "most filtered, in turn": [(turns[-1], "adaptive")],
        "most filtered, by frequency": [(Keys(frequent), "adaptive")],
        "sorted by the best column": [(keys, "linear") for keys in single],
        "zorder, best columns": [(keys, "zorder") for keys in several],
        "hilbert, best columns": [(keys, "hilbert") for keys in several],
        "learned": [(learned_keys(case, older, files), "adaptive")],
    }
    found = {
        name: [case.shares(keys, curve, files) for keys, curve in tried]
        for name, tried in layouts.items()
    }
    return found | {"learned, one column a level": [case.level_by_level(older, files)]}


def judged(case, files, older, *weights):
    """Return what filters read by each contender's layout.

    Args:
        case: The table.
        files: Number of files.
        older: Filters to learn from.
        weights: Weights of the filters to judge by; the first ones choose the best layouts.

    Returns:
        For each contender the mean shares by file and by row group, for each of the weights.
    """
    found = {}
    for contender, shares in contenders(case, older, files).items():
        means = [np.stack([each @ w / w.sum() for w in weights]) for each in shares]
        found[contender] = min(means, key=lambda each: each[0, 0]).ravel()
    bound = [case.matching @ w / w.sum() for w in weights]
    return found | {BOUND: np.repeat(bound, 2)}


def drifting(case, files):
    """Return what filters of all templates read, with the same weights and after a drift."""
    older = [each for _, each in case.older]
    return judged(case, files, older, np.ones(len(case.newer)), case.drifted)


def held_out(case, files):
    """Return what filters of templates read that no filter to learn from has: means of splits."""
    every = sorted(set(case.templates.tolist()))
    splits = []
    for seed in range(SPLITS):
        known = random.Random(seed).sample(every, len(every) // 2)
        older = [each for template, each in case.older if template in known]
        splits.append(judged(case, files, older, 1.0 - np.isin(case.templates, known)))
    return {name: np.mean([each[name] for each in splits], axis=0) for name in splits[0]}


def print_table(by_case):
    """Print the shares of each contender and table, and geometric means beside hand-picked keys."""
    print("| |", " | ".join(by_case), "| x hand-picked |\n|---|" + "---|" * (len(by_case) + 1))
    first, *_ = by_case.values()
    hand_picked, *_ = first
    for contender in first:
        found = np.array([each[contender] for each in by_case.values()])
        beside = np.array([each[hand_picked] for each in by_case.values()])
        means = np.exp(np.log(found / beside).mean(axis=0))
        cells = [*(_cell(each, 3) for each in found), _cell(means, 2)]
        print("|", contender, "|", " | ".join(cells), "|", flush=True)


def _cell(shares, digits):
    pairs = shares.reshape(-1, 2)
    return "; ".join(f"{file:.{digits}f} / {group:.{digits}f}" for file, group in pairs)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m integration.bench.logs", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "logs")
    tables = [*LOGS, *SELECTIVE]
    parser.add_argument("--tables", nargs="+", default=list(LOGS), choices=tables)
    options = parser.parse_args()
    spark = zadapter.spark.session()
    cases = {name: case(spark, name, options.folder, options.scale) for name in options.tables}
    for files in options.files:
        print(f"\n{files} files: by file / by row group; after a drift\n")
        print_table({name: drifting(each, files) for name, each in cases.items()})
        print(f"\n{files} files, half of the templates held out: by file / by row group\n")
        print_table({name: held_out(each, files) for name, each in cases.items()})


if __name__ == "__main__":
    main()
