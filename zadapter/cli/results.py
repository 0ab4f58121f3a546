"""Results of commands: tables for people, JSON for programs, on any terminal."""

import io
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
"""Characters that could move the cursor of a terminal."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
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
        table.add_row(*(Text(printable(_shown(value))) for value in row))
    return table


def _shown(value: object) -> str:
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
    encoding = (stream or sys.stdout).encoding or "utf-8"
    return escaped.encode(encoding, "backslashreplace").decode(encoding)


def show(result: Result, *, as_json: bool, quiet: bool) -> None:
    """Print a result on standard output."""
    if as_json:
        for document in result.documents:
            typer.echo(document)
        return
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    for table in (result.table, *result.more):
        console.print(table)
    if result.note and not quiet:
        console.print(Text(printable(result.note)))


def accept_any_text() -> None:
    """Escape characters that the encoding of standard output or error lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
