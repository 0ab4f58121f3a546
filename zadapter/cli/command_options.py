"""Arguments and options that several commands share, and the texts that users type as values."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from zadapter.backend import plugins
from zadapter.errors import UsageError
from zadapter.planning.options import AUTO, KEYWORDS, OPTIONS, Options, default_of, plain_type

Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A path, delta.`path`, or an identifier of Spark's catalog."
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="delta, iceberg or parquet (required for a folder without a log).",
        autocompletion=plugins.names,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="A condition in Spark's SQL."),
]
Version = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="A version number, or a time such as 2025-01-31T12:00:00; else the current version.",
    ),
]

Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a picture of the result: .png or .svg.")
]
Html = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the result as a page of HTML that needs no network."),
]

# options of every command
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A Spark setting; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result or the error.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show phases, and warnings of Spark.")
]

_OUTSIDE = r"(?=(?:[^`]*`[^`]*`)*[^`]*\Z)"
"""Look-ahead for a separator outside backticks: an even number of backticks follows."""


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


def parse_columns(texts: Sequence[str]) -> list[str]:
    """Parse the values of ``--bloom-filters``: comma-separated names; an empty text has none.

    >>> parse_columns(["user_id, `odd,name`", ""])
    ['user_id', '`odd,name`']
    """
    parts = [part.strip() for text in texts for part in re.split(f",{_OUTSIDE}", text)]
    return [part for part in parts if part]


def _weight(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--by: the weight {text!r} of {name} is not a number") from None


def parse_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Parse the values of a repeatable option, each in the form ``key=value``.

    Args:
        texts: The values.
        option: Name of the option, for error messages.

    >>> parse_pairs(["spark.master=local[4]"], "--conf")
    {'spark.master': 'local[4]'}

    Raises:
        UsageError: There is no key or no ``=``.
    """
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        lacking = "key" if equals else "'='"
        if not key.strip() or not equals:
            raise UsageError(f"{option} must be key=value; {_start_of(text)} has no {lacking}")
        pairs[key.strip()] = value.strip()
    return pairs


def _start_of(text: str) -> str:
    """Return the part of a setting that is certainly a name; the rest may be a secret."""
    name = re.match(r"[a-zA-Z][\w-]*(?:\.[\w-]+)+", text)
    return "a value" if name is None else repr(name[0])


def parse_tiers(text: str) -> dict[str, dict[str, str]]:
    """Parse the value of ``--tiers``.

    >>> parse_tiers("event_time:hot=2d,warm=30d")
    {'event_time': {'hot': '2d', 'warm': '30d'}}

    Raises:
        UsageError: There is no column, or a part has no ``=``.
    """
    column, colon, ages = text.rpartition(":")
    if not colon or not column.strip():
        raise UsageError(f"--tiers: {text!r} has no column; pass a value such as day:hot=2d")
    return {column.strip(): parse_pairs(ages.split(","), "--tiers")}


def parse_version(text: str) -> int | datetime:
    """Parse the value of ``--version``: a version number, or a time in ISO 8601.

    >>> parse_version("12")
    12
    >>> parse_version("2025-01-31T12:00:00")
    datetime.datetime(2025, 1, 31, 12, 0)

    Raises:
        UsageError: It is neither.
    """
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        return datetime.fromisoformat(re.sub(r"[zZ]\Z", "+00:00", text.strip()))
    except ValueError:
        raise UsageError(
            f"--version: {text!r} is neither a version number nor a time such as "
            "2025-01-31T12:00:00"
        ) from None


def parse_keys(texts: Sequence[str]) -> str | dict[str, float] | None:
    """Parse the values of ``--by`` of plan and optimize: keys, or ``auto``."""
    return AUTO if texts == [AUTO] else parse_by(texts) if texts else None


_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "by": parse_keys,
    "bloom_filters": parse_columns,
    "tiers": parse_tiers,
}
"""Parsers of the options whose values have a syntax of their own on the command line."""


def option_of(name: str) -> Any:
    """Return an option of optimize as the command line has it, by the table of options."""
    row, is_flag = OPTIONS[name], _kind(name) is bool
    return typer.Option(
        *([f"--{name.replace('_', '-')}"] if is_flag else []),
        metavar=row.metavar or None,
        help=f"{row.help} {row.syntax}".strip(),
        autocompletion=(lambda: list(row.choices)) if row.choices else None,
    )


def _kind(name: str) -> Any:
    """Return the type of what is typed: a flag, a number, texts that may be repeated, or text."""
    if name in {"by", "bloom_filters"}:
        return list[str]
    return plain_type(get_type_hints(Options)[name])


def parameters() -> list[Parameter]:
    """Return the options of optimize as parameters of a command."""
    return [_parameter(name, default_of(name)) for name in KEYWORDS]


def _parameter(name: str, default: Any) -> Parameter:
    kind = _kind(name) | None if default is None else _kind(name)
    option = option_of(name)
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def parse_options(table: str, typed: Mapping[str, Any]) -> Options:
    """Return the options that were typed.

    Args:
        table: The table.
        typed: Values of the parameters, by name.

    Raises:
        UsageError: A value is invalid.
    """
    values = {
        name: _PARSERS[name](given) if name in _PARSERS and given is not None else given
        for name, given in typed.items()
    }
    return Options(table=table, **values)
