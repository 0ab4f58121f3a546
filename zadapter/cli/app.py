"""The command line: ``zadapter optimize``, ``zadapter plan`` and ``zadapter migrate``.

PySpark is imported only when a command needs it, so that help and usage errors appear at once.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import zadapter
from zadapter.cli.error_messages import Command, complaining
from zadapter.errors import UsageError
from zadapter.reports.progress import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zadapter.reports.migration import Migration
    from zadapter.reports.optimize import Plan, Report

QUIET = {"spark.log.level": "FATAL", "spark.ui.showConsoleProgress": "false"}
"""Settings of a session that the command line starts; it prints errors itself."""

_OUTSIDE = r"(?=(?:[^`]*`[^`]*`)*[^`]*\Z)"
"""Look-ahead for a separator outside backticks: an even number of backticks follows."""

app = typer.Typer(
    name="zadapter",
    help="Cluster lake tables so that filters open few files.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"zadapter {version('zadapter')}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


_Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A path, delta.`path`, or an identifier of Spark's catalog."
    ),
]
_By = Annotated[
    list[str],
    typer.Option(
        metavar="COLUMNS",
        help="Key columns, comma-separated; repeatable. name=2 gives a column the weight 2 "
        "instead of 1.",
    ),
]
_Where = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="Rewrite only files that may hold rows of this condition."),
]
_Backend = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="delta, iceberg or parquet (required for a folder without a log).",
    ),
]
_Curve = Annotated[str, typer.Option(metavar="NAME", help="adaptive, zorder, hilbert or linear.")]
_TargetFileSize = Annotated[
    str,
    typer.Option(metavar="SIZE", help="Target size of written files; auto: chosen from the table."),
]
_RowGroups = Annotated[int, typer.Option(metavar="COUNT", help="Row groups per written file.")]
_MaxGroupBytes = Annotated[
    str, typer.Option(metavar="SIZE", help="Larger partitions are rewritten in parts.")
]
_WidenStats = Annotated[
    bool,
    typer.Option(
        "--widen-stats",
        help="Collect stats of key columns that have none; optimize sets a table property for it.",
    ),
]
_Force = Annotated[
    bool, typer.Option("--force", help="Rewrite already clustered files, with a new layout.")
]
_Verify = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="counts, or checksum to compare all values before the commit, which reads the "
        "written files once.",
    ),
]
_Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A Spark setting; repeatable."),
]
_AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print the fields of the result as JSON."),
]


@app.command(
    "plan",
    cls=Command,
    help="Predict the effect of optimize with the same options; write nothing.",
)
@app.command(
    "optimize",
    cls=Command,
    help="Cluster TABLE so that filters on the key columns open fewer files.",
)
def _run(  # noqa: PLR0913 - the options of zadapter.optimize
    *,
    context: typer.Context,
    table: _Table,
    by: _By,
    where: _Where = None,
    backend: _Backend = None,
    curve: _Curve = "adaptive",
    target_file_size: _TargetFileSize = "auto",
    row_groups: _RowGroups = 16,
    max_group_bytes: _MaxGroupBytes = "256GB",
    widen_stats: _WidenStats = False,
    force: _Force = False,
    verify: _Verify = "counts",
    conf: _Conf = None,
    as_json: _AsJson = False,
) -> None:
    with complaining():
        keys, settings = parse_by(by), parse_conf(conf or ())
        call = zadapter.plan if context.info_name == "plan" else zadapter.optimize
        session = _session({**QUIET, **settings}, backend, table)
        with progress(Console(stderr=True)):
            result = call(
                table,
                by=keys,
                backend=backend,
                where=where,
                curve=curve,
                target_file_size=target_file_size,
                row_groups=row_groups,
                max_group_bytes=max_group_bytes,
                widen_stats=widen_stats,
                force=force,
                verify=verify,
                spark=session,
            )
    _show(result, as_json=as_json)


@app.command(
    "migrate",
    cls=Command,
    help="Create a table of another format with the rows and the layout of TABLE.",
)
def _migrate(  # noqa: PLR0913 - the options of zadapter.migrate
    *,
    table: _Table,
    to: Annotated[str, typer.Option(metavar="FORMAT", help="delta, iceberg or parquet.")],
    target: Annotated[str, typer.Option(metavar="TABLE", help="The new table.")],
    backend: _Backend = None,
    mode: Annotated[str, typer.Option(metavar="MODE", help="copy, in_place or auto.")] = "copy",
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS", help="Key columns of a new layout; else the old one is kept."
        ),
    ] = None,
    curve: _Curve = "adaptive",
    target_file_size: _TargetFileSize = "auto",
    row_groups: _RowGroups = 16,
    follow: Annotated[
        bool, typer.Option("--follow", help="Copy the rows appended since the migration.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report the effect on the table; write nothing.")
    ] = False,
    conf: _Conf = None,
    as_json: _AsJson = False,
) -> None:
    with complaining():
        keys, settings = parse_by(by) if by else None, parse_conf(conf or ())
        # the format of the old table may be unknown
        session = _session({**QUIET, **settings}, None, table, target)
        with progress(Console(stderr=True)):
            result = zadapter.migrate(
                table,
                to=to,
                target=target,
                backend=backend,
                mode=mode,
                by=keys,
                curve=curve,
                target_file_size=target_file_size,
                row_groups=row_groups,
                follow=follow,
                dry_run=dry_run,
                spark=session,
            )
    _show(result, as_json=as_json)


def parse_by(texts: Sequence[str]) -> dict[str, float]:
    """Parse the values of ``--by``: comma-separated names with optional weights.

    >>> parse_by(["event_time, user_id=2", "`odd,name`"])
    {'event_time': 1.0, 'user_id': 2.0, '`odd,name`': 1.0}

    Raises:
        UsageError: A name is empty or repeated, or a weight is not a number.
    """
    keys: dict[str, float] = {}
    for part in (part for text in texts for part in re.split(f",{_OUTSIDE}", text)):
        name, *weights = map(str.strip, re.split(f"={_OUTSIDE}", part))
        if not name or len(weights) > 1:
            raise UsageError(
                f"--by: {part!r} is not a column name; pass names such as a,b or a=2,b"
            )
        if name in keys:
            raise UsageError(f"--by: duplicate column {name}; pass each column once")
        keys[name] = _weight(name, weights[0]) if weights else 1.0
    return keys


def _weight(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--by: the weight {text!r} of {name} is not a number") from None


def parse_conf(texts: Sequence[str]) -> dict[str, str]:
    """Parse the values of ``--conf``, each in the form ``key=value``.

    Raises:
        UsageError: There is no key or no ``=``.
    """
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        lacking = "key" if equals else "'='"
        if not key.strip() or not equals:
            raise UsageError(f"--conf must be key=value; {_start_of(text)} has no {lacking}")
        pairs[key.strip()] = value.strip()
    return pairs


def _start_of(text: str) -> str:
    """Return the part of a setting that is certainly a name; the rest may be a secret."""
    name = re.match(r"[a-zA-Z][\w-]*(?:\.[\w-]+)+", text)
    return "a value" if name is None else repr(name[0])


def _session(conf: Mapping[str, str], backend: str | None, *tables: str) -> "SparkSession":
    from zadapter.arguments.resolve import start  # noqa: PLC0415 - loads Spark

    return start(conf, backend, tables)


def _show(result: "Plan | Report | Migration", *, as_json: bool) -> None:
    if as_json:
        facts = asdict(result)
        if hasattr(result, "nothing_to_do"):
            facts.get("plan", facts)["nothing_to_do"] = result.nothing_to_do
        typer.echo(json.dumps(facts, indent=2))
        return
    table = Table(show_header=False)
    for name, value in result.facts().items():
        table.add_row(Text(name, style="bold"), Text(value))
    Console().print(table)
