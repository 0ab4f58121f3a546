"""Queries that Spark plans, and the filters that reach the table in the optimised plan.

Nothing is executed. A temporary view with the table's name, over a relation with the table's
columns and unknown rows, stands for the table in the texts. Views of the session that lead to the
table's files lead to the relation of the format, which counts, too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from zadapter.base.names import NameParts, quote
from zadapter.inspection.query_log import Top
from zadapter.inspection.querylog.column_conditions import Columns
from zadapter.inspection.querylog.entries import NO_TEXT, OTHER_TABLE
from zadapter.inspection.querylog.joins import Joined, Joins
from zadapter.inspection.querylog.relations import find_roots
from zadapter.inspection.querylog.spark_plans import convert_iceberg_filters
from zadapter.inspection.querylog.spelling import Spelling, spelling, without_comments
from zadapter.inspection.querylog.top_rows import TopRows
from zadapter.predicates.predicate import And, Predicate
from zadapter.spark.clone import set_all, to_rows
from zadapter.spark.jvm.gateway import (
    Py4JJavaError,
    analyzed_plan,
    is_instance,
    java_session,
)
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import items
from zadapter.spark.where import hide_rows, predicate_of
from zadapter.table.snapshot import Snapshot

JavaObject = Any
WITHOUT_JOBS = {
    # rules of the optimiser that would read files of the tables that queries join
    "spark.databricks.delta.stats.skipping": "false",
    "spark.sql.iceberg.aggregate-push-down.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.metadataOnly": "false",
}
PARSE = "a text that Spark cannot parse"
NO_QUERY = "a statement that reads no rows"
NO_ROWS = "a filter that no row can match"
_STATEMENTS = {
    *("select", "with", "from", "table", "values", "insert", "create", "replace", "delete"),
    *("update", "merge", "map", "reduce", "explain", "show", "describe", "desc", "drop", "alter"),
    *("set", "use", "refresh", "analyze", "truncate", "cache", "optimize", "vacuum", "call"),
    *("grant", "revoke", "uncache", "clear", "reset", "msck", "begin", "execute", "declare"),
}
"""First words of statements."""
_FIRST_WORD = re.compile(r"[\s(]*([a-z]*)", re.IGNORECASE)
_REASONS = {
    "TABLE_OR_VIEW_NOT_FOUND": ("table not found", "relationName"),
    "UNRESOLVED_COLUMN": ("column that does not exist", "objectName"),
    "FIELD_NOT_FOUND": ("column that does not exist", "fieldName"),
    "UNRESOLVED_ROUTINE": ("function not found", "routineName"),
}
_CATALYST = "org.apache.spark.sql.catalyst.plans.logical."


class UnusableError(Exception):
    """A text has no filter of the table; the message is the reason."""


@dataclass(frozen=True, slots=True)
class ScanRead:
    """What a query asks of a scan of the table."""

    predicate: Predicate
    """The filter of the scan."""
    top: Top | None = None
    """Which of the rows that match the query asks for; None: all of them."""
    joined: tuple[Joined, ...] = ()
    """Filtered tables that the scan is joined with."""


@dataclass(frozen=True, slots=True)
class Planner:
    """A session in which a view stands for the table."""

    session: SparkSession
    snapshot: Snapshot
    spelling: Spelling
    columns: Columns
    rdd: int
    """Id of the RDD of the view."""
    joins: bool
    """Whether filtered tables are found that the table is joined with."""

    def filters(self, text: str) -> list[ScanRead]:
        """Return what a query asks of each scan of the table, or a condition's filter.

        Raises:
            UnusableError: The text cannot be planned, or reads another table.
        """
        bare = without_comments(text).strip().rstrip(";")
        if not bare:
            raise UnusableError(NO_TEXT)
        if not is_statement(bare):
            return self.condition(bare)
        try:
            return self._find_predicates(self.spelling.replace_table(bare))
        except UnusableError as error:
            if error.args != (PARSE,):
                raise
        return self.condition(bare)  # a column may have the name of a statement

    def condition(self, text: str) -> list[ScanRead]:
        """Return the filter of a condition on the table.

        Raises:
            UnusableError: The condition cannot be planned.
        """
        view = quote((self.spelling.view,))
        # without an alias, WHERE (a) would be one, with a column
        named = f"{view} AS {view} WHERE ({self.spelling.replace_table(text)}\n)"
        return self._find_predicates(f"SELECT * FROM {named}")  # noqa: S608 - it is planned only

    def _find_predicates(self, text: str) -> list[ScanRead]:
        try:
            state: Any = java_session(self.session).sessionState()
            jvm = java_classes(self.session)
            parsed = _query(jvm, state.sqlParser().parsePlan(text))
            skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
            execution = state.executePlan(parsed, skip)
            plan = execution.optimizedPlan()
            return list(self._scans(plan)) or self._no_scans(execution.analyzed())
        except ParseException as error:
            raise UnusableError(PARSE) from error
        except (PySparkException, Py4JJavaError) as error:
            raise UnusableError(_reason(error)) from error

    def _no_scans(self, analysed: JavaObject) -> NoReturn:
        """Find out why the optimised plan has no scan of the table.

        Raises:
            UnusableError: Always.
        """
        if any(self._is_table(plan) for plan in self._plans(analysed)):
            raise UnusableError(NO_ROWS)
        is_command = is_instance(self.session, analysed, f"{_CATALYST}Command")
        raise UnusableError(NO_QUERY if is_command else OTHER_TABLE)

    def _scans(self, plan: JavaObject) -> Iterator[ScanRead]:
        """Yield what is asked of each scan of the table in an optimised plan."""
        jvm = java_classes(self.session)
        pending: list[tuple[JavaObject, tuple[JavaObject, ...], TopRows, Joins]] = [
            (root, (), TopRows(), Joins()) for root in (plan, *items(jvm, plan.subqueriesAll()))
        ]
        while pending:
            node, conditions, rows, joins = pending.pop()
            children = node.children()
            if children.isEmpty() and self._is_table(node):
                filters = [predicate_of(each, self.snapshot.schema) for each in conditions]
                predicate = And((*filters, *self._within(node)))
                joined = joins.of_scan(self.session, jvm, node)
                yield ScanRead(predicate, rows.of_scan(jvm, node), joined)
            kind = str(node.nodeName())
            below = (*conditions, node.condition()) if kind == "Filter" else ()
            rows = rows.below(jvm, node, kind)
            pending.extend(
                (
                    children.apply(at),
                    below,
                    rows,
                    joins.below(jvm, node, kind, at) if self.joins else joins,
                )
                for at in range(children.size())
            )

    def _plans(self, plan: JavaObject) -> Iterator[JavaObject]:
        """Yield all nodes of an analysed plan."""
        jvm = java_classes(self.session)
        pending = [plan, *items(jvm, plan.subqueriesAll())]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(items(jvm, node.children()))

    def _is_table(self, leaf: JavaObject) -> bool:
        """Return whether a relation is the table, or the view that stands for it."""
        if leaf.getClass().getSimpleName() == "LogicalRDD":
            return int(leaf.rdd().id()) == self.rdd
        roots = find_roots(self.session, leaf)
        return bool(roots) and all(map(self.spelling.is_location, roots))

    def _within(self, leaf: JavaObject) -> list[Predicate]:
        """Return the filters that a scan of Iceberg has taken over, such as those of partitions."""
        if leaf.getClass().getSimpleName() != "DataSourceV2ScanRelation":
            return []
        taken = iceberg_filters(str(leaf.scan().toString()))
        found = self.condition(convert_iceberg_filters(taken, self.columns)) if taken else []
        return [each.predicate for each in found]


def planner(session: SparkSession, snapshot: Snapshot, rows: DataFrame, *, joins: bool) -> Planner:
    """Register the view that stands for the table in a cloned session.

    Args:
        session: A clone of the user's session; its settings change.
        snapshot: The table.
        rows: The table's rows, in any session.
        joins: Whether filtered tables are found that the table is joined with.
    """
    set_all(session, WITHOUT_JOBS)
    names = spelling(snapshot, partial(is_in_catalog, session))
    unknown = hide_rows(to_rows(session, analyzed_plan(rows)))
    unknown.createOrReplaceTempView(quote((names.view,)))
    rdd = int(analyzed_plan(unknown).rdd().id())
    return Planner(session, snapshot, names, Columns(rows.schema), rdd, joins)


def is_in_catalog(session: SparkSession, parts: NameParts) -> bool:
    """Return whether a catalog of the session has a table or view of a name."""
    try:
        return session.catalog.tableExists(quote(parts))
    except (PySparkException, Py4JJavaError):
        return False


def is_statement(text: str) -> bool:
    """Return whether a text begins as a statement does; any other text is a condition."""
    word = str(_FIRST_WORD.match(without_comments(text))[1])  # type: ignore[index]
    return word.lower() in _STATEMENTS


def iceberg_filters(text: str) -> str:
    """Return the filters in the text of a scan of Iceberg; empty if there are none."""
    match = re.search(
        r"(?s)\bfilters=(.*?)(?:, (?:runtimeFilters|runtimeFilter|groupedBy|pushedLimit)=|\]?\)?$)",
        text,
    )
    return match[1] if match else ""


def _query(jvm: JavaObject, parsed: JavaObject) -> JavaObject:
    """Return the query of a statement that writes its rows, or the filter of one that deletes."""
    logical = jvm.org.apache.spark.sql.catalyst.plans.logical
    kind = str(parsed.getClass().getSimpleName())
    if kind in {"InsertIntoStatement", "CreateTableAsSelect", "ReplaceTableAsSelect"}:
        return parsed.query()
    if kind == "InsertIntoDir":
        return parsed.child()
    if kind == "DeleteFromTable":
        return logical.Filter(parsed.condition(), parsed.table())
    if kind == "UpdateTable" and parsed.condition().isDefined():
        return logical.Filter(parsed.condition().get(), parsed.table())
    return parsed


def _reason(error: Exception) -> str:
    """Return the reason why a text cannot be planned."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition is None or not isinstance(error, PySparkException):
        return "a query that Spark cannot plan"
    for start, (reason, name) in _REASONS.items():
        if condition.startswith(start):
            shown = str((error.getMessageParameters() or {}).get(name, ""))
            return f"{reason}: {shown.replace('`', '')}"
    return f"a query that Spark cannot plan: {condition}"
