"""``zadapter plan`` and ``zadapter optimize``, of one table or of those in a file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import zadapter
from zadapter.base.printable import abridge
from zadapter.base.quantities import show_count
from zadapter.cli.calls import FunctionCall
from zadapter.cli.command_options import (
    Backend,
    Html,
    Plot,
    parameters,
    parse_options,
    parse_pairs,
)
from zadapter.cli.config import TableOptions, load
from zadapter.cli.error_messages import mention_change, message_of, report_change
from zadapter.cli.results import Result, as_json, check_paths, listing, with_pages
from zadapter.errors import UsageError
from zadapter.planning.options import KEYWORDS
from zadapter.report.write_result import format_versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zadapter.report.optimize_report import Report
    from zadapter.report.plan import Plan

SOME_FAILED = 3
"""Exit code if a table of a file failed."""
_Table = Annotated[
    str | None,
    typer.Argument(
        metavar="TABLE",
        help="A path, delta.`path`, or an identifier of Spark's catalog.",
        show_default=False,
    ),
]
_Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A TOML file of tables and their options, not TABLE."),
]
_BESIDE_A_FILE = {"config", "conf", "as_json", "quiet", "verbose"}


def _with_options(verb: Callable[..., FunctionCall]) -> Callable[..., FunctionCall]:
    """Replace ``**typed`` in the signature of a command by the options of optimize."""
    own = list(signature(verb).parameters.values())[:-1]
    head, tail = own[:2], own[2:]
    verb.__signature__ = Signature([*head, *parameters(), *tail])  # type: ignore[attr-defined]
    return verb


@_with_options
def cluster(
    *,
    context: typer.Context,
    table: _Table = None,
    config: _Config = None,
    backend: Backend = None,
    plot: Plot = None,
    html: Html = None,
    **typed: Any,
) -> FunctionCall:
    """Check the arguments, and return the call for one table or for the tables of a file."""
    function = str(context.info_name)
    if config is not None:
        _refuse_others(context)
        conf = parse_pairs(context.params["conf"] or (), "--conf")
        return _call(function, load(config, conf), config)
    if table is None:
        raise UsageError("TABLE is missing; pass a path or an identifier, or --config FILE")
    options = parse_options(table, typed)
    keywords = {key: getattr(options, key) for key in KEYWORDS} | {"backend": backend}
    check_paths(plot, html)
    return _call(function, [TableOptions(table, keywords)], pages=(plot, html))


def _refuse_others(context: typer.Context) -> None:
    for name in [name for name in context.params if name not in _BESIDE_A_FILE]:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            shown = "TABLE" if name == "table" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{shown} and --config exclude each other; set options in the file")


def _call(
    function: str,
    tables: Sequence[TableOptions],
    config: Path | None = None,
    pages: tuple[Path | None, Path | None] = (None, None),
) -> FunctionCall:
    backends = {options.keywords.get("backend") for options in tables}

    def run(spark: "SparkSession") -> Result:
        if config is not None:
            results = _one_by_one(function, tables, spark)
            done = [text for table, result in results if (text := _done(table, result))]
            return report_change(abridge(done, "; "), lambda: _together(results))
        result, table = _call_function(function, tables[0], spark), tables[0].table
        return report_change(_done(table, result), lambda: with_pages(result, table, *pages))

    return FunctionCall(
        function=function,
        tables=tuple(options.table for options in tables),
        backend=backends.pop() if len(backends) == 1 else None,
        run=run,
    )


def _call_function(function: str, options: TableOptions, spark: "SparkSession") -> "Plan | Report":
    result: Plan | Report = getattr(zadapter, function)(
        options.table, **options.keywords, spark=spark
    )
    return result


def _one_by_one(
    function: str, tables: Sequence[TableOptions], spark: "SparkSession"
) -> list[tuple[str, "Plan | Report | Exception"]]:
    """Return the results for several tables; an interrupt names those that are done."""
    results: list[tuple[str, Plan | Report | Exception]] = []
    try:
        for options in tables:
            results.append((options.table, _try_call(function, options, spark)))  # noqa: PERF401
    except KeyboardInterrupt as error:
        done = abridge([_done(table, result) or table for table, result in results]) or "none"
        error.args = (f"{str(error) or 'interrupted'}. Tables done before: {done}",)
        raise
    return results


def _try_call(
    function: str, options: TableOptions, spark: "SparkSession"
) -> "Plan | Report | Exception":
    """Return the result for one of several tables, or its error."""
    try:
        return _call_function(function, options, spark)
    except Exception as error:  # noqa: BLE001 - other tables do not suffer
        return error


def _done(table: str, result: "Plan | Report | Exception") -> str:
    """Return what was committed to a table; empty: nothing."""
    versions = getattr(result, "versions", ())
    return f"{table}: committed {format_versions(versions)}" if versions else ""


@dataclass(frozen=True)
class _Line:
    """A table in the report of several."""

    table: str
    document: dict[str, Any]
    texts: tuple[str, str, str]
    failed: bool = False


def _together(results: Sequence[tuple[str, "Plan | Report | Exception"]]) -> Result:
    lines = [_line(table, result) for table, result in results]
    failed = [line.table for line in lines if line.failed]
    done = f"{len(results) - len(failed)} of {show_count(len(results), 'tables')} done"
    return Result(
        documents=[as_json([line.document for line in lines])],
        table=listing(
            ["table", "files", "data scanned", "result"],
            [(line.table, *line.texts) for line in lines],
        ),
        note=f"{done}; failed: {abridge(failed)}" if failed else done,
        exit_code=SOME_FAILED if failed else 0,
    )


def _line(table: str, result: "Plan | Report | Exception") -> _Line:
    """Return a table's line; if its report fails, the line states this and what was committed."""
    if isinstance(result, Exception):
        return _failure_line(table, result)
    try:
        with mention_change(_done(table, result)):
            document = {"table": table, "result": result.to_dict()}
            as_json(document)
            return _Line(table, document, result.summary())
    except Exception as error:  # noqa: BLE001 - the lines of other tables do not suffer
        return _failure_line(table, error)


def _failure_line(table: str, error: Exception) -> _Line:
    message = message_of(error)
    document = {
        "table": table,
        "error": message,
        "class": type(error).__name__,
        "retryable": getattr(error, "retryable", False),
        "committed": getattr(error, "committed", None),
    }
    return _Line(table, document, ("", "", f"error: {message}"), failed=True)
