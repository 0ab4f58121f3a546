"""Choice of a layout by the filters of a query log: candidates, judging, and drift."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import sqrt
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from zadapter.backend.contract import Backend
from zadapter.base.key_types import BOOLEAN, is_key, kind_of
from zadapter.base.names import NameParts, join, leaves, split
from zadapter.base.printable import abridge
from zadapter.errors import UsageError
from zadapter.inspection.advice import (
    IN_TURN,
    LEARNED,
    STEADY,
    Advice,
    Again,
    BloomFilterEffect,
    Candidate,
    Drift,
    QueryEffect,
)
from zadapter.inspection.advise.bloom_filter_advice import bloom_filters, find_points
from zadapter.inspection.advise.columns import MOST_COLUMNS, choose_columns
from zadapter.inspection.advise.joined_ranges import bound_joins
from zadapter.inspection.advise.judging import SampledTable, mean_share, sample_table
from zadapter.inspection.advise.new_queries import (
    Read,
    Reader,
    expect,
    template_of,
    why_too_thin,
)
from zadapter.inspection.advise.regret import Fit, number_queries, regret, weigh_newer
from zadapter.inspection.advise.top_filters import bound_tops, boxes_of
from zadapter.inspection.measure.table_access import Opened
from zadapter.inspection.query_log import HOLDOUT, LoggedFilter, QueryLog
from zadapter.inspection.querylog.log_reader import read_log
from zadapter.inspection.querylog.sources import Queries
from zadapter.layout.filters import Filter, Floats, Keys
from zadapter.layout.layout import Request
from zadapter.planning.effect import NOISE
from zadapter.planning.options import Options
from zadapter.planning.relearning import ENOUGH, PART, Relearning, accumulate
from zadapter.predicates.predicate import columns as columns_of
from zadapter.table.file_stats import row_counts
from zadapter.table.snapshot import Snapshot

Fitting = Callable[[Sequence[Filter], Sequence[Filter]], Keys | None]
"""Returns a layout that is fitted to the first filters and to none like the second ones."""
TODAY = "as it is"
REFITTED = "current keys, new cuts"
NO_KEYS = "a filter without a column that can be a key"
_NO_COLUMN = "a column that can be a key"

MOST_IN_TURN = 3
"""Maximum number of columns of the layout that cuts them in turn. Of the fewer that are best for a
log, queries of a template that it lacks read up to ten times as much."""
MOST_FILTERS = 400
"""Maximum number of filters that a layout is fitted to, and stored with."""
LEAST_WEIGHT = 0.05
"""Minimum weight of a column of a learned layout, relative to the most filtered one."""
LEAST_STEADY = 0.5
"""Minimum turns of a steady column, relative to the most filtered one: of five, each gets one."""
SLACK = 0.05
"""How much more than of the plain layout new queries may be expected to read of the steady one. Its
columns are cut nearly as often, so a small difference is one of the parts that were left out."""


def advise_on(
    opened: Opened,
    queries: Queries,
    options: Options,
    *,
    asked: Mapping[str, Keys] | None = None,
    holdout: float = HOLDOUT,
) -> Advice:
    """Compare layouts by the filters that a log applies to a table.

    Args:
        opened: The table, and the user's session, which plans the queries.
        queries: The log.
        options: The options of the rewrite, which decide the size of its files.
        asked: Layouts to compare, besides those that follow from the log, by name.
        holdout: Share of the log that layouts are judged by; they are learned from the older rest.

    Raises:
        UsageError: The log is invalid, or has no filter on a column that can be a key.
    """
    snapshot = opened.snapshot
    usable = _usable(snapshot)
    log = read_log(queries, snapshot, opened.rows, dynamic=True)
    log = _restrict_to_keys(log, {*usable, *((name,) for name in snapshot.partition)})
    filtered = _find_filtered(log, holdout, usable)
    if not filtered:
        raise UsageError(log.unusable(snapshot.table, _NO_COLUMN))
    # a column that is not sampled would count as one that no layout can skip by
    columns = tuple(dict.fromkeys((*filtered, *_resolve_columns(asked or {}, usable))))
    table, request = sample_table(opened.backend, snapshot, columns, options)
    return compare_layouts(snapshot, log, table, request, asked=asked or {}, holdout=holdout)


def compare_layouts(
    snapshot: Snapshot,
    log: QueryLog,
    table: SampledTable,
    request: Request | None,
    *,
    asked: Mapping[str, Keys],
    holdout: float = HOLDOUT,
) -> Advice:
    """Compare layouts by the filters of a log on a sampled table.

    Args:
        snapshot: The table.
        log: The filters.
        table: A sample of the columns that they name.
        request: The request of the table's layout; None: it has none.
        asked: Further layouts to compare, by name.
        holdout: Share of the log that layouts are judged by.

    Raises:
        UsageError: No filter restricts a column that can be a key.
    """
    usable = _usable(snapshot)
    log, joins = bound_joins(bound_tops(log, table), table)
    older, newer, train = _split_log(log, holdout, usable)
    filtered = weigh_columns(train, usable)
    if not filtered:
        raise UsageError(log.unusable(snapshot.table, _NO_COLUMN))
    late = weigh_columns(to_boxes(newer.filters), usable)
    refitted = {} if request is None else {REFITTED: request.keys}
    judge = Judge(table, train, to_boxes(newer.filters), usable, refitted | {**asked})
    found, best = judge.rank_layouts()
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
        files=int((table.budget if keys is None else table.budget_of(keys)).sum()),
        candidates=(judge.current.candidate, *(each.candidate for each in found)),
        too_thin=why_too_thin(train),
        best=_fit_to_all(best.candidate, log),
        bloom_filters=judge.bloom_filters(snapshot, keys),
        joins=joins,
        queries=_effects(newer.filters, judge.current.shares, best.shares),
        newer_columns=tuple(join(column) for column in late if column not in filtered),
        queries_a_day=log.a_day,
        drift=drift(table, request, judge.test),
        again=None if request is None else _relearn(judge, found, request, log, snapshot),
    )


def follow_queries(
    options: Options, backend: Backend, snapshot: Snapshot, spark: SparkSession
) -> Options:
    """Return options with the keys that their query log decides, with the errors of `advise_on`.

    A table that has a layout keeps it until the log says that another one pays the rewrite.
    """
    queries: Any = options.queries
    if queries is None:
        return options
    if options.collect_stats:  # columns without stats can be keys, too
        snapshot = replace(snapshot, without_stats=frozenset())
    opened = Opened(backend=backend, snapshot=snapshot, session=spark)
    advice = advise_on(opened, queries, options)
    if advice.again is None or (options.force and advice.best is not None):
        return options.with_advice(advice.best, tuple(advice.bloom_filters))
    return advice.again.apply(options)


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


def _find_filtered(log: QueryLog, holdout: float, usable: Sequence[NameParts]) -> list[NameParts]:
    """Return the columns of filters to learn from, and of filters to judge by; none: no layout."""
    _, newer, train = _split_log(log, holdout, usable)
    filtered = weigh_columns(train, usable)
    late = weigh_columns(to_boxes(newer.filters), usable)
    return list(dict.fromkeys((*filtered, *late))) if filtered else []


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

    def is_worse_for_new_queries(self, than: "_Judged", slack: float = 0.0) -> bool:
        """Return whether new queries are expected to read more of it, by file or by row group."""
        mine, other = self.candidate, than.candidate
        pairs = (
            (mine.new_share, other.new_share),
            (mine.new_row_group_share, other.new_row_group_share),
        )
        return any(a is not None and b is not None and a > b * (1 + slack) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Judge:
    """A sampled table, and the older and the newer filters of the log.

    Attributes:
        table: The table.
        train: The older filters, which layouts are fitted to.
        test: The newer filters, which layouts are judged by.
        usable: Columns that can be keys.
        given: Layouts that are not fitted to the filters, by name.
    """

    table: SampledTable
    train: Sequence[Filter]
    test: Sequence[Filter]
    usable: Sequence[NameParts]
    given: Mapping[str, Keys] = field(default_factory=dict)

    @cached_property
    def current(self) -> _Judged:
        """The table as it is."""
        shares = self.table.current_files.shares(self.test)
        new = self._expected.get(TODAY)
        found = Candidate(
            name=TODAY,
            keys=None,
            share=mean_share(shares, self.test),
            row_group_share=self.table.row_group_share(self.test),
            bytes_rewritten=0,
            new_share=None if new is None else new.files,
            new_row_group_share=None if new is None else new.row_groups,
        )
        return _Judged(found, shares)

    def judge_layout(self, name: str, keys: Keys) -> _Judged:
        """Judge a layout."""
        files, row_groups = self.table.divide_rows(keys)
        shares = files.shares(self.test)
        new = self._expected.get(name)
        found = Candidate(
            name=name,
            keys=keys,
            share=mean_share(shares, self.test),
            row_group_share=mean_share(row_groups.shares(self.test), self.test),
            bytes_rewritten=self.table.size,
            new_share=None if new is None else new.files,
            new_row_group_share=None if new is None else new.row_groups,
        )
        return _Judged(found, shares)

    def rank_layouts(self) -> tuple[list[_Judged], _Judged]:
        """Return layouts, best first, and the best of them and of the table as it is."""
        fitted = {name: fit(self.train, ()) for name, fit in self._fittings.items()}
        found = [self.judge_layout(name, keys) for name, keys in fitted.items() if keys is not None]
        [plain] = [each for each in found if each.candidate.name == IN_TURN]
        useful = [
            each
            for each in sorted(found, key=lambda each: each.candidate.row_group_share or 0.0)
            if self._reads_less(each.candidate) and not self._is_risk(each, plain)
        ]
        others = [each for each in found if each not in useful]
        others.sort(key=lambda each: each.candidate.row_group_share or 0.0)
        return [*useful, *others], useful[0] if useful else self.current

    def _reads_less(self, candidate: Candidate) -> bool:
        """Return whether queries read less of a layout by file, and not more by row group."""
        now, groups = self.current.candidate, candidate.row_group_share
        most = None if now.row_group_share is None else now.row_group_share * (1 + NOISE)
        is_worse_within = groups is not None and most is not None and groups > most
        return candidate.share < now.share * (1 - NOISE) and not is_worse_within

    def _is_risk(self, judged: _Judged, plain: _Judged) -> bool:
        """Return whether queries to come may read more of a layout than of the plain one."""
        name = judged.candidate.name
        if name == LEARNED:  # one new template may read several times as much of it
            return True
        if why_too_thin(self.train):
            return name == STEADY
        return judged.is_worse_for_new_queries(plain, SLACK if name == STEADY else 0.0)

    def bloom_filters(self, snapshot: Snapshot, keys: Keys | None) -> dict[str, BloomFilterEffect]:
        """Return the columns whose Bloom filters pay beside a layout, if there is one."""
        if keys is None:
            return {}
        return bloom_filters(snapshot, self.table, keys, self.train, self.test)

    def find_paying_bloom_filters(self, snapshot: Snapshot, keys: Keys, log: QueryLog) -> set[str]:
        """Return the columns whose Bloom filters pay a rewrite, by the rule of the regret.

        No part of the log counts more than it does in the regret of a layout, and no query counts
        more than a part does.

        Args:
            snapshot: The table.
            keys: The layout that they are written with.
            log: The log.
        """
        filters, queries = to_boxes(log.filters), log.queries_a_weight
        weights = np.array([each.weights for each in log.filters]) * queries
        of = number_queries(filters, [each.query for each in log.filters])
        totals = np.bincount(of, weights.sum(axis=1))[of]
        weights = weights * (PART / np.maximum(totals, PART))[:, np.newaxis]
        train, test = (
            [replace(each, weight=min(each.weight * queries, PART)) for each in part]
            for part in (self.train, self.test)
        )
        found = set[str]()
        for name, each in (
            replace(self, train=train, test=test).bloom_filters(snapshot, keys).items()
        ):
            asks = [find_points(asked, split(name)) is not None for asked in filters]
            saved = each.row_group_share - each.row_group_share_filtered
            parts = weights[asks].sum(axis=0) * saved
            if accumulate(parts, np.zeros_like(parts)) >= ENOUGH:
                found.add(name)
        return found

    def contender(self, found: Sequence[_Judged]) -> Fit:
        """Return how the layout is fitted that a table may get: the plain one if others risk more.

        Args:
            found: The layouts that are ranked.
        """
        by_name = {each.candidate.name: each for each in found}
        risks = STEADY not in by_name or self._is_risk(by_name[STEADY], by_name[IN_TURN])
        fitting = self._fittings[IN_TURN if risks else STEADY]
        return lambda filters: fitting(filters, ())

    @cached_property
    def _fittings(self) -> dict[str, Fitting]:
        """How layouts are fitted to filters, by name."""
        return {
            **{name: _leave_out(keys) for name, keys in self.given.items()},
            IN_TURN: lambda known, _: keys_in_turn(weigh_columns(known, self.usable)),
            STEADY: lambda known, _: steady_keys(known, weigh_columns(known, self.usable)),
            LEARNED: lambda known, _: self.learn(known),
        }

    def learn(self, known: Sequence[Filter]) -> Keys | None:
        """Return the layout that is learned from filters alone; None: they use no column."""
        fit = partial(learn_keys, known)
        return fit(choose_columns(self.table, known, weigh_columns(known, self.usable), fit))

    @cached_property
    def _expected(self) -> dict[str, Read]:
        """What new queries are expected to read, by layout; nothing if the log is too thin."""
        if why_too_thin(self.train):
            return {}
        readers = {name: self._reader(fitting) for name, fitting in self._fittings.items()}
        return expect(self.train, {TODAY: self._read_today, **readers})

    def _read_today(self, _: Sequence[Filter], asked: Sequence[Filter]) -> Read:
        files = mean_share(self.table.current_files.shares(asked), asked)
        return Read(files, self.table.row_group_share(asked))

    def _reader(self, fitting: Fitting) -> Reader:
        def read(known: Sequence[Filter], asked: Sequence[Filter]) -> Read:
            keys = fitting(known, asked)
            if keys is None:
                return Read(1.0, 1.0)
            files, row_groups = (mean_share(each.shares(asked), asked)
                                 for each in self.table.divide_rows(keys))  # fmt: skip
            return Read(files, row_groups)

        return read


def _leave_out(keys: Keys) -> Fitting:
    """Return how a given layout is without its filters that are like others."""

    def fitted(_: Sequence[Filter], others: Sequence[Filter]) -> Keys:
        unlike = {template_of(each) for each in others}
        kept = tuple(each for each in keys.filters if template_of(each) not in unlike)
        return replace(keys, filters=kept)

    return fitted


def _relearn(
    judge: Judge, found: Sequence[_Judged], request: Request, log: QueryLog, snapshot: Snapshot
) -> Again:
    """Return whether a table that has a layout gets another one, and which."""
    filters, fit = to_boxes(log.filters), judge.contender(found)
    weights = np.array([each.weights for each in log.filters]) * log.queries_a_weight
    queries = number_queries(filters, [each.query for each in log.filters])
    relearning = Relearning(
        regret=regret(judge.table, request.keys, filters, weights, queries, fit),
        bytes=judge.table.size,
    )
    keys = fit([each for each in weigh_newer(filters, weights) if each.weight > 0])
    kept = request if keys is None or not relearning.is_due else None
    chosen = request.keys if keys is None or kept is not None else keys
    blooms = {join(each) for each in request.bloom_filters}
    more = judge.find_paying_bloom_filters(snapshot, chosen, log)
    return Again(
        relearning=relearning,
        keys=chosen,
        bloom_filters=tuple(sorted(blooms | more)) if more - blooms else (),
        _kept=kept,
    )


def _fit_to_all(best: Candidate, log: QueryLog) -> Keys | None:
    """Return the layout that was learned as the whole log asks for it, and others as they are.

    Its columns stay those that were judged, also if newer queries filter others more often.
    """
    if best.name != STEADY or best.keys is None:
        return best.keys
    columns = {split(name) for name in best.keys.weights}
    return replace(best.keys, filters=_heaviest(to_boxes(log.filters), columns))


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
    return [Filter(boxes_of(each), each.weight) for each in logged]


def weigh_columns(filters: Sequence[Filter], usable: Sequence[NameParts]) -> dict[NameParts, float]:
    """Return how much weight filters each of the usable columns, most first."""
    found = dict.fromkeys(usable, 0.0)
    for each in filters:
        for column in each.columns & found.keys():
            found[column] += each.weight
    heaviest = sorted(found.items(), key=lambda item: -item[1])
    return {column: weight for column, weight in heaviest if weight > 0}


def learn_keys(filters: Sequence[Filter], weights: Mapping[NameParts, float]) -> Keys | None:
    """Return the layout of some columns that is fitted to filters; None: they use no column."""
    if not weights:
        return None
    top = max(weights.values())
    return Keys(
        {join(c): round(max(weight / top, LEAST_WEIGHT), 3) for c, weight in weights.items()},
        _heaviest(filters, weights),
    )


def _heaviest(filters: Sequence[Filter], columns: Collection[NameParts]) -> tuple[Filter, ...]:
    """Return the heaviest filters that columns can skip rows for, without other columns."""
    heaviest = sorted(filters, key=lambda each: -each.weight)
    useful = [kept for each in heaviest if (kept := each.only(columns)) is not None]
    return tuple(useful[:MOST_FILTERS])


def steady_keys(filters: Sequence[Filter], weights: Mapping[NameParts, float]) -> Keys | None:
    """Return the layout that is fitted to filters, and cuts the most filtered columns steadily.

    Their turns are as the square roots of how often they are filtered.
    """
    most = dict(list(weights.items())[:MOST_COLUMNS])
    learned, plain = learn_keys(filters, most), keys_in_turn(weights)
    if learned is None or plain is None:
        return None
    steady = {
        name: round(1 + max(LEAST_STEADY, sqrt(weight)), 3)
        if name in plain.weights
        else LEAST_WEIGHT
        for name, weight in learned.weights.items()
    }
    return replace(learned, weights=steady)


def keys_in_turn(weights: Mapping[NameParts, float]) -> Keys | None:
    """Return the layout that cuts the most filtered columns in turn; None: there are none."""
    names = [join(column) for column in weights][:MOST_IN_TURN]
    return Keys(dict.fromkeys(names, 1.0)) if names else None


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
    most = min(1.0, table.files.num_rows / int(table.budget_of(request.keys).sum()))
    fewer = table.scale_budgets(lambda each: np.maximum(1, np.rint(each * most)).astype(np.int64))
    refitted, _ = fewer.divide_rows(request.keys)
    columns = set(request.columns)
    without = [not all(columns & {part.column for part in box} for box in each.boxes)
               for each in newer]  # fmt: skip
    return Drift(
        filters=len(request.filters),
        promised=mean_share(refitted.shares(request.filters), request.filters),
        held=mean_share(table.current_files.shares(request.filters), request.filters),
        elsewhere=mean_share(np.array(without, np.float64), newer),
    )
