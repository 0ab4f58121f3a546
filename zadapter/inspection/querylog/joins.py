"""Joins in Spark's optimised plans: filtered tables whose keys a table of facts is joined with."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.key_types import is_key
from zadapter.base.names import NameParts, quote
from zadapter.base.quantities import show
from zadapter.inspection.dimension import Dimension, JoinedFilter
from zadapter.inspection.query_log import KeyRange, normalize, restricts
from zadapter.inspection.querylog.relations import find_roots, whole_relation
from zadapter.predicates.predicate import And
from zadapter.predicates.texts import conjuncts
from zadapter.spark.clone import to_rows
from zadapter.spark.compat.spark_api import arrow_schema, to_arrow
from zadapter.spark.jvm.gateway import Py4JJavaError
from zadapter.spark.jvm.scala import items
from zadapter.spark.where import predicate_of, split_conjuncts

JavaObject = Any
MOST_BYTES = 1 << 30
"""Maximum size of a joined table that is read, as Spark estimates it."""
MOST_VALUES = 200_000
"""Maximum number of combinations of the values of its filtered columns."""
MOST_TABLES = 16
"""Maximum number of joined tables that are read, each of them once if its values allow it."""
MOST_READS = 8
"""Maximum number of further reads of a table, each for filters on the same columns."""
TOO_LARGE = f"the table is larger than {show(MOST_BYTES)}"
TOO_MANY = f"the filtered columns have more than {MOST_VALUES:,} combinations of values"
NOT_ALONE = f"of a table with too many values, {MOST_READS} sets of columns are read at most"
NO_BOUNDS = "a column has a type without min and max"
UNREADABLE = "the table cannot be read"
NOT_AMONG = f"the tables that are read are {MOST_TABLES} at most"
_FAILURES = (PySparkException, Py4JJavaError, pa.ArrowException)
"""Errors of a joined table, which an advice does without."""
_FILTERED = {"INNER": (0, 1), "LEFT SEMI": (0,)}
"""Sides of a join that its other side filters, by the type of the join. DuckDB has no dynamic
filters for outer joins that keep the rows of the table of facts."""


@dataclass(frozen=True, slots=True)
class _Equality:
    """An equality of an attribute with a column of another part of a plan."""

    attribute: int
    """Number of the attribute."""
    key: JavaObject
    """The other column, an attribute of *other*."""
    other: JavaObject


@dataclass(frozen=True, slots=True)
class Joins:
    """Equalities of the joins above a node that filter the rows of the node."""

    equalities: tuple[_Equality, ...] = ()

    def below(self, jvm: JavaObject, node: JavaObject, kind: str, child: int) -> "Joins":
        """Return the equalities that filter a child; *kind* is the name of the node."""
        if kind == "Filter":
            return self
        if kind == "Project":
            found = (replace(each, attribute=_origin(jvm, node, each.attribute))
                     for each in self.equalities)  # fmt: skip
            return Joins(tuple(found))
        if kind != "Join" or child not in _FILTERED.get(str(node.joinType().sql()), ()):
            return Joins()
        return Joins((*self.equalities, *_equalities(jvm, node, child)))

    def of_scan(
        self, session: SparkSession, jvm: JavaObject, scan: JavaObject
    ) -> "tuple[Joined, ...]":
        """Return the filtered tables that a scan is joined with."""
        if not self.equalities:
            return ()
        names = {int(each.exprId().id()): str(each.name()) for each in items(jvm, scan.output())}
        found = (
            _read_other(session, jvm, each, (names[each.attribute],))
            for each in self.equalities
            if each.attribute in names
        )
        return tuple(each for each in found if each is not None)


@dataclass(frozen=True, slots=True)
class Joined:
    """A filtered table that a scan is joined with, and its relation in Spark."""

    filter: JoinedFilter
    node: JavaObject


def _equalities(jvm: JavaObject, node: JavaObject, child: int) -> Iterator[_Equality]:
    """Yield the equalities of a join between attributes of its sides."""
    mine, other = (node.left(), node.right()) if child == 0 else (node.right(), node.left())
    if node.condition().isEmpty():
        return
    attributes = {int(each.exprId().id()) for each in items(jvm, mine.output())}
    for part in split_conjuncts(node.condition().get()):
        if str(part.nodeName()) != "EqualTo":
            continue
        sides = [part.left(), part.right()]
        if not (_is_attribute(sides[0]) and _is_attribute(sides[1])):
            continue  # readers pass on no filter of an expression
        numbers = [int(each.exprId().id()) for each in sides]
        at = 0 if numbers[0] in attributes else 1
        yield _Equality(numbers[at], sides[1 - at], other)


def _is_attribute(expression: JavaObject) -> bool:
    return str(expression.getClass().getSimpleName()) == "AttributeReference"


def _origin(jvm: JavaObject, project: JavaObject, attribute: int) -> int:
    """Return the number of the attribute that a projection renames to an attribute."""
    for each in items(jvm, project.projectList()):
        is_alias = str(each.nodeName()) == "Alias" and _is_attribute(each.child())
        if is_alias and int(each.exprId().id()) == attribute:
            return int(each.child().exprId().id())
    return attribute


def _read_other(
    session: SparkSession, jvm: JavaObject, equality: _Equality, column: NameParts
) -> Joined | None:
    """Return the filtered table on the other side of a join; None: there is none."""
    node, number = equality.other, int(equality.key.exprId().id())
    conditions = list[JavaObject]()
    while (kind := str(node.nodeName())) in {"Filter", "Project"}:
        if kind == "Filter":
            conditions.append(node.condition())
        else:
            number = _origin(jvm, node, number)
        node = node.child()
    if not conditions:
        return None
    names = {int(each.exprId().id()): str(each.name()) for each in items(jvm, node.output())}
    try:
        roots = find_roots(session, node)
        if len(roots) != 1 or number not in names:
            return None
        schema = arrow_schema(to_rows(session, whole_relation(node)))
        parts = conjuncts(And(tuple(predicate_of(each, schema) for each in conditions)))
    except _FAILURES:  # as of a column that has a type that Arrow has not
        return None
    predicate = normalize(And(tuple(filter(restricts, parts))))
    found = JoinedFilter(column, roots[0], (names[number],), predicate)
    return Joined(found, node) if found.filtered else None


class _UnreadError(Exception):
    """The keys that filters leave are not known, for the reason that it states."""


def read_ranges(session: SparkSession, found: Sequence[Joined]) -> dict[JoinedFilter, KeyRange]:
    """Return the range of keys that each filter leaves; Spark reads each joined table once.

    A table is read once for each set of filtered columns, if all of these columns together have too
    many values.

    Args:
        session: The session whose tables these are.
        found: The filters. Those of the tables that come last may not be read.
    """
    tables: dict[str, dict[JoinedFilter, JavaObject]] = {}
    for each in found:
        tables.setdefault(each.filter.table, {}).setdefault(each.filter, each.node)
    ranges: dict[JoinedFilter, KeyRange] = {}
    for number, filters in enumerate(tables.values()):
        node = next(iter(filters.values()))
        if number < MOST_TABLES:
            ranges |= _find_ranges(session, node, list(filters))
        else:
            ranges |= _leave_unread(filters, NOT_AMONG)
    return ranges


def _find_ranges(
    session: SparkSession, node: JavaObject, filters: Sequence[JoinedFilter]
) -> dict[JoinedFilter, KeyRange]:
    """Return the ranges that filters of one table leave; all at once, or each set of columns."""
    sets: dict[tuple[NameParts, ...], list[JoinedFilter]] = {}
    for each in filters:
        sets.setdefault(each.filtered, []).append(each)
    try:
        return _read_together(session, node, filters)
    except _UnreadError as error:
        if len(sets) == 1 or str(error) not in {TOO_MANY, NO_BOUNDS}:
            return _leave_unread(filters, str(error))
    ranges: dict[JoinedFilter, KeyRange] = {}
    for number, same in enumerate(sorted(sets.values(), key=len, reverse=True)):
        if number < MOST_READS:
            ranges |= _find_ranges(session, node, same)
        else:
            ranges |= _leave_unread(same, NOT_ALONE)
    return ranges


def _leave_unread(filters: Iterable[JoinedFilter], reason: str) -> dict[JoinedFilter, KeyRange]:
    return {each: each.to_range(None, reason) for each in filters}


def _read_together(
    session: SparkSession, node: JavaObject, filters: Sequence[JoinedFilter]
) -> dict[JoinedFilter, KeyRange]:
    """Return the ranges that filters of one table leave, by one read.

    Raises:
        _UnreadError: They are not known.
    """
    ranges: dict[JoinedFilter, KeyRange] = {}
    try:
        for key, dimension in _read(session, whole_relation(node), filters).items():
            asked = [each for each in filters if each.key == key]
            found = dimension.find_ranges([each.predicate for each in asked])
            ranges |= {each: each.to_range(range_)
                       for each, range_ in zip(asked, found, strict=True)}  # fmt: skip
    except _FAILURES as error:
        raise _UnreadError(UNREADABLE) from error
    return ranges


def _read(
    session: SparkSession, relation: JavaObject, filters: Sequence[JoinedFilter]
) -> dict[NameParts, Dimension]:
    """Aggregate the keys of a table by all columns that filters restrict.

    Raises:
        _UnreadError: These have too many values, a column has no min and max, or it is too large.
    """
    if int(str(relation.stats().sizeInBytes())) > MOST_BYTES:
        raise _UnreadError(TOO_LARGE)
    columns = tuple(sorted({column for each in filters for column in each.filtered}))
    keys = sorted({each.key for each in filters})
    by = {f"c{at}": F.col(quote(column)) for at, column in enumerate(columns)}
    sums = [
        of(F.col(quote(key))).alias(f"{name}{at}")
        for at, key in enumerate(keys)
        for name, of in (("low", F.min), ("high", F.max), ("count", F.count))
    ]
    rows = to_rows(session, relation).groupBy(*(each.alias(name) for name, each in by.items()))
    table = to_arrow(rows.agg(*sums).limit(MOST_VALUES + 1))
    if not all(is_key(each.type) for each in table.columns):
        raise _UnreadError(NO_BOUNDS)
    if table.num_rows > MOST_VALUES:
        raise _UnreadError(TOO_MANY)
    values = {name: table[name].combine_chunks() for name in table.column_names}
    return {
        key: Dimension(
            columns=columns,
            values=tuple(values[name] for name in by),
            low=values[f"low{at}"],
            high=values[f"high{at}"],
            keys=values[f"count{at}"].to_numpy(zero_copy_only=False),
        )
        for at, key in enumerate(keys)
    }
