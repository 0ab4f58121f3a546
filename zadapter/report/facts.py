"""Results in every form: readable facts, HTML for notebooks, JSON values for programs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from enum import Enum
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa

from zadapter.base.printable import printable

SHOWN = 20
"""Maximum number of rows of a listing in texts and notebooks."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A part of a result that is a table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    total: int | None = None
    """Number of rows of which these are the first; None: these are all."""

    @property
    def heading(self) -> str:
        """The title, and how many of the rows are shown."""
        total = len(self.rows) if self.total is None else self.total
        there = min(len(self.rows), SHOWN)
        return f"{self.title}, {there} of {total:,}" if total > there else self.title

    @property
    def texts(self) -> list[tuple[str, ...]]:
        """The rows that are shown, as texts."""
        return [tuple(map(format_cell, row)) for row in self.rows[:SHOWN]]


class Facts:
    """A result: facts, one per line, and listings; frozen dataclasses inherit its forms."""

    __slots__ = ()

    def facts(self) -> Mapping[str, str]:
        """Return the result as readable facts, by name."""
        raise NotImplementedError

    def listings(self) -> Sequence[Listing]:
        """Return the parts of the result that are tables."""
        return ()

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Return the fields as JSON values.

        Args:
            files: Whether to list the files, too, one entry each.
        """
        return dict(json_value(self, files=files))

    def __str__(self) -> str:
        parts = [align_facts(self.facts())]
        parts += [_align_listing(listing) for listing in self.listings() if listing.rows]
        return "\n\n".join(parts)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython's
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return html(self)


def describe_table(table: str, format_: str, version: int | None) -> str:
    """Return a table with its format and version as text; a version of None is none yet."""
    shown_version = "no version yet" if version is None else f"version {version}"
    return f"{table} ({format_}, {shown_version})"


def align_facts(facts: Mapping[str, str]) -> str:
    """Format facts as text that any terminal can print, one per line, with aligned values."""
    width = max(len(name) for name in facts)
    return printable("\n".join(f"{name:<{width}}  {value}" for name, value in facts.items()))


def format_cell(value: object) -> str:
    """Return a cell of a listing as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def html(result: Facts) -> str:
    """Return a result as HTML without styles of its own: one table of facts, and the listings."""
    cells = "".join(
        f'<tr><th style="text-align:left">{_escape(name)}</th>'
        f'<td style="text-align:left">{_escape(value)}</td></tr>'
        for name, value in result.facts().items()
    )
    return f"<table>{cells}</table>" + "".join(map(_html_listing, result.listings()))


def _html_listing(listing: Listing) -> str:
    if not listing.rows:
        return ""
    head = "".join(f"<th>{_escape(name)}</th>" for name in listing.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_escape(cell)}</td>" for cell in row) + "</tr>"
        for row in listing.texts
    )
    title = _escape(listing.heading)
    return f"<h4>{title}</h4><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _escape(text: str) -> str:
    return escape(printable(text))


def _align_listing(listing: Listing) -> str:
    rows = [listing.columns, *listing.texts]
    widths = [max(len(row[at]) for row in rows) for at in range(len(listing.columns))]
    right = [
        all(isinstance(row[at], int | float | None) for row in listing.rows)
        for at in range(len(widths))
    ]
    lines = [
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
    return printable("\n".join([listing.heading, *lines]))


def json_value(value: Any, *, files: bool = False) -> Any:
    """Convert a value to what JSON has; times are in ISO 8601, binaries in hexadecimal.

    Args:
        value: The value.
        files: Whether Arrow tables become lists; otherwise fields that hold one are left out.
    """
    if is_dataclass(value) and not isinstance(value, type):
        public = [field.name for field in fields(value) if not field.name.startswith("_")]
        named = {name: getattr(value, name) for name in public}
        return json_value(named, files=files)
    if isinstance(value, Mapping):
        listed = {"files", "findings"} if files else set[str]()
        kept = {k: v for k, v in value.items() if k in listed or not isinstance(v, pa.Table)}
        return {str(key): json_value(each, files=files) for key, each in kept.items()}
    if isinstance(value, pa.Table):
        return json_value(value.to_pylist(), files=files)
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(each, files=files) for each in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        return _scalar(value.item())
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    plain = value is None or isinstance(value, bool | int | str)
    finite = isinstance(value, float) and math.isfinite(value)
    return value if plain or finite else str(value)
