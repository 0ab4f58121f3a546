"""What a table itself asks for: by its properties, its ``CLUSTER BY`` and its sort order."""

from dataclasses import dataclass, replace

from zadapter.base.names import NameParts, join
from zadapter.base.printable import printable
from zadapter.base.secrets import mask_secrets
from zadapter.errors import UsageError
from zadapter.lake.settings import OWN, Entry, override
from zadapter.planning.options import AUTO, Options
from zadapter.planning.request import key_columns
from zadapter.table.snapshot import Snapshot

MOST_KEYS = 4
"""Maximum number of columns of a definition that become key columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one table is maintained."""

    entry: Entry
    """The entry that it matches, with what the table itself states instead."""
    own: tuple[str, ...] = ()
    """What the table states, as texts."""


def settings_of(entry: Entry, snapshot: Snapshot) -> Settings:
    """Return the settings of a table: its own ones, and those of its entry for all else.

    The columns of ``CLUSTER BY`` or of the sort order replace key columns of the entry, unless a
    property states ``by``. They do not replace those that a query log decides, which are measured,
    nor the weights of the same columns, and only what can be a key counts.

    Raises:
        UsageError: The properties have mistakes; the message lists all of them.
    """
    stated = {name: text for name, text in snapshot.properties().items() if name.startswith(OWN)}
    try:
        settings = Settings(
            entry=override(entry, stated),
            own=tuple(_show(f"{name} = {stated[name]}") for name in sorted(stated)),
        )
    except UsageError as error:
        mistakes = "; ".join(str(error).splitlines())
        raise UsageError(
            f"{mistakes}. Set the property anew by ALTER TABLE ... SET TBLPROPERTIES, or remove it "
            "by UNSET TBLPROPERTIES"
        ) from error
    by = settings.entry.options.get("by")
    has_own = any(name == f"{OWN}by" or name.startswith(f"{OWN}by.") for name in stated)
    if has_own or by is None or by == AUTO:
        return settings
    return follow_definition(settings, snapshot)


def follow_definition(settings: Settings, snapshot: Snapshot) -> Settings:
    """Return settings with the key columns that the table's definition asks for, if it does."""
    options = settings.entry.options
    keys = _keys(snapshot, collects_stats=bool(options.get("collect_stats")))
    given = Options(table=snapshot.table, **options)
    named = set() if given.by is None else {name.lower() for name in given.weights}
    if not keys or {name.lower() for name in keys} == named:
        return settings
    where = "CLUSTER BY" if snapshot.clustering else "sort order"
    return Settings(
        entry=replace(settings.entry, options={**options, "by": keys}),
        own=(*settings.own, _show(f"by = {keys}, by its {where}")),
    )


def _keys(snapshot: Snapshot, *, collects_stats: bool) -> list[str]:
    asked = snapshot.clustering or snapshot.sort_columns
    without = frozenset[NameParts]() if collects_stats else snapshot.without_stats
    usable = [join(parts) for parts in asked if parts not in without and _is_key(parts, snapshot)]
    return usable[:MOST_KEYS]


def _is_key(parts: NameParts, snapshot: Snapshot) -> bool:
    try:
        key_columns(Options(table=snapshot.table, by=[join(parts)]), snapshot)
    except UsageError:  # such as a partition column
        return False
    return True


def _show(text: str) -> str:
    return printable(mask_secrets(text))
