"""How often the queries of a log read each of many tables, by one pass over the log."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import fsum
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from zadapter.base.locations import path_of
from zadapter.base.names import NameParts, quote, split
from zadapter.errors import UsageError
from zadapter.inspection.query_log import HOLDOUT, SLICES, find_cut
from zadapter.inspection.querylog.entries import EntryGroup, Scan
from zadapter.inspection.querylog.plans import WITHOUT_JOBS, is_statement
from zadapter.inspection.querylog.relations import find_roots
from zadapter.inspection.querylog.sources import Queries, read_entries
from zadapter.inspection.querylog.spelling import Spelling, without_comments
from zadapter.spark.clone import scratch, set_all
from zadapter.spark.jvm import spark_names
from zadapter.spark.jvm.gateway import Py4JJavaError, analyzed_plan, java_session
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import items

_NODE = r"(?m)^[\s:|+-]*"
_RELATION = re.compile(_NODE + r"(?:'?RelationTimeTravel )?'?UnresolvedRelation \[(.*?)\], \[")
"""A table in the text of a plan. The target of an ``INSERT`` is none: its rows are not read."""
_COMMON = re.compile(_NODE + r"CTE \[(.*)\]$")
"""Names that ``WITH`` defines."""


def count_reads(
    queries: Queries, tables: Mapping[str, Spelling], session: SparkSession
) -> dict[str, float]:
    """Return the weight of the scans of each table that the newer half of a log has.

    Spark parses each distinct text, and plans none: a table counts if a text names it, or a view of
    the session that reads it. Where an engine has reported its scans, these count. A name that
    several tables may have counts for the one of which it matches most parts; equal ones share it.
    Conditions without a query name no table, and do not count.

    Args:
        queries: The log, as for :func:`zadapter.advise`.
        tables: The names of each table, by a key.
        session: The session whose views the queries refer to.

    Raises:
        UsageError: The log has no known form, cannot be read or is empty.
    """
    sums = {table: [0.0] * SLICES for table in tables}
    with scratch(session, expressions=True) as clone:
        set_all(clone, WITHOUT_JOBS)
        reader = _Reader(clone, Names(tables))
        for group in read_entries(queries, clone, "").groups:
            for table, share in reader.find_scans(group):
                sums[table] = [
                    found + weight * share
                    for found, weight in zip(sums[table], group.weights, strict=True)
                ]
    cut = find_cut([fsum(column) for column in zip(*sums.values(), strict=True)], HOLDOUT) or 0
    return {table: fsum(weights[cut:]) for table, weights in sums.items()}


class Names:
    """The tables that a name or a location may mean."""

    def __init__(self, tables: Mapping[str, Spelling]) -> None:
        """Index the tables by what the names and the folders of all their spellings have."""
        self._spellings = tables
        self._by_name: dict[str, list[str]] = {}
        for table, spelling in tables.items():
            folder = _folders(spelling.location)[-1:]
            for name in {spelling.view.lower(), *(each.lower() for each in folder)}:
                self._by_name.setdefault(name, []).append(table)

    def of_name(self, parts: NameParts) -> Sequence[str]:
        """Return the tables that a name means: those of which it matches most parts."""
        at_path = len(parts) == 2 and "/" in parts[1]  # noqa: PLR2004 - as in delta.`/a/b`
        if at_path and parts[0].lower() in {"delta", "iceberg", "parquet"}:
            return self.of_location(parts[1])
        found = [
            table
            for table in self._by_name.get(parts[-1].lower(), ())
            if self._spellings[table].is_table(parts)
        ]
        matched = [self._count_parts(self._spellings[table], parts) for table in found]
        return [table for table, count in zip(found, matched, strict=True) if count == max(matched)]

    def of_location(self, location: str) -> Sequence[str]:
        """Return the tables whose files are at a location."""
        near = {
            table
            for folder in _folders(path_of(location))
            for table in self._by_name.get(folder.lower(), ())
        }
        return [table for table in near if self._spellings[table].is_location(location)]

    @staticmethod
    def _count_parts(spelling: Spelling, parts: NameParts) -> int:
        """Return how many parts of a name a table has, from the last one on."""
        known = spelling.names if spelling.registered else _folders(spelling.location)
        pairs = zip(reversed(parts), reversed(known), strict=False)
        same = [part.lower() == name.lower() for part, name in pairs]
        return same.index(False) if False in same else len(same)


def _folders(location: str) -> list[str]:
    return [name for name in location.split("/") if name]


class _Reader:
    """Finds the tables that entries of a log read."""

    def __init__(self, session: SparkSession, names: Names) -> None:
        self._session = session
        self._names = names
        self._of_name: Callable[[NameParts], Sequence[str]] = cache(self._find_named)

    def find_scans(self, group: EntryGroup) -> Iterator[tuple[str, float]]:
        """Yield the tables of the scans of a query, each with its share of the scan."""
        scans = [self._of_scan(scan) for scan in group.scans]
        if not any(scans):
            scans = [self._of_name(parts) for parts in self._names_in(group.text)]
        for tables in scans:
            yield from ((table, 1 / len(tables)) for table in tables)

    def _of_scan(self, scan: Scan) -> Sequence[str]:
        if scan.location:
            return self._names.of_location(scan.location)
        try:
            return self._names.of_name(split(scan.table)) if scan.table else ()
        except UsageError:
            return ()

    def _names_in(self, text: str) -> list[NameParts]:
        """Return the tables and views that a text reads, as it names them."""
        bare = without_comments(text).strip().rstrip(";")
        if not bare or not is_statement(bare):
            return []
        try:
            state: Any = java_session(self._session).sessionState()
            return names_read(str(state.sqlParser().parsePlan(bare).treeString()))
        except (PySparkException, Py4JJavaError):
            return []

    def _find_named(self, parts: NameParts) -> Sequence[str]:
        """Return the tables that a name means, or that the view of this name reads."""
        if found := self._names.of_name(parts):
            return found
        try:
            return list(self._read_by_view(parts)) if self._is_view(parts) else ()
        except spark_names.JVM_ERRORS:  # the view, or its catalog, is broken
            return ()

    def _is_view(self, parts: NameParts) -> bool:
        if spark_names.is_temporary_view(self._session, parts):
            return True
        name = spark_names.resolve(self._session, parts)
        return spark_names.provider(self._session, name) == "view"

    def _read_by_view(self, parts: NameParts) -> Iterator[str]:
        plan = analyzed_plan(self._session.table(quote(parts)))
        for leaf in items(java_classes(self._session), plan.collectLeaves()):
            for root in find_roots(self._session, leaf):
                yield from self._names.of_location(root)


def names_read(plan: str) -> list[NameParts]:
    """Return the names of tables in the text of a parsed plan, once for each scan."""
    defined = {name for names in _COMMON.findall(plan) for name in names.lower().split(", ")}
    found = [tuple(names.split(", ")) for names in _RELATION.findall(plan)]
    return [parts for parts in found if len(parts) > 1 or parts[0].lower() not in defined]
