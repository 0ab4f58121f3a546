"""``zadapter history``, ``restore``, ``publish`` and ``vacuum``."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import zadapter
from zadapter.base.quantities import parse_age, show_count
from zadapter.cli.calls import FunctionCall
from zadapter.cli.command_options import Backend, Html, Table
from zadapter.cli.error_messages import report_change
from zadapter.cli.maintain_command import lake_history
from zadapter.cli.results import Result, as_json, facts, listing
from zadapter.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNTS = ("files_added", "files_removed", "rows_added", "rows_removed")


def history(*, table: Table, html: Html = None, backend: Backend = None) -> FunctionCall:
    """List the commits of TABLE (plain Parquet), newest first, or the runs of a lake's file.

    Times are in UTC. The file of a lake is that of zadapter maintain; it must have a journal.
    With --html, it becomes a page of all tables after the last run, and their trends.
    """
    if table.endswith(".toml"):
        return lake_history(Path(table), html)
    if html is not None:
        raise UsageError("--html needs the file of a lake, such as lake.toml; a table has no page")

    def run(spark: "SparkSession") -> Result:
        commits = zadapter.history(table, backend=backend, spark=spark)
        columns = ["version", "time", "operation", *(name.replace("_", " ") for name in _COUNTS)]
        rows = [
            (
                commit.version,
                commit.timestamp.strftime("%Y-%m-%d %H:%M:%S"),
                commit.operation,
                *(getattr(commit, name) for name in _COUNTS),
            )
            for commit in commits
        ]
        documents = [
            {**asdict(commit), "timestamp": commit.timestamp.isoformat()} for commit in commits
        ]
        return Result(documents=[as_json(documents)], table=listing(columns, rows))

    return FunctionCall(function="history", tables=(table,), backend=backend, run=run)


def restore(
    *,
    table: Table,
    version: Annotated[
        int, typer.Argument(min=0, metavar="VERSION", help="The version to restore.")
    ],
    backend: Backend = None,
) -> FunctionCall:
    """Commit the rows of an older version of TABLE (plain Parquet) as a new version."""

    def run(spark: "SparkSession") -> Result:
        done = zadapter.restore(table, version, backend=backend, spark=spark)
        readable = {"table": table, "restored": f"version {version}"}
        return report_change(
            f"{table}: version {version} restored, committed version {done.version}",
            lambda: facts({**done.to_dict(), "restored": version}, readable | done.counts()),
        )

    return FunctionCall(function="restore", tables=(table,), backend=backend, run=run)


def publish(
    *,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A path.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be done, and change nothing.")
    ] = False,
    backend: Backend = None,
) -> FunctionCall:
    """Make the visible files of FOLDER the newest version, for engines that list its files."""

    def run(spark: "SparkSession") -> Result:
        done = zadapter.publish(folder, dry_run=dry_run, backend=backend, spark=spark)
        changed = not (dry_run or done.nothing_to_do)
        return report_change(
            f"{folder}: version {done.shown} published" if changed else "",
            lambda: facts(done.to_dict(), done.facts()),
        )

    return FunctionCall(function="publish", tables=(folder,), backend=backend, run=run)


def vacuum(
    *,
    table: Table,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="AGE",
            help="Retention of replaced versions, such as 7d; units: s, m, h, d, w.",
        ),
    ] = "7d",
    dry_run: Annotated[
        bool, typer.Option("--dry-run/--no-dry-run", help="Only list the files, or delete them.")
    ] = True,
    backend: Backend = None,
) -> FunctionCall:
    """List or delete the files of TABLE (plain Parquet) that only old versions need."""
    age = parse_age(older_than, "--older-than")

    def run(spark: "SparkSession") -> Result:
        done = zadapter.vacuum(table, older_than=age, dry_run=dry_run, backend=backend, spark=spark)
        files = show_count(len(done.paths), "files")
        note = f"{files} {'can be deleted with --no-dry-run' if dry_run else 'deleted'}"
        return report_change(
            f"{table}: {note}" if done.committed else "",
            lambda: Result(
                documents=[as_json(done.to_dict())],
                table=listing(["file"], [[path] for path in done.paths]),
                note=note,
            ),
        )

    return FunctionCall(function="vacuum", tables=(table,), backend=backend, run=run)
