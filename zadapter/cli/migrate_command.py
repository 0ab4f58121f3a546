"""``zadapter migrate``."""

from typing import TYPE_CHECKING, Annotated

import typer

import zadapter
from zadapter.backend import plugins
from zadapter.cli.calls import FunctionCall
from zadapter.cli.command_options import Backend, Table, option_of, parse_by
from zadapter.cli.error_messages import report_change
from zadapter.cli.results import Result, facts
from zadapter.migration.migration_options import MigrationOptions
from zadapter.planning.options import AUTO, ROW_GROUPS
from zadapter.report.migration_report import Mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _modes() -> list[str]:
    return [mode.value for mode in Mode]


def migrate(  # noqa: PLR0913 - the options of zadapter.migrate
    *,
    table: Table,
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT", help="delta, iceberg or parquet.", autocompletion=plugins.names
        ),
    ],
    target: Annotated[str, typer.Option(metavar="TABLE", help="The new table.")],
    backend: Backend = None,
    mode: Annotated[
        str,
        typer.Option(metavar="MODE", help="copy, in_place or auto.", autocompletion=_modes),
    ] = "copy",
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Key columns of a new layout; by default, the old layout is kept.",
        ),
    ] = None,
    curve: Annotated[str, option_of("curve")] = "adaptive",
    target_file_size: Annotated[str, option_of("target_file_size")] = AUTO,
    row_groups: Annotated[int, option_of("row_groups")] = ROW_GROUPS,
    follow: Annotated[
        bool, typer.Option("--follow", help="Copy the rows appended since the migration.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report the effect on the table; write nothing.")
    ] = False,
) -> FunctionCall:
    """Create a table of another format with the rows and the layout of TABLE."""
    options = MigrationOptions(
        table=table,
        to=to,
        target=target,
        backend=backend,
        mode=mode,
        by=parse_by(by) if by else None,
        curve=curve,
        target_file_size=target_file_size,
        row_groups=row_groups,
        follow=follow,
        dry_run=dry_run,
    )

    def run(spark: "SparkSession") -> Result:
        result = zadapter.migrate(**vars(options), spark=spark)
        version = result.target_version
        return report_change(
            f"{target}: committed version {version}" if result.committed else "",
            lambda: facts(result.to_dict(), result.facts()),
        )

    # the format of the old table may be unknown, so the session supports all of them
    return FunctionCall(function="migrate", tables=(table,), targets=(target,), run=run)
