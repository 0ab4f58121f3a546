"""Query logs as values: the filters that queries apply to one table, and how much they weigh."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

import pyarrow as pa

from zadapter.base.names import NameParts, join
from zadapter.base.ranks import rank
from zadapter.errors import UsageError
from zadapter.predicates.boxes import boxes
from zadapter.predicates.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from zadapter.predicates.texts import conjuncts, text

SHOWN_REASONS = 5
"""Maximum number of reasons that an error names."""
SLICES = 16
"""Number of consecutive parts of a log, by which it can be divided into older and newer queries."""

HOLDOUT = 0.5
"""Share of a log that layouts are judged by, unless a caller states one."""


@dataclass(frozen=True, slots=True)
class Top:
    """The first rows in the order of a column, as ``ORDER BY ts DESC LIMIT 10`` asks for."""

    column: NameParts
    rows: int
    descending: bool

    def __str__(self) -> str:
        order = f"{join(self.column)} DESC" if self.descending else join(self.column)
        return f"ORDER BY {order} LIMIT {self.rows}"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The range of a column in which the keys lie that a join with a filtered table leaves."""

    column: NameParts
    """The column that is joined."""
    through: str
    """The joined table and its filtered columns."""
    low: pa.Scalar | None
    """The lowest key of the rows that match; None: the joined table was not read."""
    high: pa.Scalar | None
    """The highest one."""
    matching: float
    """Share of the keys that match; 1 if unknown."""
    unread: str = ""
    """Why the joined table was not read; empty: it was."""


@dataclass(frozen=True, slots=True)
class LoggedFilter:
    """A filter that queries of a log apply to the table."""

    predicate: Predicate
    sql: str
    """The filter as text for people; long values and lists are cut."""
    weights: tuple[float, ...]
    """Sum of the weights of its entries in each part of the log, oldest first."""
    entries: int
    """Number of entries with this filter, in the whole log."""
    top: Top | None = None
    """Which of the rows that match the queries ask for; None: all of them."""
    ranges: tuple[KeyRange, ...] = ()
    """Ranges of keys by which joins filter the table, besides the predicate."""
    query: int | None = None
    """Number of the first query of the log that has it, with whatever limit; None: unknown."""

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return fsum(self.weights)


@dataclass(frozen=True, slots=True)
class QueryLog:
    """The filters of a log."""

    filters: tuple[LoggedFilter, ...]
    """Distinct filters, heaviest first."""
    entries: int
    """Number of entries, with those that are not used."""
    unused: Mapping[str, int]
    """Number of entries that have no usable filter, by reason, most frequent first."""
    days: float | None = None
    """Days that the log covers; None if it is unknown. If known, weights are numbers of queries."""
    queries_a_weight: float = 1.0
    """Number of queries that a weight of 1 stands for, at least."""

    def unusable(self, table: str, lacks: str) -> str:
        """Return the message about a log without a usable filter.

        Args:
            table: Name of the table.
            lacks: What its queries do not filter the table by.
        """
        most = list(self.unused.items())[:SHOWN_REASONS]
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in most)
        detail = f" ({reasons})" if reasons else ""
        return (
            f"no query of the log filters {table} by {lacks}{detail}; pass queries that name this "
            "table, or conditions on its columns"
        )

    @property
    def a_day(self) -> float | None:
        """Number of filters that its queries apply a day; None if it is unknown."""
        return fsum(each.weight for each in self.filters) / self.days if self.days else None

    def split(self, holdout: float) -> tuple["QueryLog", "QueryLog"]:
        """Divide the log by time into an older and a newer part.

        The newer part has about the share *holdout* of the weight. Both parts have at least one of
        the ``SLICES`` parts of the log. If all filters lie in the same part, both results are the
        whole log. ``entries`` and ``unused`` of the results describe the whole log.

        Args:
            holdout: Share of the newer part, between 0 and 1.

        Returns:
            The older part and the newer part.

        Raises:
            UsageError: The share is not between 0 and 1.
        """
        if not 0 < holdout < 1:
            raise UsageError(f"holdout= must be a share between 0 and 1, not {holdout!r}")
        by_slice = [fsum(found.weights[at] for found in self.filters) for at in range(SLICES)]
        cut = find_cut(by_slice, holdout)
        if cut is None:
            return self, self
        return self._part(range(cut)), self._part(range(cut, SLICES))

    def _part(self, kept: range) -> "QueryLog":
        """Return the log with the weights of some of its parts."""
        parts = (
            replace(f, weights=tuple(w if at in kept else 0.0 for at, w in enumerate(f.weights)))
            for f in self.filters
        )
        return replace(self, filters=heaviest_first(part for part in parts if part.weight > 0))


