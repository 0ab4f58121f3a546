"""``zadapter advise``, ``analyze``, ``explain`` and ``audit``."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

import zadapter
from zadapter.cli.calls import FunctionCall
from zadapter.cli.command_options import Backend, Html, Plot, Table, Where, parse_by
from zadapter.cli.error_messages import report_change
from zadapter.cli.layout_checks import GAIN, find_exceeded, parse_checks
from zadapter.cli.results import Result, check_paths, with_pages
from zadapter.errors import UsageError
from zadapter.planning.options import Options, check_where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FOUND = 3
"""Exit code if a table exceeds a bound of ``--check``, or if stats are unsound."""
SAMPLE_FILES = 64
"""Default of :func:`zadapter.analyze`."""

_By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Key columns as for optimize; by default, the table's current keys.",
    ),
]
_Queries = Annotated[
    list[str] | None,
    typer.Option(
        "--queries",
        "--query",
        metavar="PATH|SQL",
        help="A query log as for advise, or a condition or query to judge; repeatable.",
    ),
]
_Matches = Annotated[
    bool,
    typer.Option("--matches", help="Also read opened files, and count files without a match."),
]
_RowGroups = Annotated[
    bool, typer.Option("--row-groups", help="Also read footers, and count row groups.")
]
_SampleFiles = Annotated[
    int, typer.Option(min=1, metavar="N", help="Read the footers of at most this many files.")
]
_Check = Annotated[
    list[str] | None,
    typer.Option(
        metavar="gain=SHARE|scanned=SHARE|depth=FILES",
        help="Exit with code 3 if a rewrite saves this share of the data scanned by range filters, "
        "if they scan more than a share of the rows, or if more files overlap; repeatable.",
    ),
]
_Log = Annotated[
    list[str],
    typer.Option(
        metavar="PATH|SQL",
        help="A query log: a file or folder of SQL, CSV, Parquet, lines of JSON, Spark's event "
        "log, or scan reports of Iceberg. Or the SQL of one query; repeatable.",
        show_default=False,
    ),
]
_Candidates = Annotated[
    list[str] | None,
    typer.Option(
        "--candidates",
        "--candidate",
        metavar="COLUMNS",
        help="Further key columns to compare, such as a,b; repeatable.",
    ),
]
_Holdout = Annotated[
    float, typer.Option(metavar="SHARE", help="Share of the log, the newest, to judge layouts by.")
]


def advise(  # noqa: PLR0913 - the options of zadapter.advise
    *,
    table: Table,
    queries: _Log,
    candidates: _Candidates = None,
    holdout: _Holdout = 0.5,
    plot: Plot = None,
    html: Html = None,
    backend: Backend = None,
) -> FunctionCall:
    """Show which layout of TABLE lets the queries of a log read least; write nothing."""
    keys = [parse_by([text]) for text in candidates or ()]
    for by in keys:
        _ = Options(table=table, by=by)
    if not 0 < holdout < 1:
        raise UsageError(f"--holdout must be a share between 0 and 1, not {holdout:g}")
    check_paths(plot, html)
    log = queries[0] if len(queries) == 1 else queries

    def run(spark: "SparkSession") -> Result:
        found = zadapter.advise(
            table, log, candidates=keys, holdout=holdout, backend=backend, spark=spark
        )
        return with_pages(found, table, plot, html)

    return FunctionCall(function="advise", tables=(table,), backend=backend, run=run)


def analyze(  # noqa: PLR0913 - the options of zadapter.analyze
    *,
    table: Table,
    by: _By = None,
    where: Where = None,
    queries: _Queries = None,
    matches: _Matches = False,
    row_groups: _RowGroups = False,
    sample_files: _SampleFiles = SAMPLE_FILES,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Predict a rewrite as plan does, from a sample of the rows."),
    ] = False,
    check: _Check = None,
    plot: Plot = None,
    html: Html = None,
    backend: Backend = None,
) -> FunctionCall:
    """Show how well TABLE is clustered, and whether a rewrite is due, from its log."""
    keys = parse_by(by) if by else None
    _ = Options(table=table, by=keys, where=where)
    bounds = parse_checks(check or ())
    check_paths(plot, html)
    if matches and not queries:
        raise UsageError("--matches counts the rows that queries match; pass --queries as well")
    for text in queries or ():
        check_where(text, "query")
    log = queries[0] if queries and len(queries) == 1 else queries

    def run(spark: "SparkSession") -> Result:
        found = zadapter.analyze(
            table,
            by=keys,
            where=where,
            queries=log,
            matches=matches,
            row_groups=row_groups,
            sample_files=sample_files,
            plan=plan or GAIN in bounds,
            backend=backend,
            spark=spark,
        )
        exceeded = find_exceeded(found, bounds)
        shown = with_pages(found, table, plot, html)
        note = "\n".join(filter(None, (shown.note, *exceeded)))
        return replace(shown, note=note, exit_code=FOUND if exceeded else 0)

    return FunctionCall(function="analyze", tables=(table,), backend=backend, run=run)


def explain(  # noqa: PLR0913 - the options of zadapter.explain
    *,
    table: Table,
    where: Annotated[str, typer.Option(metavar="SQL", help="A condition in Spark SQL.")],
    row_groups: _RowGroups = False,
    sample_files: _SampleFiles = SAMPLE_FILES,
    plot: Plot = None,
    html: Html = None,
    backend: Backend = None,
) -> FunctionCall:
    """Show which files of TABLE a condition reads, and why; --json lists all of them."""
    check_where(where)
    check_paths(plot, html)

    def run(spark: "SparkSession") -> Result:
        found = zadapter.explain(
            table,
            where,
            row_groups=row_groups,
            sample_files=sample_files,
            backend=backend,
            spark=spark,
        )
        return with_pages(found, table, plot, html)

    return FunctionCall(function="explain", tables=(table,), backend=backend, run=run)


def audit(
    *,
    table: Table,
    deep: Annotated[
        bool, typer.Option("--deep", help="Compare with all values instead of the footers.")
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Replace wrong and missing statistics; the data does not change."
        ),
    ] = False,
    html: Html = None,
    backend: Backend = None,
) -> FunctionCall:
    """Compare the file statistics of TABLE with its files; exit with code 3 if some are wrong."""
    check_paths(None, html)

    def run(spark: "SparkSession") -> Result:
        found = zadapter.audit(table, deep=deep, repair=repair, backend=backend, spark=spark)
        version = found.repaired_version
        shown = report_change(
            "" if version is None else f"{table}: stats replaced, version {version}",
            lambda: with_pages(found, table, None, html),
        )
        return replace(shown, exit_code=0 if found.sound_now else FOUND)

    return FunctionCall(function="audit", tables=(table,), backend=backend, run=run)
