"""Tiers: the files of a table by the age of their newest row.

    column, ages -- Tiers --> tier of each file -- maintenance --> what is rewritten

======= ============================================ ============================================
tier    files                                        maintenance
======= ============================================ ============================================
hot     with a row that is newer than ``hot``        skips them
warm    all others, and files of unknown age         makes and merges runs
cold    without a row that is newer than ``warm``    rewrites them into larger files
======= ============================================ ============================================

The age of a value of the column counts, in UTC. It comes from the file's partition value or upper
bound. A day counts as its last moment. So a file whose bound is too high is never cold too early.
"""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import DATE, TIMESTAMP, is_text, kind_of, to_integers
from zadapter.base.names import NameParts, join, resolve, split
from zadapter.base.quantities import age
from zadapter.errors import UsageError
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot

A_DAY = 86_400.0
A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Number of units of a timestamp in a second."""

Seconds = npt.NDArray[np.float64]

GivenTiers = Mapping[str, Mapping[str, str | timedelta]]

_FORM = "pass {column: {'hot': age, 'warm': age}}, such as {'day': {'hot': '2d', 'warm': '30d'}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiers:
    """Which files are hot, and which are cold."""

    column: NameParts
    """A partition column, or a column with bounds."""
    hot_after: datetime | None
    """Files with a newer row are hot; None if no file is."""
    cold_before: datetime | None
    """Files without a newer row are cold; None if no file is."""

    def of(self, files: pa.Table) -> npt.NDArray[np.int64]:
        """Return the :class:`Tier` of each file."""
        newest = self._newest(files)
        tiers = np.full(files.num_rows, int(Tier.WARM), np.int64)
        if self.cold_before is not None:
            tiers[newest <= self.cold_before.timestamp()] = Tier.COLD
        if self.hot_after is not None:
            tiers[newest > self.hot_after.timestamp()] = Tier.HOT
        return tiers

    def with_column(
        self, columns: tuple[NameParts, ...], partition: Container[str]
    ) -> tuple[NameParts, ...]:
        """Return *columns*, and the column of the tiers if bounds of it are needed."""
        is_partition = len(self.column) == 1 and self.column[0] in partition
        return columns if is_partition or self.column in columns else (*columns, self.column)

    def counts(self, files: pa.Table) -> dict[str, int]:
        """Return the number of files of each tier, and of those of unknown age, which are warm."""
        found = Counter(self.of(files).tolist())
        counts = {tier.name.lower(): found[tier] for tier in Tier}
        return counts | {"unknown": int(np.isnan(self._newest(files)).sum())}

    def add_tier(self, files: pa.Table) -> pa.Table:
        """Return *files* with the name of their tier as one more column."""
        names = np.array([tier.name.lower() for tier in Tier])[self.of(files)]
        return files.append_column("tier", pa.array(names.tolist(), pa.string()))

    def __str__(self) -> str:
        hot, cold = (
            None if moment is None else f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"
            for moment in (self.hot_after, self.cold_before)
        )
        named = [f"hot after {hot}"] * (hot is not None)
        named += [f"cold up to {cold}"] * (cold is not None)
        return f"{join(self.column)}, {', '.join(named)}"

    def _newest(self, files: pa.Table) -> Seconds:
        """Return the newest value of each file in seconds since 1970; NaN: it is unknown."""
        values = file_stats.partition(files, self.column[0]) if len(self.column) == 1 else None
        if values is None:
            stats = file_stats.column(files, self.column)
            if stats is None:
                return np.full(files.num_rows, np.nan)
            values = stats.field("max")
        return _seconds(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierAges:
    """A column, and ages of its values."""

    column: str
    hot: timedelta | None
    """Age up to which files are hot; None if no file is."""
    warm: timedelta | None
    """Age up to which files are warm; None if no file is cold."""

    def at(self, now: datetime, snapshot: Snapshot) -> Tiers:
        """Return the tiers of a table's files at a moment.

        Raises:
            UnknownColumnError: The table has no such column.
            UsageError: Its values have no age.
        """
        return Tiers(
            column=_resolve_column(self.column, snapshot),
            hot_after=None if self.hot is None else now - self.hot,
            cold_before=None if self.warm is None else now - self.warm,
        )


class Tier(IntEnum):
    """Age of a file."""

    HOT = 0
    WARM = 1
    COLD = 2


def has_age(type_: pa.DataType, *, is_partition: bool) -> bool:
    """Return whether values of a type have an age; as partition values, texts have one, too."""
    return kind_of(type_) in {DATE, TIMESTAMP} or (is_partition and is_text(type_))


def _seconds(values: pa.Array) -> Seconds:
    kind = kind_of(values.type)
    if kind is TIMESTAMP:
        return _floats(to_integers(values)) / A_SECOND[values.type.unit]
    if kind is DATE:
        return (_floats(to_integers(values)) + 1) * A_DAY
    days = pc.utf8_slice_codeunits(values, 0, 10)  # 2025-01-31, 2025-01-31 07:00 and the like
    parsed = pc.strptime(days, format="%Y-%m-%d", unit="s", error_is_null=True)
    return _floats(parsed.cast(pa.int64())) + A_DAY


def _floats(values: pa.Array) -> Seconds:
    """Return integers as floats, with NaN for null."""
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def tier_ages(tiers: object) -> TierAges:
    """Check the argument.

    Raises:
        UsageError: It is not one column with one or two ages, the younger of which is hot.
    """
    if not isinstance(tiers, Mapping) or len(tiers) != 1:
        raise UsageError(f"tiers= must name one column, not {tiers!r}; {_FORM}")
    ((column, ages),) = tiers.items()
    if not isinstance(column, str):
        raise UsageError(f"tiers= must name a column, not {column!r}; {_FORM}")
    if not isinstance(ages, Mapping) or not ages or set(ages) - {"hot", "warm"}:
        raise UsageError(f"tiers= of {column} must be ages of hot and warm, not {ages!r}; {_FORM}")
    found = {name: age(given, f"tiers= {name}") for name, given in ages.items()}
    hot, warm = found.get("hot"), found.get("warm")
    if hot is not None and warm is not None and hot >= warm:
        raise UsageError(f"tiers=: hot ({ages['hot']}) must be less than warm ({ages['warm']})")
    return TierAges(column=column, hot=hot, warm=warm)


def _resolve_column(name: str, snapshot: Snapshot) -> NameParts:
    parts = split(name)
    is_partition = len(parts) == 1 and parts[0] in snapshot.partition
    if is_partition:
        type_ = snapshot.partition[parts[0]]
    else:
        parts, type_ = resolve(parts, snapshot.schema)
        is_partition = parts[0] in snapshot.partition
    if not has_age(type_, is_partition=is_partition):
        raise UsageError(
            f"tiers=: {join(parts)} is of type {type_}; pass a date or a timestamp, or a partition "
            "column of texts such as 2025-01-31"
        )
    if not is_partition and parts in snapshot.without_bounds:
        raise UsageError(
            f"tiers=: {snapshot.format} stores no min and max of {join(parts)}; pass another column"
        )
    return parts
