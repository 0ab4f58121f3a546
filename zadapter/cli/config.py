"""Files that list tables and their options, in TOML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from zadapter.backend import plugins
from zadapter.base.locations import check_local
from zadapter.base.toml_files import (
    Mistakes,
    Readers,
    check_keys,
    parse_file,
    prefix_lines,
    read_table,
    table_at,
    tables_at,
)
from zadapter.errors import UsageError
from zadapter.planning.options import KEYWORDS, OLD_KEYWORDS, Options, check_option, check_table

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
    content = parse_file(path)
    with prefix_lines(str(path)):
        return _parse(content, conf)


def _parse(content: Mapping[str, Any], conf: Mapping[str, str]) -> list[TableOptions]:
    defaults: Mapping[str, Any] = {}
    tables: Sequence[Mapping[str, Any]] = ()
    mistakes = Mistakes()
    with mistakes.at("the file"):
        check_keys(content, ("defaults", "tables"))
    with mistakes.at():
        defaults = table_at(content, "defaults")
    with mistakes.at():
        tables = tables_at(content, "tables", _EXAMPLE)
    with mistakes.at("[defaults]"):
        read_table(defaults, _DEFAULTS, reasons=OLD_KEYWORDS)
    names: list[str] = []
    for number, entry in enumerate(tables, 1):
        name = str(entry.get("table", f"table {number}"))
        with mistakes.at(name):
            read_table(entry, _ENTRY, needed=("table",), reasons=OLD_KEYWORDS)
        with mistakes.at(name, "table"):
            check_local([entry["table"]] if isinstance(entry.get("table"), str) else [], conf)
        if name in names:
            mistakes.add(name, "the table is listed twice")
        names.append(name)
    mistakes.refuse()
    found = [
        TableOptions(
            entry["table"], {k: v for k, v in {**defaults, **entry}.items() if k != "table"}
        )
        for entry in tables
    ]
    for each in found:
        with mistakes.at(each.table):  # options may exclude each other
            Options(table=each.table, **{k: v for k, v in each.keywords.items() if k in KEYWORDS})
    mistakes.refuse()
    return found


def _check_table(given: object) -> None:
    if not isinstance(given, str):
        raise UsageError(f"{given!r} is not a table; pass a path or an identifier")
    check_table(given)


_DEFAULTS: Readers = {
    "backend": plugins.check,
    **{name: partial(check_option, name) for name in KEYWORDS},
}
_ENTRY: Readers = {"table": _check_table, **_DEFAULTS}
