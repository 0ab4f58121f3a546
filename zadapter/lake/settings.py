"""The tables of a lake, and the budget of one run of its maintenance, from a file in TOML.

    [budget]                                    what one run may spend
    bytes = "5TB"
    time = "4h"
    money = 40.0
    prices = { get = 0.0004, put = 0.005, core_hour = 0.05 }

    [journal]                                   the table of the runs
    table = "s3://lake/journal"
    format = "delta"

    [reads]                                     how often tables are read
    queries = "logs/"

    [defaults]                                  for entries that state nothing else
    keep = { versions = "30d" }
    max_wait = 7

    [[tables]]                                  an entry
    match = "sales.*"
    exclude = ["sales.tmp_*"]
    by = "auto"
    queries = "logs/"
    keep = { versions = "7d", orphans = "3d" }

An entry has the keywords of ``optimize``, except for those of which one lake has one value, or
none. What it states replaces the default as a whole: a ``keep`` without ``orphans`` deletes none.
A table's own properties replace what its entry states, by the same rules: see :func:`override`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import timedelta
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from zadapter.backend import plugins
from zadapter.base.quantities import MOST_WEIGHT, age, is_weight
from zadapter.base.quantities import parse as parse_size
from zadapter.base.toml_files import (
    Mistakes,
    Readers,
    check_keys,
    parse_file,
    parse_value,
    prefix_lines,
    read_table,
    table_at,
    tables_at,
)
from zadapter.errors import UsageError
from zadapter.planning.cost import Prices
from zadapter.planning.options import (
    AUTO,
    KEYWORDS,
    OLD_KEYWORDS,
    Options,
    check_option,
    check_table,
)

MAX_CONCURRENT = 2
"""Number of tables that are opened, judged or rewritten side by side, unless a caller states it."""
OWN = "zadapter.maintain."
"""Prefix of the properties with which a table overrides its entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one run may spend on rewrites; None: no limit."""

    bytes: int | None = None
    """Bytes of the files to replace."""
    seconds: float | None = None
    """Seconds after which no further rewrite starts."""
    money: float | None = None
    """A sum by *prices*."""
    prices: Prices | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How long clean-ups keep what a table no longer needs; None: it is not cleaned up."""

    versions: timedelta | None = None
    """Older versions, with their data files, are expired."""
    orphans: timedelta | None = None
    """Files that no version of the table has, and that are older, are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A pattern of tables, and how they are maintained."""

    match: str
    """Pattern of names, such as ``sales.*``, or of paths, such as ``s3://lake/raw/*``."""
    exclude: tuple[str, ...] = ()
    """Patterns of tables that are left out."""
    format: str | None = None
    """The format of the tables; None: it is detected."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keywords of :func:`zadapter.optimize`; none: tables keep their layout."""
    keep: Keep | None = None
    max_wait: int | None = None
    """Nights that a table with a due rewrite waits at most."""
    weight: float = 1.0
    """How much the savings of the tables count, relative to those of others."""
    enabled: bool = True
    """Whether the tables are maintained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """The tables of a lake, and how they are maintained."""

    tables: tuple[Entry, ...]
    budget: Budget = Budget()
    journal: str | None = None
    """Path or identifier of the table that gets a row for each table and run; None: no journal."""
    journal_format: str = "parquet"
    queries: Any = None
    """A query log, as for :func:`zadapter.advise`, which says how often each table is read; None:
    all are read equally often."""


def load(path: Path) -> Lake:
    """Read the file of a lake.

    Raises:
        UsageError: The file cannot be read, or has mistakes; the message lists all of them.
    """
    return parse(parse_file(path), str(path))


def parse(content: Mapping[str, Any], where: str) -> Lake:
    """Return the lake that a mapping describes, in the form of the file.

    Args:
        content: The mapping.
        where: Where it comes from, for errors.

    Raises:
        UsageError: It has mistakes; the message lists all of them.
    """
    with prefix_lines(where):
        return _parse(content)


def _parse(content: Mapping[str, Any]) -> Lake:
    mistakes, found = Mistakes(), dict[str, Any]()
    with mistakes.at("the file"):
        check_keys(content, ("budget", "journal", "reads", "defaults", "tables"))
    with mistakes.at():
        found["budget"] = _read_budget(table_at(content, "budget"))
    with mistakes.at():
        found |= _read_journal(content)
    with mistakes.at():
        found |= _read_reads(content)
    with mistakes.at():
        found["tables"] = _read_entries(content)
    mistakes.refuse()
    return Lake(**found)


def _read_budget(given: Mapping[str, Any]) -> Budget:
    mistakes, found = Mistakes(), dict[str, Any]()
    with mistakes.at("[budget]"):
        found = read_table(given, _BUDGET)
    if "money" in given and "prices" not in given:
        mistakes.add("[budget]", "money", f"a sum needs prices; add {_PRICES}")
    if "money" in found and found.get("prices") == Prices():
        mistakes.add("[budget]", "money", f"all prices are 0; write some such as {_PRICES}")
    mistakes.refuse()
    return Budget(**{"seconds" if key == "time" else key: value for key, value in found.items()})


def _read_journal(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of :class:`Lake` that state the journal; none: there is no journal."""
    given = table_at(content, "journal")
    if "journal" not in content:
        return {}
    with prefix_lines("[journal]"):
        found = read_table(given, _JOURNAL, needed=("table",))
    return {{"table": "journal", "format": "journal_format"}[key]: found[key] for key in found}


