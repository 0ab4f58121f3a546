"""Results of commands: tables for people, JSON for programs, on any terminal."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from uuid import uuid4

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from zadapter.base.distribution import install_command
from zadapter.errors import MissingBackendError, UsageError
from zadapter.report.facts import Facts
from zadapter.report.facts import html as html_of
from zadapter.report.optimize_report import Report
from zadapter.report.pictures.pages import page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
"""Characters that could move the cursor of a terminal."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_PICTURES = (".png", ".svg")
_WITH_FILES = {"Explanation", "Audit"}
"""Results whose JSON lists files."""
_WIDE = 10_000
"""Columns of output that is not a terminal, so that rows are not broken."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of a command, in both forms."""

    documents: Sequence[str]
    """JSON documents, without characters beyond ASCII."""
    table: Table
    """The same for people."""
    more: Sequence[Table] = ()
    """Further tables for people."""
    note: str = ""
    """A remark below the tables, unless the command is quiet."""
    done: str = ""
    """What the command has changed; empty: nothing."""
    exit_code: int = 0


def facts(document: Any, readable: Mapping[str, str], note: str = "") -> Result:
    """Return a result of named facts.

    Args:
        document: The facts as one JSON document.
        readable: The facts as text, by name.
        note: A remark.
    """
    table = Table(show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in readable.items():
        table.add_row(Text(printable(name), style="bold"), Text(printable(value)))
    return Result(documents=[as_json(document)], table=table, note=note)


def check_paths(plot: Path | None, html: Path | None) -> None:
    """Check what pictures and pages are written to.

    Raises:
        UsageError: A picture has another suffix, or a folder does not exist.
        MissingBackendError: matplotlib is not installed.
    """
    if plot is not None and plot.suffix.lower() not in _PICTURES:
        raise UsageError(f"--plot: {plot} must end in {' or '.join(_PICTURES)}")
    if plot is not None and find_spec("matplotlib") is None:
        raise MissingBackendError(f"--plot requires matplotlib; {install_command('plot')}")
    for path in (plot, html):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.absolute().parent}")


def with_pages(found: Facts, table: str, plot: Path | None, html: Path | None) -> Result:
    """Return a result in all its forms, and write its picture and its page.

    A rewrite that is done is shown all the same if there is nothing to draw.

    Args:
        found: The result.
        table: The table, for the page.
        plot: File of the picture.
        html: File of the page.
    """
    name = type(found).__name__
    figure, note = _draw(found, asked=plot is not None) if plot or html else (None, "")
    if plot is not None and figure is not None:
        figure.savefig(plot)
    if html is not None:
        body = f"<p>{escape(table)}</p>{html_of(found)}"
        figures = [] if figure is None else [figure]
        html.write_text(page(f"zadapter {name.lower()}", body, figures), encoding="utf-8")
    shown = facts(
        found.to_dict(files=name in _WITH_FILES),
        found.facts(),
        f"{plot} is not written: {note}" if note and plot is not None else "",
    )
    listed = [each for each in found.listings() if each.rows]
    return replace(shown, more=[listing(e.columns, e.texts, e.heading) for e in listed])


def replace_file(path: Path, text: str) -> None:
    """Write a file that others read at any time: they see it whole, old or new."""
    new = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        new.write_text(text, encoding="utf-8", newline="\n")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _draw(found: Facts, *, asked: bool) -> tuple["Figure | None", str]:
    """Return the picture of a result, or why there is none.

    Raises:
        UsageError: The user asked for a picture that there is not, and nothing else was done.
    """
    draw: Callable[[], Figure] | None = getattr(found, "plot", None)
    if draw is None or find_spec("matplotlib") is None:
        return None, ""
    try:
        return draw(), ""
    except UsageError as error:
        if asked and not isinstance(found, Report):
            raise
        return None, str(error)


def as_json(document: Any) -> str:
    """Return a value as a JSON document; times are in ISO 8601."""
    return json.dumps(document, indent=2, default=str)


def ascii_json(document: str) -> str:
    r"""Return a JSON document with escapes of characters beyond ASCII.

    >>> ascii_json('{"n": 1.10, "name": "é"}')
    '{"n": 1.10, "name": "\\u00e9"}'
    """
    return _BEYOND_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], document)


def listing(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None
) -> Table:
    """Return a table with one line for each of *rows*; numbers are aligned at the right."""
    cells = list(rows)
    table = Table(title=title, title_justify="left")
    for number, name in enumerate(columns):
        numeric = bool(cells) and all(isinstance(row[number], int | None) for row in cells)
        heading = Text(printable(name))
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(printable(_format_cell(value))) for value in row))
    return table


def _format_cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)


def printable(text: str, stream: TextIO | None = None) -> str:
    r"""Return *text* as any terminal can show it.

    Control characters, and characters that the stream cannot encode, become escapes.

    Args:
        text: The text.
        stream: The stream; None: standard output.

    >>> printable("a\x1b[2J")
    'a\\x1b[2J'
    """
    escaped = _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
    encoding = getattr(stream or sys.stdout, "encoding", None) or "utf-8"
    return escaped.encode(encoding, "backslashreplace").decode(encoding)


class _Console(Console):
    """A console that raises errors of its output, instead of the end of the process."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - rich calls it where it handles the error


def show(result: Result, *, as_json: bool, quiet: bool) -> None:
    """Print a result on standard output, if there is one."""
    if sys.stdout is None:
        return
    if as_json:
        for document in result.documents:
            typer.echo(document)
        return
    console = _Console(width=None if sys.stdout.isatty() else _WIDE)
    for table in (result.table, *result.more):
        console.print(table)
    if result.note and not quiet:
        console.print(Text(printable(result.note)))


def accept_any_text() -> None:
    """Escape characters that the encoding of standard output or error lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
