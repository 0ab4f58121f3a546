"""``register_procedures``: the public functions as procedures of Spark's SQL."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import SparkSession

from zadapter.api.advise import advise
from zadapter.api.analyze import analyze
from zadapter.api.explain import explain
from zadapter.api.history import history
from zadapter.api.optimize import optimize, plan
from zadapter.errors import UsageError
from zadapter.inspection.advice import Advice
from zadapter.inspection.analysis import Analysis
from zadapter.inspection.explanation import Explanation
from zadapter.planning.options import AUTO, plain_type
from zadapter.report.facts import Facts
from zadapter.report.optimize_report import Report
from zadapter.report.plan import Plan
from zadapter.spark import procedure_calls, sessions
from zadapter.spark.procedure_calls import Procedure
from zadapter.table.snapshot import Commit

Row = Mapping[str, Any]

_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING"}
"""Types of parameters in SQL."""
NESTED_TYPES = {
    **dict.fromkeys(("by", "queries", "bloom_filters"), "ARRAY<STRING>"),
    "tiers": "MAP<STRING, MAP<STRING, STRING>>",
}
"""Types of parameters that are more than one value."""
PYTHON_ONLY = {"spark", "backoff", "candidates"}
"""Parameters of functions that procedures do not have."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_READ = "table STRING, format STRING, version BIGINT"
_REPORT = "report STRING"
"""The last column: the whole result, as the command line prints it with --json."""
_OPTIMIZED = (
    "table STRING, version BIGINT, versions ARRAY<BIGINT>, files_removed BIGINT, "
    "files_added BIGINT, bytes_removed BIGINT, bytes_added BIGINT, rows_added BIGINT, "
    "share_before DOUBLE, share_after DOUBLE, seconds DOUBLE"
)
_PLANNED = (
    "columns ARRAY<STRING>, curve STRING, files_before BIGINT, files_rewritten BIGINT, "
    "files_written BIGINT, bytes_rewritten BIGINT, rows BIGINT, share_before DOUBLE, "
    "share_after DOUBLE, gain DOUBLE"
)
_ANALYZED = (
    "by ARRAY<STRING>, files BIGINT, rows BIGINT, bytes BIGINT, small_files BIGINT, "
    "share DOUBLE, due BOOLEAN, verdict STRING"
)
_EXPLAINED = (
    "files BIGINT, rows BIGINT, bytes BIGINT, files_kept BIGINT, rows_kept BIGINT, "
    "bytes_kept BIGINT"
)
_ADVISED = (
    "by ARRAY<STRING>, bloom_filters ARRAY<STRING>, entries BIGINT, filters BIGINT, rows BIGINT"
)
_COMMIT = (
    "version BIGINT, timestamp TIMESTAMP, operation STRING, id STRING, files_added BIGINT, "
    "files_removed BIGINT, rows_added BIGINT, rows_removed BIGINT"
)


def register_procedures(spark: SparkSession | None = None) -> None:
    """Let statements ``CALL zadapter.system.optimize(...)`` of Spark's SQL call zadapter.

    The procedures ``optimize``, ``plan``, ``analyze``, ``explain``, ``advise`` and ``history`` take
    the arguments of the functions with these names. They run in this process, in the session of the
    statement: that of *spark*, or one that Spark makes later, such as one for a client of the
    Thrift server or of a Spark Connect server in this process. A second call changes nothing.

    Example:
        ```python
        zadapter.register_procedures(spark)
        spark.sql("CALL zadapter.system.plan(table => 'lake/events')").show()
        ```

    Args:
        spark: A Spark session. Defaults to the running session, or a new one.

    Raises:
        SessionError: Spark is older than 4.0, or the session is stopped.
        UsageError: The session has another catalog named ``zadapter``.
    """
    session = sessions.default({}, None, ()) if spark is None else spark
    procedure_calls.register(session, PROCEDURES)


def _document(result: Facts) -> dict[str, Any]:
    """Return the fields of a result as JSON values, and all of them as ``report``."""
    document = result.to_dict()
    return {**document, "report": json.dumps(document, default=str)}


def _optimized(report: Report) -> Row:
    measured = {"share_before": report.share_before, "seconds": report.seconds.get("total")}
    return {**_document(report), **measured, **_unknown(report.plan)}


def _planned(plan: Plan) -> Row:
    return {**_document(plan), **_unknown(plan)}


