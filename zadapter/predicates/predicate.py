"""Predicates: conditions on rows as values, independent of an engine.

A predicate is true, false or null for a row, by Spark's three-valued logic and Spark's order of
values: NaN equals NaN and is above every other number, -0.0 equals 0.0, strings and binaries are
ordered by their unsigned bytes.
"""

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from zadapter.base.names import NameParts

OPERATORS = ("=", "<", "<=", ">", ">=", "<=>")
"""Operators of :class:`Comparison`; ``<=>`` is null-safe equality."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a value, as in ``day >= DATE '2024-01-01'``."""

    column: NameParts
    op: str
    """One of :data:`OPERATORS`."""
    value: pa.Scalar
    """Never null, and of the column's own type."""

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise ValueError(
                f"unknown operator {self.op!r}; expected one of: {' '.join(OPERATORS)}"
            )
        if not self.value.is_valid:
            raise ValueError("a comparison with NULL must be Constant(None), or IsNull for <=>")


@dataclass(frozen=True, slots=True)
class In:
    """A column equal to any of some values, as in ``country IN ('de', 'at')``."""

    column: NameParts
    values: tuple[pa.Scalar, ...]
    """Never null, and of the column's own type."""
    has_null: bool = False
    """Whether NULL is listed too. If so, the predicate is null instead of false."""

    def __post_init__(self) -> None:
        if not all(value.is_valid for value in self.values):
            raise ValueError("values must not contain NULL; set has_null")


@dataclass(frozen=True, slots=True)
class StartsWith:
    """A string column that starts with *prefix*, as in ``name LIKE 'Ab%'``."""

    column: NameParts
    prefix: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """A test for null; its result is never null."""

    column: NameParts


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of *parts*; true if there are none."""

    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of *parts*; false if there are none."""

    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """Negation of *part*; null where *part* is null."""

    part: "Predicate"


@dataclass(frozen=True, slots=True)
class Constant:
    """The same truth value for every row; None is null."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A condition that zadapter cannot evaluate; it may be true, false or null for any row."""

    sql: str
    """The condition as SQL."""
    why: str = ""
    """What in it hinders; empty: the condition as a whole."""


Predicate: TypeAlias = Comparison | In | StartsWith | IsNull | And | Or | Not | Constant | Unknown


def columns(predicate: Predicate) -> frozenset[NameParts]:
    """Return the columns that *predicate* compares, except those in :class:`Unknown` parts."""
    leaf_columns: set[NameParts] = set()
    pending = [predicate]
    while pending:
        match pending.pop():
            case And(parts) | Or(parts):
                pending.extend(parts)
            case Not(part):
                pending.append(part)
            case Comparison() | In() | StartsWith() | IsNull() as leaf:
                leaf_columns.add(leaf.column)
            case _:
                pass
    return frozenset(leaf_columns)
