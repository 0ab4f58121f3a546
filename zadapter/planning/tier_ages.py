"""``tiers=``: which files are skipped, merged, or made larger, by the age of their rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from zadapter.base.ages import age
from zadapter.base.names import Parts, join, resolve, split
from zadapter.errors import UsageError
from zadapter.planning.tiers import Tiers, has_age
from zadapter.table.snapshot import Snapshot

GivenTiers = Mapping[str, Mapping[str, str | timedelta]]

_FORM = "pass {column: {'hot': age, 'warm': age}}, such as {'day': {'hot': '2d', 'warm': '30d'}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TierAges:
    """A column, and ages of its values."""

    column: str
    hot: timedelta | None
    """Age up to which files are hot; None: no file is."""
    warm: timedelta | None
    """Age up to which files are warm; None: no file is cold."""

    def at(self, now: datetime, snapshot: Snapshot) -> Tiers:
        """Return the tiers of a table's files at a moment.

        Raises:
            UnknownColumnError: The table has no such column.
            UsageError: Its values have no age.
        """
        return Tiers(
            column=_resolved(self.column, snapshot),
            hot_after=None if self.hot is None else now - self.hot,
            cold_before=None if self.warm is None else now - self.warm,
        )


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


def _resolved(name: str, snapshot: Snapshot) -> Parts:
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
