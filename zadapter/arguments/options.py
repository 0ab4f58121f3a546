"""Options of ``optimize`` and ``plan``, with the checks that need no table and no Spark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any

from zadapter.backend.commit import Backoff
from zadapter.base.sizes import parse
from zadapter.errors import UsageError
from zadapter.layout.layout import Curve
from zadapter.reports.optimize import VERIFICATIONS

_TYPES: Sequence[tuple[str, Any, str]] = (
    ("where", (str, type(None)), "a SQL string"),
    ("widen_stats", bool, "True or False"),
    ("force", bool, "True or False"),
    ("row_groups", Integral, "an integer"),
    ("backoff", Backoff, "a zadapter.Backoff"),
)

AUTO = "auto"
"""Value of ``target_file_size=`` that chooses a size from the table."""

By = str | Sequence[str] | Mapping[str, float]


def named(table: object) -> str:
    """Return the name of a table as text.

    Raises:
        UsageError: *table* is neither text nor a path, or it is empty.
    """
    if not isinstance(table, (str, PathLike)) or not str(fspath(table)).strip():
        raise UsageError(f"{table!r} is not a table; pass a path or an identifier")
    return str(fspath(table))


@dataclass(frozen=True, kw_only=True)
class Options:
    """Arguments of ``optimize`` and ``plan``, as the caller passed them.

    Raises:
        UsageError: An argument is invalid for every table.
    """

    table: str | PathLike[str]
    by: By
    where: str | None = None
    curve: str = "adaptive"
    target_file_size: str | int = AUTO
    row_groups: int = 16
    max_group_bytes: str | int = "256GB"
    widen_stats: bool = False
    force: bool = False
    verify: str = "counts"
    backoff: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        for name, types, expected in _TYPES:
            given = getattr(self, name)
            if not isinstance(given, types) or (types is Integral and isinstance(given, bool)):
                raise UsageError(f"{name}= must be {expected}, not {given!r}")
        named(self.table)
        if self.curve not in [curve.value for curve in Curve]:
            choices = ", ".join(curve.value for curve in Curve)
            raise UsageError(f"unknown curve {self.curve!r}; expected one of: {choices}")
        if self.verify not in VERIFICATIONS:
            choices = ", ".join(VERIFICATIONS)
            raise UsageError(f"unknown verify={self.verify!r}; expected one of: {choices}")
        if self.row_groups < 1:
            raise UsageError(f"row_groups= must be at least 1, not {self.row_groups}")
        _ = self.file_bytes, self.group_bytes, self.weights

    @property
    def name(self) -> str:
        """The table's path or identifier, as text."""
        return named(self.table)

    @cached_property
    def file_bytes(self) -> int | None:
        """``target_file_size`` in bytes; None: it is chosen from the table."""
        size = self.target_file_size
        return None if size == AUTO else parse(size, "target_file_size")

    @cached_property
    def group_bytes(self) -> int:
        """``max_group_bytes`` in bytes."""
        return parse(self.max_group_bytes, "max_group_bytes")

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """Weights of the key columns, by name."""
        by = self.by if isinstance(self.by, Mapping) else dict.fromkeys(_listed(self.by), 1.0)
        if not by:
            raise UsageError("no key columns; pass one to four columns that filters use")
        return {name: _weight(name, weight) for name, weight in by.items()}


def _listed(by: Any) -> list[str]:
    named = [by] if isinstance(by, str) or not isinstance(by, Iterable) else list(by)
    for name in named:
        if not isinstance(name, str):
            raise UsageError(f"by= must contain column names, not {name!r}")
    if len(set(named)) < len(named):
        raise UsageError(f"duplicate key columns: {', '.join(named)}; pass each column once")
    return named


def _weight(name: Any, weight: Any) -> float:
    if not isinstance(name, str):
        raise UsageError(f"by= must contain column names, not {name!r}")
    number = float(weight) if isinstance(weight, Real) and not isinstance(weight, bool) else -inf
    if not 0 < number < inf:
        raise UsageError(f"the weight of {name} in by= is {weight!r}; pass a positive number")
    return number
