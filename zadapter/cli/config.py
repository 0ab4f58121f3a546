"""Files that list tables and their options, in TOML."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from zadapter.backend import plugins
from zadapter.base.locations import check_local
from zadapter.cli.command_options import KEYWORDS
from zadapter.errors import UsageError
from zadapter.planning.options import RENAMED, check_option, check_table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLE_KEYS = ("table", "backend", *KEYWORDS)
_EXAMPLE = '[[tables]] with table = "lake/events" and by = ["a", "b"]'


@dataclass(frozen=True)
class TableOptions:
    """A table, and the keywords of its call."""

    table: str
    keywords: Mapping[str, Any]


def load(path: Path, conf: Mapping[str, str]) -> list[TableOptions]:
    """Return the tables of a file, with their own options and those of ``[defaults]``.

    Args:
        path: The file.
        conf: Settings of the session that will start.

    Raises:
        UsageError: The file cannot be read, or has mistakes; the message lists all of them.
    """
    content = _parse_toml(path)
    mistakes = list(_find_unknown_keys(content, ("defaults", "tables"), "the file"))
    defaults, tables = content.get("defaults", {}), content.get("tables")
    if not isinstance(defaults, dict):
        mistakes.append(f"defaults must be a table of options: [defaults], not {defaults!r}")
        defaults = {}
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        mistakes.append(f"the file lists no tables; write {_EXAMPLE}")
        tables = []
    mistakes += _mistakes(defaults, "[defaults]", _TABLE_KEYS[1:])
    names: list[str] = []
    for number, entry in enumerate(tables, 1):
        name = str(entry.get("table", f"table {number}"))
        mistakes += _mistakes(entry, name, _TABLE_KEYS)
        mistakes += _find_missing_table(entry.get("table"), name, conf)
        if "table" not in entry:
            mistakes.append(f"{name}: the key 'table' is missing")
        if name in names:
            mistakes.append(f"{name}: the table is listed twice")
        names.append(name)
    if mistakes:
        raise UsageError("\n".join(f"{path}: {mistake}" for mistake in mistakes))
    return [
        TableOptions(
            entry["table"], {k: v for k, v in {**defaults, **entry}.items() if k != "table"}
        )
        for entry in tables
    ]


def _parse_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: the file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: the file is not UTF-8: {error.reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: the file is not TOML: {error}") from error


def _find_missing_table(table: object, where: str, conf: Mapping[str, str]) -> list[str]:
    try:
        check_local([table] if isinstance(table, str) else [], conf)
    except UsageError as error:
        return [f"{where}: table: {error}"]
    return []


def _mistakes(entry: Mapping[str, Any], where: str, known: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with the keys and values of one table of the file."""
    yield from _find_unknown_keys(entry, known, where)
    for key in [key for key in entry if key in known]:
        if mistake := _mistake(key, entry[key]):
            yield f"{where}: {key}: {mistake}"


def _mistake(key: str, value: Any) -> str | None:
    """Return what is wrong with the value of a key by itself, or None."""
    try:
        _check(key, value)
    except UsageError as error:
        return str(error)
    return None


def _find_unknown_keys(
    entry: Mapping[str, Any], known: tuple[str, ...], where: str
) -> Iterator[str]:
    for key in entry:
        new = RENAMED.get(key.replace("-", "_"))
        if new in known:
            yield f"{where}: the key {key!r} was renamed; write {new!r}"
        elif key not in known:
            near = get_close_matches(key.replace("-", "_"), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(known)}"
            yield f"{where}: unknown key {key!r}; {hint}"


def _check(key: str, value: Any) -> None:
    """Check the value of a key by itself.

    Raises:
        UsageError: No table can have this value.
    """
    if key == "table":
        if not isinstance(value, str):
            raise UsageError(f"{value!r} is not a table; pass a path or an identifier")
        check_table(value)
    elif key == "backend":
        if not isinstance(value, str):
            raise UsageError(f"{value!r} is not the name of a format")
        plugins.check(value)
    else:
        check_option(key, value)