def _unknown(plan: Plan) -> Row:
    """Return NULL for figures that a plan lacks, as zeros would be read as measured.

    A compaction has no key columns, and no filters are drawn if there is nothing to do.
    """
    if plan.columns and (plan.nothing_to_gain or not plan.nothing_to_do):
        return {}
    curve = {} if plan.columns else {"curve": None}
    return {**dict.fromkeys(("share_before", "share_after", "gain")), **curve}


def _analyzed(analysis: Analysis) -> Row:
    totals = analysis.totals
    counts = {"files": totals.files, "rows": totals.rows, "bytes": totals.bytes}
    return {**_document(analysis), **counts, "due": analysis.due, "verdict": analysis.verdict}


def _explained(explanation: Explanation) -> Row:
    totals, kept = explanation.totals, explanation.kept
    counts = {"files": totals.files, "rows": totals.rows, "bytes": totals.bytes}
    left = {"files_kept": kept.files, "rows_kept": kept.rows, "bytes_kept": kept.bytes}
    return {**_document(explanation), **counts, **left}


def _advised(advice: Advice) -> Row:
    keys = None if advice.best is None else [*advice.best.weights]
    return {**_document(advice), "by": keys, "bloom_filters": [*advice.bloom_filters]}


def _committed(commit: Commit) -> Row:
    microseconds = (commit.timestamp - _EPOCH) // timedelta(microseconds=1)
    return {**asdict(commit), "timestamp": microseconds}


def _procedure(
    function: Callable[..., Any],
    columns: str,
    rows: Callable[[Any], list[Row]],
    *,
    writes: bool = False,
) -> Procedure:
    """Return a public function as a procedure.

    Args:
        function: The function.
        columns: Columns of its rows, in DDL.
        rows: Returns the rows for its result.
        writes: Whether it can commit.
    """
    name = function.__name__
    every = inspect.signature(function).parameters.values()
    parameters = [each for each in every if each.name not in PYTHON_ONLY]
    required = [each.name for each in parameters if each.default is each.empty]

    def run(session: SparkSession, given: Row) -> list[Row]:
        for parameter in ("where", *required):
            if parameter in given and given[parameter] is None:
                raise UsageError(f"{parameter} is NULL; expected a value")
        return rows(function(**_arguments(name, given), spark=session))

    declared = ", ".join(map(_declare, parameters))
    return Procedure(
        name=name,
        description=f"{_describe(function)} Arguments: {declared.replace('`', '')}",
        parameters=declared,
        columns=columns,
        run=run,
        writes=writes,
    )


def _declare(parameter: inspect.Parameter) -> str:
    """Return a parameter as a column in DDL, with the type that its annotation has in SQL."""
    plain = _TYPES[plain_type(parameter.annotation)]
    type_ = NESTED_TYPES.get(parameter.name, plain)
    return f"`{parameter.name}` {type_}" + (
        " NOT NULL" if parameter.default is parameter.empty else ""
    )


def _describe(function: Callable[..., Any]) -> str:
    """Return the first line of a function's documentation, with words for the arguments."""
    line = str(inspect.getdoc(function)).partition("\n")[0]
    words = {"*table*": "a table", "*by*": "its key columns", ":func:": "", "*": ""}
    for marked, word in words.items():
        line = line.replace(marked, word)
    return line


def _arguments(name: str, given: Row) -> Row:
    """Return the arguments of a function for those of a statement.

    NULL stands for an argument that is omitted. One text in ``queries`` may be the path of a log.
    ``queries`` alone choose the key columns.
    """
    given = {key: value for key, value in given.items() if value is not None}
    queries = given.get("queries")
    if queries is None:
        return given
    chosen = {"by": AUTO} if name in {"optimize", "plan"} and "by" not in given else {}
    return {**given, **chosen, "queries": queries[0] if len(queries) == 1 else queries}


def _one(row: Callable[[Any], Row]) -> Callable[[Any], list[Row]]:
    return lambda result: [row(result)]


PROCEDURES = (
    _procedure(optimize, f"{_OPTIMIZED}, {_REPORT}", _one(_optimized), writes=True),
    _procedure(plan, f"{_READ}, {_PLANNED}, {_REPORT}", _one(_planned)),
    _procedure(analyze, f"{_READ}, {_ANALYZED}, {_REPORT}", _one(_analyzed)),
    _procedure(explain, f"{_READ}, {_EXPLAINED}, {_REPORT}", _one(_explained)),
    _procedure(advise, f"{_READ}, {_ADVISED}, {_REPORT}", _one(_advised)),
    _procedure(history, _COMMIT, lambda commits: [*map(_committed, commits)]),
)
"""The procedures of the catalog."""
