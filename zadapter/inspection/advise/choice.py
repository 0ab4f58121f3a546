"""Choice of a layout by the filters of a query log: candidates, judging, and drift."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from pyspark.sql import SparkSession

from zadapter.backend.contract import Backend
from zadapter.base.key_types import BOOLEAN, is_key, kind_of
from zadapter.base.names import NameParts, join, leaves
from zadapter.base.printable import abridge
from zadapter.errors import UsageError
from zadapter.inspection.advice import (
    LEARNED,
    Advice,
    BloomFilterEffect,
    Candidate,
    Drift,
    QueryEffect,
)
from zadapter.inspection.advise.bloom_filter_advice import bloom_filters
from zadapter.inspection.advise.judging import SampledTable, mean_share, sample_table
from zadapter.inspection.query_log import HOLDOUT, LoggedFilter, QueryLog
from zadapter.inspection.querylog.log_reader import read_log
from zadapter.inspection.querylog.sources import Queries
from zadapter.layout.filters import Filter, Floats, Keys
from zadapter.layout.layout import Request
from zadapter.planning.effect import NOISE
from zadapter.predicates.boxes import boxes
from zadapter.predicates.predicate import columns as columns_of
from zadapter.spark.where import without_rows
from zadapter.table.file_stats import row_counts, total
from zadapter.table.snapshot import Snapshot

TODAY = "as it is"
REFITTED = "current keys, new cuts"
NO_KEYS = "a filter without a column that can be a key"
IN_TURN = "most filtered columns, in turn"

MOST_COLUMNS = 8
"""Maximum number of columns of a layout that is learned from filters."""

MOST_IN_TURN = 4
"""Maximum number of columns of a layout that cuts them in turn."""
MOST_FILTERS = 400
"""Maximum number of filters that a layout is fitted to, and stored with."""
LEAST_WEIGHT = 0.05
"""Minimum weight of a column of a learned layout, relative to the most filtered one."""


def advise_on(
    backend: Backend,
    snapshot: Snapshot,
    spark: SparkSession,
    queries: Queries,
    *,
    asked: Mapping[str, Keys] | None = None,
    holdout: float = HOLDOUT,
) -> Advice:
    """Compare layouts by the filters that a log applies to a table.

    Args:
        backend: The table's backend.
        snapshot: The table.
        spark: The user's session, which plans the queries.
        queries: The log.
        asked: Layouts to compare, besides those that follow from the log, by name.
        holdout: Share of the log that layouts are judged by; they are learned from the older rest.

    Raises:
        UsageError: The log is invalid, or has no filter on a column that can be a key.
    """
    asked = asked or {}
    usable = _usable(snapshot)
    log = read_log(queries, snapshot, without_rows(backend, snapshot, spark))
    log = _restrict_to_keys(log, {*usable, *((name,) for name in snapshot.partition)})
    older, newer, train = _split_log(log, holdout, usable)
    test = to_boxes(newer.filters)
    weights = weigh_columns(train, usable)
    if not weights:
        raise UsageError(log.unusable(snapshot.table, "a column that can be a key"))
    # a column that is not sampled would count as one that no layout can skip by
    newer_only = [column for column in weigh_columns(test, usable) if column not in weights]
    columns = dict.fromkeys((*weights, *newer_only, *_resolve_columns(asked, usable)))
    table, request = sample_table(backend, snapshot, tuple(columns))
    judge = _Judge(table, train, test)
    given = ({} if request is None else {REFITTED: request.keys}) | {**asked}
    found, best = judge.rank_layouts(judge.choose_layouts(weights, given))
    keys = best.candidate.keys or (None if request is None else request.keys)
    return Advice(
        table=snapshot.table,
        format=snapshot.format,
        version=snapshot.version,
        entries=log.entries,
        filters=len(log.filters),
        learned_from=len(older.filters),
        judged_by=len(newer.filters),
        held_out=older is not newer,
        unused=dict(log.unused),
        rows=int(row_counts(table.files).sum()),
        sampled=len(table.root_of),
        files=int(table.budget.sum()),
        candidates=(judge.current.candidate, *(each.candidate for each in found)),
        best=_relearn(best.candidate, log, usable),
        bloom_filters=judge.bloom_filters(snapshot, keys),
        queries=_effects(newer.filters, judge.current.shares, best.shares),
        newer_columns=tuple(map(join, newer_only)),
        queries_a_day=log.a_day,
        drift=drift(table, request, judge.test),
    )


def _usable(snapshot: Snapshot) -> list[NameParts]:
    """Return the columns that can be keys."""
    excluded = {*snapshot.without_bounds, *snapshot.without_stats}
    return [
        parts
        for parts, type_ in leaves(snapshot.schema)
        if is_key(type_)
        and kind_of(type_) is not BOOLEAN
        and parts[0] not in snapshot.partition
        and parts not in excluded
    ]


def _restrict_to_keys(log: QueryLog, keys: Collection[NameParts]) -> QueryLog:
    """Return the filters that restrict some of the columns *keys*, and count the others."""
    unused, kept = Counter(log.unused), list[LoggedFilter]()
    for each, ranges in zip(log.filters, to_boxes(log.filters), strict=True):
        if ranges.columns.isdisjoint(keys):
            named = ranges.columns or columns_of(each.predicate)
            columns = abridge(sorted(map(join, named)))
            unused[f"{NO_KEYS}: {columns}"] += each.entries
        else:
            kept.append(each)
    return replace(log, filters=tuple(kept), unused=dict(unused.most_common()))


def _split_log(
    log: QueryLog, holdout: float, usable: Sequence[NameParts]
) -> tuple[QueryLog, QueryLog, list[Filter]]:
    """Return the part to learn from, the part to judge by, and the filters of the first in boxes.

    Both parts are the whole log where there is nothing to learn from the older part.
    """
    older, newer = log.split(holdout)
    train = to_boxes(older.filters)
    return (
        (older, newer, train) if weigh_columns(train, usable) else (log, log, to_boxes(log.filters))
    )


def _resolve_columns(asked: Mapping[str, Keys], usable: Sequence[NameParts]) -> list[NameParts]:
    """Return the columns of some layouts.

    Raises:
        UsageError: A column does not exist, or cannot be a key.
    """
    by_name = {join(column): column for column in usable}
    names = [name for keys in asked.values() for name in keys.weights]
    for name in names:
        if name not in by_name:
            raise UsageError(
                f"candidates= names {name!r}, which cannot be a key; columns that can: "
                f"{', '.join(by_name)}"
            )
    return [by_name[name] for name in names]


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """A candidate, and what each filter of the newer part reads of it by file."""

    candidate: Candidate
    shares: Floats


@dataclass(frozen=True, eq=False)
class _Judge:
    """A sampled table, and the older and the newer filters of the log."""

    table: SampledTable
    train: Sequence[Filter]
    test: Sequence[Filter]

    @cached_property
    def current(self) -> _Judged:
        """The table as it is."""
        today = self.table.current_files
        shares = today.shares(self.test)
        found = Candidate(
            name=TODAY,
            keys=None,
            share=mean_share(shares, self.test),
            row_group_share=self.table.row_group_share(self.test),
            bytes_rewritten=0,
        )
        return _Judged(found, shares)

    def judge_layout(self, name: str, keys: Keys) -> _Judged:
        """Judge a layout."""
        files, row_groups = self.table.divide_rows(keys)
        shares = files.shares(self.test)
        found = Candidate(
            name=name,
            keys=keys,
            share=mean_share(shares, self.test),
            row_group_share=mean_share(row_groups.shares(self.test), self.test),
            bytes_rewritten=total(self.table.files, "size"),
        )
        return _Judged(found, shares)

    def rank_layouts(self, tried: Mapping[str, Keys]) -> tuple[list[_Judged], _Judged]:
        """Return layouts, best first, and the best of them and of the table as it is."""
        found = [self.judge_layout(name, keys) for name, keys in tried.items()]
        found.sort(key=lambda each: each.candidate.row_group_share or 0.0)
        # the first that beats the table as it is
        least = self.current.candidate.share * (1 - NOISE)
        found.sort(key=lambda each: each.candidate.share >= least)
        return found, found[0] if found[0].candidate.share < least else self.current

    def bloom_filters(self, snapshot: Snapshot, keys: Keys | None) -> dict[str, BloomFilterEffect]:
        """Return the columns whose Bloom filters pay beside a layout, if there is one."""
        if keys is None:
            return {}
        _, row_groups = self.table.divide_rows(keys)
        return bloom_filters(snapshot, self.table, row_groups, self.train, self.test)

    def choose_layouts(
        self, weights: Mapping[NameParts, float], given: Mapping[str, Keys]
    ) -> dict[str, Keys]:
        """Return the layouts to compare, by name."""
        turns = keys_in_turn(weights)
        groups = [self.table.divide_rows(keys)[1] for keys in turns]
        shares = [mean_share(each.shares(self.train), self.train) for each in groups]
        found = {**given, IN_TURN: turns[int(np.argmin(shares))]}
        from_log = learn_keys(self.train, weights)
        return found | ({} if from_log is None else {LEARNED: from_log})


def _relearn(best: Candidate, log: QueryLog, usable: Sequence[NameParts]) -> Keys | None:
    """Return the layout that was learned as the whole log asks for it, and others as they are."""
    if best.name != LEARNED:
        return best.keys
    filters = to_boxes(log.filters)
    return learn_keys(filters, weigh_columns(filters, usable))


def _effects(logged: Sequence[LoggedFilter], now: Floats, then: Floats) -> tuple[QueryEffect, ...]:
    """Return the effects on filters, the largest gain of all entries first."""
    gains = (now - then) * np.array([each.weight for each in logged])
    return tuple(
        QueryEffect(
            where=logged[at].sql,
            weight=logged[at].weight,
            before=float(now[at]),
            after=float(then[at]),
        )
        for at in np.argsort(-gains, kind="stable").tolist()
    )


def to_boxes(logged: Sequence[LoggedFilter]) -> list[Filter]:
    """Return the filters as boxes."""
    return [Filter(boxes(each.predicate), each.weight) for each in logged]


def weigh_columns(filters: Sequence[Filter], usable: Sequence[NameParts]) -> dict[NameParts, float]:
    """Return how much weight filters each of the usable columns, most first."""
    found = dict.fromkeys(usable, 0.0)
    for each in filters:
        for column in each.columns & found.keys():
            found[column] += each.weight
    heaviest = sorted(found.items(), key=lambda item: -item[1])
    return {column: weight for column, weight in heaviest if weight > 0}


def learn_keys(filters: Sequence[Filter], weights: Mapping[NameParts, float]) -> Keys | None:
    """Return the layout that is fitted to filters; None: they use no column."""
    columns = dict(list(weights.items())[:MOST_COLUMNS])
    if not columns:
        return None
    heaviest = sorted(filters, key=lambda each: -each.weight)
    useful = [kept for each in heaviest if (kept := each.only(columns)) is not None]
    top = max(columns.values())
    return Keys(
        {join(c): round(max(weight / top, LEAST_WEIGHT), 3) for c, weight in columns.items()},
        tuple(useful[:MOST_FILTERS]),
    )


def keys_in_turn(weights: Mapping[NameParts, float]) -> list[Keys]:
    """Return layouts that cut the most filtered columns in turn: one column, two, and so on."""
    names = [join(column) for column in weights][:MOST_IN_TURN]
    return [Keys(dict.fromkeys(names[: n + 1], 1.0)) for n in range(len(names))]


def drift(table: SampledTable, request: Request | None, newer: Sequence[Filter]) -> Drift | None:
    """Return what a table's layout promised; None: it was not learned from filters.

    Args:
        table: The table, with the columns of its layout.
        request: The request of its layout.
        newer: Filters of newer queries.
    """
    if request is None or not request.filters:
        return None
    # files that came out larger than their target would make the promise better than it was
    most = min(1.0, table.files.num_rows / int(table.budget.sum()))
    budget = np.maximum(1, np.rint(table.budget * most)).astype(np.int64)
    refitted, _ = replace(table, budget=budget).divide_rows(request.keys)
    columns = set(request.columns)
    without = [not all(columns & {part.column for part in box} for box in each.boxes)
               for each in newer]  # fmt: skip
    return Drift(
        filters=len(request.filters),
        promised=mean_share(refitted.shares(request.filters), request.filters),
        held=mean_share(table.current_files.shares(request.filters), request.filters),
        elsewhere=mean_share(np.array(without, np.float64), newer),
    )
