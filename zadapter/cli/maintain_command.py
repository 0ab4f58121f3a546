"""``zadapter maintain``: the tables of a lake under one budget."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import zadapter
from zadapter.base.quantities import show_count
from zadapter.cli.calls import FunctionCall
from zadapter.cli.command_options import Html
from zadapter.cli.error_messages import report_change
from zadapter.cli.results import (
    Result,
    as_json,
    check_paths,
    listing,
    replace_file,
    with_pages,
)
from zadapter.cli.rewrite import SOME_FAILED
from zadapter.errors import UsageError
from zadapter.lake.settings import MAX_CONCURRENT, Lake, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LakeFile = Annotated[
    Path, typer.Argument(metavar="LAKE", help="A TOML file with a budget and patterns of tables.")
]

Metrics = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write metrics of the run for Prometheus: a file that ends in .prom."
    ),
]


def maintain(
    *,
    lake: LakeFile,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be done, and change nothing.")
    ] = False,
    max_concurrent_tables: Annotated[
        int, typer.Option(min=1, help="Tables that are opened, judged or rewritten side by side.")
    ] = MAX_CONCURRENT,
    html: Html = None,
    metrics: Metrics = None,
) -> FunctionCall:
    """Judge the tables of LAKE by their logs, rewrite those that pay most, and clean up."""
    check_paths(None, html)
    _check_metrics(metrics, dry_run=dry_run)
    asked = load(lake)

    def run(spark: "SparkSession") -> Result:
        report = zadapter.maintain(
            lake, dry_run=dry_run, max_concurrent_tables=max_concurrent_tables, spark=spark
        )
        changed = [line.table for line in report.lines if line.bytes_rewritten and not dry_run]
        done = f"{lake}: {show_count(len(changed), 'tables')} rewritten" if changed else ""

        def shown() -> Result:
            if metrics is not None:
                replace_file(metrics, report.to_prometheus())
            if html is not None:
                html.write_text(report.to_html(), encoding="utf-8")
            return with_pages(report, str(lake), None, None)

        result = report_change(done, shown)
        return replace(result, exit_code=SOME_FAILED) if report.failed else result

    return FunctionCall(function="maintain", tables=(), targets=places(asked), run=run)


def _check_metrics(path: Path | None, *, dry_run: bool) -> None:
    """Check what metrics are written to.

    Raises:
        UsageError: Collectors would not read it, its folder does not exist, or nothing is measured.
    """
    if path is None:
        return
    check_paths(None, path)
    if path.suffix != ".prom":
        raise UsageError(f"--metrics: {path} must end in .prom, or no collector reads it")
    if dry_run:
        raise UsageError(
            "--metrics and --dry-run exclude each other, since a dry run measures nothing; omit one"
        )


def lake_history(lake: Path, html: Path | None) -> FunctionCall:
    """Return a call that lists the runs in the journal of a lake.

    Args:
        lake: The file of the lake.
        html: File of a page of the tables as the last run has left them, with their trends.

    Raises:
        UsageError: The file has mistakes, or no journal.
    """
    check_paths(None, html)
    asked = load(lake)
    if asked.journal is None:
        raise UsageError(f"{lake} has no [journal]; add one with a table, and run maintain")

    def run(spark: "SparkSession") -> Result:
        from zadapter.lake import journal, page  # noqa: PLC0415 - loads Spark

        lines = journal.read(spark, str(asked.journal), asked.journal_format)
        nights = journal.split_runs(lines)
        if html is not None:
            *earlier, last = nights or [[]]
            html.write_text(page.render(str(lake), last, earlier), encoding="utf-8")
        found = journal.describe(nights)
        return Result(
            documents=[as_json(lines.to_pylist())], table=listing(found.columns, found.rows)
        )

    return FunctionCall(function="maintain", tables=(), targets=places(asked), run=run)


def places(lake: Lake) -> tuple[str, ...]:
    """Return the patterns of a lake and its journal: their stores are those of the session."""
    journal = () if lake.journal is None else (lake.journal,)
    return (*(entry.match for entry in lake.tables), *journal)
