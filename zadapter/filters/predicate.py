"""Filters as values: what a condition says about a row, without the engine that runs it.

A predicate is true, false or null for a row, by Spark's three-valued logic and Spark's order
of values: NaN equals NaN and is above every other number, -0.0 equals 0.0, strings and
binaries are ordered by their unsigned bytes.
"""

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from zadapter.base.names import Parts

OPERATORS = ("=", "<", "<=", ">", ">=", "<=>")
"""What :class:`Comparison` may ask; ``<=>`` is equality that takes null for a value."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a value, as in ``day >= DATE '2024-01-01'``."""

    column: Parts
    op: str
    """One of :data:`OPERATORS`."""
    value: pa.Scalar
    """Never null, and of the column's own type."""

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise ValueError(f"no operator {self.op!r}; known: {' '.join(OPERATORS)}")
        if not self.value.is_valid:
            raise ValueError("a comparison with NULL is Constant(None), or IsNull for <=>")


@dataclass(frozen=True, slots=True)
class In:
    """A column equal to any of some values, as in ``country IN ('de', 'at')``."""

    column: Parts
    values: tuple[pa.Scalar, ...]
    """Never null, and of the column's own type."""
    has_null: bool = False
    """Whether NULL is listed too: then the predicate is null where it would be false."""

    def __post_init__(self) -> None:
        if not all(value.is_valid for value in self.values):
            raise ValueError("NULL among the values is told by has_null")


@dataclass(frozen=True, slots=True)
class StartsWith:
    """A string column that begins with *prefix*, as in ``name LIKE 'Ab%'``."""

    column: Parts
    prefix: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """A column that is null; never null itself."""

    column: Parts


@dataclass(frozen=True, slots=True)
class And:
    """All of *parts*; true if there are none."""

    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """Any of *parts*; false if there are none."""

    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of *part*; null where *part* is null."""

    part: "Predicate"


@dataclass(frozen=True, slots=True)
class Constant:
    """The same truth value for every row; None is null."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A condition zadapter does not evaluate; it may be true, false or null for any row."""

    sql: str


Predicate: TypeAlias = Comparison | In | StartsWith | IsNull | And | Or | Not | Constant | Unknown


def columns(predicate: Predicate) -> frozenset[Parts]:
    """Return the columns that *predicate* compares; those of :class:`Unknown` are not seen."""
    found: set[Parts] = set()
    pending = [predicate]
    while pending:
        match pending.pop():
            case And(parts) | Or(parts):
                pending.extend(parts)
            case Not(part):
                pending.append(part)
            case Comparison() | In() | StartsWith() | IsNull() as leaf:
                found.add(leaf.column)
            case _:
                pass
    return frozenset(found)