def _read_reads(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of :class:`Lake` that states the query log; none: there is no log."""
    given = table_at(content, "reads")
    if "reads" not in content:
        return {}
    with prefix_lines("[reads]"):
        return read_table(given, _READS, needed=("queries",))


def _read_entries(content: Mapping[str, Any]) -> tuple[Entry, ...]:
    mistakes, patterns, entries = Mistakes(), set[str](), list[Entry]()
    defaults: Mapping[str, Any] | None = None
    tables: Sequence[Mapping[str, Any]] = ()
    with mistakes.at():
        given = table_at(content, "defaults")
        with prefix_lines("[defaults]"):
            defaults = read_table(given, _DEFAULTS, reasons=_ELSEWHERE)
    with mistakes.at():
        tables = tables_at(content, "tables", _EXAMPLE)
    for number, table in enumerate(tables, 1):
        pattern = table.get("match")
        is_name = isinstance(pattern, str) and pattern.strip() and pattern.isprintable()
        name = str(pattern) if is_name else f"table {number}"
        with mistakes.at(name):
            found = read_table(table, _ENTRY, needed=("match",), reasons=_ELSEWHERE)
            if defaults is not None:
                entries.append(_make_entry(found, defaults))
        if name in patterns:
            mistakes.add(name, "the pattern is listed twice")
        patterns.add(name)
    mistakes.refuse()
    return tuple(entries)


def _make_entry(found: Mapping[str, Any], defaults: Mapping[str, Any]) -> Entry:
    """Return an entry with the defaults for what it does not state.

    Raises:
        UsageError: Its options exclude each other.
    """
    if found.get("by", AUTO) != AUTO:  # a log by default would have no effect
        defaults = {key: value for key, value in defaults.items() if key != "queries"}
    values = {**defaults, **found}
    options = {key: values.pop(key) for key in KEYWORDS if key in values}
    if options.get("by") == AUTO and options.get("queries") is None:
        raise UsageError(
            'by: \'auto\' needs a query log; add queries = "logs/", or write by = ["auto"] for a '
            "column of this name"
        )
    Options(table=values["match"], **options)
    return Entry(**values, options=options)


def override(entry: Entry, properties: Mapping[str, str]) -> Entry:
    """Return an entry with what the properties of a table state instead.

    A property is a key of an entry after :data:`OWN`, and its value is written as in the file, with
    or without the quotes of a text. What follows a dot is a key of a table: of ``keep``, ``tiers``
    or ``by``.

    Args:
        entry: The entry that matches the table.
        properties: All properties of the table.

    Raises:
        UsageError: They have mistakes; the message lists all of them, each with its property.
    """
    stated = {name: value for name, value in properties.items() if name.startswith(OWN)}
    if not stated:
        return entry
    with prefix_lines("property"):
        given = _nest(stated)
        readers = {f"{OWN}{name}": read for name, read in _OWN.items()}
        reasons = {f"{OWN}{name}": reason for name, reason in _IN_FILE.items()}
        found = read_table(given, readers, reasons=reasons)
    with prefix_lines(f"properties {', '.join(sorted(stated))}"):
        values = {each.name: getattr(entry, each.name) for each in fields(Entry)}
        defaults = values | dict(values.pop("options"))
        return _make_entry({key.removeprefix(OWN): found[key] for key in found}, defaults)


def _nest(stated: Mapping[str, str]) -> dict[str, Any]:
    """Return properties as one table: keys after a dot are those of tables within it.

    Raises:
        UsageError: A property is both a value and a table.
    """
    nested, mistakes = dict[str, Any](), Mistakes()
    for name in sorted(stated):
        first, *below = name.removeprefix(OWN).split(".")
        place, key = nested, OWN + first
        for part in below:
            place, key = place.setdefault(key, {}), part
            if not isinstance(place, dict):
                break
        if isinstance(place, dict):
            place[key] = parse_value(stated[name])
        else:
            mistakes.add(name, "a property above it states a value; remove one of them")
    mistakes.refuse()
    return nested


def _read_option(name: str) -> Callable[[Any], Any]:
    def read(given: Any) -> Any:
        check_option(name, given)
        return given

    return read


def _read_size(given: Any) -> int:
    _check_above_zero(given)
    return parse_size(given, "bytes")


def _read_seconds(given: Any) -> float:
    _check_above_zero(given)
    return age(given, "time=").total_seconds()


def _read_money(given: Any) -> float:
    _check_above_zero(given)
    if isinstance(given, Real) and not isinstance(given, bool):
        with suppress(OverflowError):  # as of an integer of 400 digits
            if float(given) < inf:
                return float(given)
    raise UsageError(f"the sum must be a finite number, not {given!r}")


def _check_above_zero(given: object) -> None:
    """Refuse a budget of nothing or less, as a number, as a duration and as text of either."""
    text = re.match(r"\s*[+-]?\d+(\.\d+)?", given) if isinstance(given, str) else None
    amount = given.total_seconds() if isinstance(given, timedelta) else given
    amount = float(text[0]) if text else amount
    if not isinstance(amount, Real) or isinstance(amount, bool):
        return  # this is no amount, which others say
    if amount < 0:
        raise UsageError(f"a budget must be above 0, not {given!r}")
    if amount == 0:
        raise UsageError(
            f"no rewrite would run with a budget of {given!r}; write more, or omit it for no limit"
        )


def _read_keep(given: Any) -> Keep:
    if not isinstance(given, Mapping):
        raise UsageError(f"{given!r} does not say what is kept; {_KEEP}")
    return Keep(**read_table(given, {name: _read_age(name) for name in ("versions", "orphans")}))


def _read_age(name: str) -> Callable[[Any], timedelta]:
    return lambda given: age(given, f"{name}=")


def _read_pattern(given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise UsageError(
            f"{given!r} is not a pattern; write one such as 'sales.*' or 's3://lake/raw/*'"
        )
    return given


def _read_patterns(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple):
        raise UsageError(f"{given!r} is not a list of patterns; write one such as ['sales.tmp_*']")
    patterns = tuple(map(_read_pattern, given))
    if len(set(patterns)) < len(patterns):
        raise UsageError(f"a pattern is listed twice: {', '.join(patterns)}")
    return patterns


def _read_nights(given: Any) -> int:
    is_number = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_number or given < 1:
        raise UsageError(f"{given!r} is not a number of nights; write a whole number from 1")
    return int(given)


def _read_weight(given: Any) -> float:
    if not is_weight(given):
        raise UsageError(
            f"{given!r:.60} is not a weight; write a number above 0 and up to {MOST_WEIGHT:g}, "
            "such as 3.0, or enabled = false"
        )
    return float(given)


def _read_flag(given: Any) -> bool:
    if not isinstance(given, bool):
        raise UsageError(f"{given!r} is neither true nor false; write one of them")
    return given


_EXAMPLE = '[[tables]] with match = "sales.*"'
_PRICES = "prices = { get = 0.0004, put = 0.005, core_hour = 0.05 }"
_KEEP = 'write one such as { versions = "7d", orphans = "3d" }'
_BUDGET: Readers = {
    "bytes": _read_size,
    "time": _read_seconds,
    "money": _read_money,
    "prices": Prices.of,
}
_JOURNAL: Readers = {"table": check_table, "format": plugins.check}
_ENTRY: Readers = {
    "match": _read_pattern,
    "exclude": _read_patterns,
    "format": plugins.check,
    "keep": _read_keep,
    "max_wait": _read_nights,
    "weight": _read_weight,
    "enabled": _read_flag,
    **{name: _read_option(name) for name in KEYWORDS if name not in {"force", "price"}},
}
_DEFAULTS: Readers = {
    name: read for name, read in _ENTRY.items() if name not in {"match", "exclude", "where"}
}
_READS: Readers = {"queries": _read_option("queries")}
_OWN: Readers = {
    name: read for name, read in _ENTRY.items() if name not in {"match", "exclude", "format"}
}
_ELSEWHERE = OLD_KEYWORDS | {
    "match": "belongs to [[tables]]; write it there",
    "exclude": "belongs to [[tables]]; write it there",
    "where": "names columns, which not all tables have; write it in [[tables]]",
    "table": "belongs to files for --config; write 'match'",
    "backend": "belongs to files for --config; write 'format'",
    "force": "would rewrite every file in every run; omit it, and pass it to optimize for a table",
    "price": "belongs to [budget]; write 'prices' there",
    "prices": "belongs to [budget]; write it there",
}
"""Why keys are unknown to entries, or to their defaults, and what to write instead."""
_IN_FILE = _ELSEWHERE | dict.fromkeys(
    ("match", "exclude", "format"), "belongs to the file of the lake; write it there"
)
"""Why keys are unknown to properties of tables."""
