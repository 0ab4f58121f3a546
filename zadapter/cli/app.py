"""The command line: one command for each public function.

PySpark is imported only when a command needs it, so that help and usage errors appear at once.
"""

from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from zadapter.base import distribution
from zadapter.cli import insight, rows, versions
from zadapter.cli.calls import command
from zadapter.cli.demo import demo
from zadapter.cli.error_messages import Command
from zadapter.cli.maintain_command import maintain
from zadapter.cli.migrate_command import migrate
from zadapter.cli.results import accept_any_text
from zadapter.cli.rewrite import cluster
from zadapter.cli.serve_command import serve

_MEANT = {
    "undo": "restore",
    "rollback": "restore",
    "cluster": "optimize",
    "compact": "optimize",
    "zorder": "optimize",
    "log": "history",
    "clean": "vacuum",
}
"""Commands by the names that other tools have for them."""


class _Group(TyperGroup):
    """The commands; what they print fits any terminal."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        accept_any_text()
        return super().main(*args, **kwargs)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is typed, and propose one for a name that others have for it."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if meant := _MEANT.get(args[0]):
                message = f"No such command {args[0]!r}. Did you mean {meant!r}?"
                error.message = message  # type: ignore[attr-defined]
            raise


app = typer.Typer(
    name="zadapter",
    help="Cluster lake tables so that filters open few files.",
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_PLAN = "Predict the effect of optimize with the same options; write nothing."
_OPTIMIZE = "Cluster TABLE so that filters on the key columns open fewer files."

app.command("plan", cls=Command, help=_PLAN)(command(cluster))
app.command("optimize", cls=Command, help=_OPTIMIZE)(command(cluster))
for _verb in (
    *(insight.advise, insight.analyze, insight.explain, insight.audit),
    maintain,
    *(migrate, rows.files, rows.read, versions.history),
    *(rows.append, rows.delete, rows.overwrite),
    *(versions.restore, versions.publish, versions.vacuum),
    *(serve, demo),
):
    app.command(_verb.__name__, cls=Command)(command(_verb))


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"zadapter {version(distribution.NAME)}")
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
