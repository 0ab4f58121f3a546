"""Seeded conditions in Spark SQL, drawn from the values of a table."""

import math
import random
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from zadapter.base.names import leaves, quote

_COMPARISONS = ["=", "<=>", "<", "<=", ">", ">=", "<>"]


@dataclass(frozen=True)
class Condition:
    """Condition on a table.

    Attributes:
        sql: Text in Spark SQL.
        columns: Columns that it refers to.
        zeros: Whether it compares a floating-point column with zero.
    """

    sql: str
    columns: frozenset
    zeros: bool = False


def some(seed, rows, count):
    """Draw *count* conditions on a table."""
    dice = random.Random(seed)
    columns = {parts: _values(rows, parts) for parts, type_ in leaves(rows.schema)}
    types = dict(leaves(rows.schema))
    return [_any(dice, columns, types, depth=2) for _ in range(count)]


def _values(rows, parts):
    """Return the distinct values of a column, including NaN and zeros of both signs."""
    found = rows[parts[0]]
    for part in parts[1:]:
        chunks = [chunk.field(part) for chunk in found.chunks]
        found = pa.chunked_array(chunks)
    values = {repr(value): value for value in found.to_pylist() if value is not None}
    return list(values.values()) or [None]


def _any(dice, columns, types, depth):
    if depth == 0 or dice.random() < 0.5:
        return _leaf(dice, columns, types)
    if dice.random() < 0.2:
        inner = _any(dice, columns, types, depth - 1)
        return Condition(f"NOT ({inner.sql})", inner.columns, inner.zeros)
    word = dice.choice([" AND ", " OR "])
    both = [_any(dice, columns, types, depth - 1) for _ in range(2)]
    return Condition(
        word.join(f"({each.sql})" for each in both),
        frozenset().union(*(each.columns for each in both)),
        any(each.zeros for each in both),
    )


def _leaf(dice, columns, types):
    parts = dice.choice(list(columns))
    name, type_, pool = quote(parts), types[parts], columns[parts]
    values = [_near(dice, type_, dice.choice(pool)) for _ in range(dice.choice([1, 2, 3, 12]))]
    listed = ", ".join(_literal(value, type_) for value in values)
    one, other = _literal(values[0], type_), _literal(values[-1], type_)
    forms = [f"{name} {op} {one}" for op in _COMPARISONS]
    forms += [f"{one} {dice.choice(_COMPARISONS)} {name}", f"{name} BETWEEN {one} AND {other}"]
    forms += [f"{name} IN ({listed})", f"{name} NOT IN ({listed})", f"{name} IN ({one}, NULL)"]
    forms += [f"{name} IS NULL", f"{name} IS NOT NULL", f"coalesce({name} = {one}, false)"]
    if pa.types.is_string(type_):
        start = str(values[0] or "")[: dice.choice([1, 2, 256])]
        like = _text(start.replace("\\", "").replace("%", "").replace("_", ""))[:-1] + "%'"
        forms += [f"{name} LIKE {like}", f"startswith({name}, {_text(start)})"]
    if pa.types.is_floating(type_):
        forms += [f"isnan({name})", f"{name} = double('NaN')", f"{name} > 5", f"{name} = 0"]
    if pa.types.is_boolean(type_):
        forms += [name, f"NOT {name}"]
    sql = dice.choice(forms)
    zeros = pa.types.is_floating(type_) and (0 in values or sql.endswith("= 0"))
    return Condition(sql, frozenset({parts}), zeros)


def _near(dice, type_, value):
    """Return a value, or one next to it."""
    up = dice.choice([-1, 1])
    beside = _BESIDE.get(type(value))
    if beside is None or dice.random() < 0.6:
        return value
    with suppress(OverflowError):  # there is no later timestamp
        return beside(value, up, type_)
    return value


def _integer(value, up, type_):
    edge = 1 << type_.bit_width - 1
    return max(-edge, min(edge - 1, value + up))


def _decimal(value, up, type_):
    unscaled = int(value.scaleb(type_.scale)) + up
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -type_.scale))


_BESIDE = {
    int: _integer,
    float: lambda value, up, _: value if math.isnan(value) else up * value / 2,
    Decimal: _decimal,
    str: lambda value, up, _: value + "a" if up > 0 else value[:256][:-1],
    bytes: lambda value, up, _: value + b"\0" if up > 0 else value[:-1],
    date: lambda value, up, _: value + up * timedelta(days=1),
    datetime: lambda value, up, _: value + up * timedelta(microseconds=1),
}


def _literal(value, type_):
    """Return a value as a Spark SQL literal."""
    return _WRITTEN.get(type(value), lambda *_: str(value).upper())(value, type_)


def _float(value, type_):
    name = "float" if pa.types.is_float32(type_) else "double"
    return f"CAST({value!r}D AS {name})" if math.isfinite(value) else f"{name}('{value}')"


def _moment(value, type_):
    text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return f"TIMESTAMP'{text}Z'" if type_.tz else f"TIMESTAMP_NTZ'{text}'"


def _text(value):
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


_WRITTEN = {
    type(None): lambda *_: "NULL",
    float: _float,
    Decimal: lambda value, type_: f"CAST({value:f} AS DECIMAL({type_.precision}, {type_.scale}))",
    str: lambda value, _: _text(value),
    bytes: lambda value, _: f"X'{value.hex()}'",
    date: lambda value, _: f"DATE'{value.isoformat()}'",
    datetime: _moment,
}