def find_cut(by_slice: Sequence[float], holdout: float) -> int | None:
    """Return the first of the parts of a log that are its newer part; None: they all are.

    Args:
        by_slice: Sum of the weights in each part, oldest first.
        holdout: Share of the weight that the newer part has, as nearly as can be.
    """
    newer = [fsum(by_slice[at:]) for at in range(len(by_slice))]
    cuts = [at for at in range(1, len(by_slice)) if newer[at] > 0 and fsum(by_slice[:at]) > 0]
    return min(cuts, key=lambda at: abs(newer[at] - holdout * newer[0])) if cuts else None


def heaviest_first(filters: Iterable[LoggedFilter]) -> tuple[LoggedFilter, ...]:
    """Return filters by descending weight; equal ones by their text."""
    return tuple(sorted(filters, key=lambda found: (-found.weight, found.sql)))


def normalize(predicate: Predicate) -> Predicate:
    """Return a filter in a form that is the same however a query orders its conditions.

    Conditions and listed values are ordered and freed of repetitions. ``IS NOT NULL``, which Spark
    adds to comparisons, is left out where a comparison of the same column implies it. The filter
    selects the same rows.
    """
    parts = dict.fromkeys(map(_in_order, conjuncts(predicate)))
    leaves = [part.part if isinstance(part, Not) else part for part in parts]
    compared = {leaf.column for leaf in leaves if isinstance(leaf, Comparison | In | StartsWith)
                and not (isinstance(leaf, Comparison) and leaf.op == "<=>")}  # fmt: skip
    kept = [
        part
        for part in parts
        if not (_is_not_null(part) and _find_non_null_column(part) in compared)
    ]
    ordered = sorted(kept, key=text)
    return ordered[0] if len(ordered) == 1 else And(tuple(ordered))


def _in_order(part: Predicate) -> Predicate:
    """Return a part of a conjunction with its own parts and values in order."""
    match part:
        case In(column, values, has_null):
            return In(column, _distinct(values), has_null)
        case Not(In() as listed):
            return Not(_in_order(listed))
        case Or(parts):
            sides = dict.fromkeys(map(normalize, parts))
            return Or(tuple(sorted(sides, key=text)))
    return part


def _distinct(values: Sequence[pa.Scalar]) -> tuple[pa.Scalar, ...]:
    """Return values in their order, without repetitions."""
    # as Arrow's values: Python has no dates before the year 1 and after 9999
    return tuple(rank(pa.array(values, values[0].type)).distinct) if values else ()


def _is_not_null(predicate: Predicate) -> bool:
    return isinstance(predicate, Not) and isinstance(predicate.part, IsNull)


def _find_non_null_column(predicate: Predicate) -> object:
    match predicate:
        case Not(IsNull(column)):
            return column
    return None


def restricts(predicate: Predicate) -> bool:
    """Return whether a layout can spare a query with this filter any files.

    ``IS NOT NULL`` does not count, since Spark adds it to every join.
    """
    match predicate:
        case And(parts):
            return any(map(restricts, parts))
        case Or(parts):
            return all(map(restricts, parts))
        case Not(part):
            return _excludes(part)
        case Constant(value):
            return value is not True
    return isinstance(predicate, IsNull) or _compares(predicate)


def _excludes(part: Predicate) -> bool:
    """Return whether the negation of *part* restricts."""
    match part:
        case And(parts):
            return all(map(_excludes, parts))
        case Or(parts):
            return any(map(_excludes, parts))
        case Not(inner):
            return restricts(inner)
        case Constant(value):
            return value is not False
    return _compares(part)


def _compares(leaf: Predicate) -> bool:
    """Return whether bounds can exclude files for a condition.

    An empty prefix matches every text, so it excludes none.
    """
    if isinstance(leaf, StartsWith):
        return leaf.prefix != ""
    return isinstance(leaf, Comparison | In)


def matches_nothing(predicate: Predicate) -> bool:
    """Return whether a filter is false or null for every row, as its constants and ranges show."""
    return not boxes(predicate)
