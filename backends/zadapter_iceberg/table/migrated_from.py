"""The migration source of an Iceberg table: a property of the table and of loading snapshots.

The table's property avoids reading the history of tables that were not migrated. The version is
that of the newest loading snapshot among the ancestors, so a rollback reverts it with the rows.
"""

import re

from zadapter.table.snapshot import Source
from zadapter_iceberg.table.lookup import ancestors
from zadapter_iceberg.table.snapshots import Version

PROPERTY = "zadapter.source"
_VALUE = re.compile(r"(\w+):(.+)@(-?\d+)#(\w*)\Z")


def text(of: Source) -> str:
    """Return a source as the value of the property."""
    return f"{of.format}:{of.id}@{of.number}#{of.columns}"


def source(version: Version) -> Source | None:
    """Return the source of the main branch, or None if there is none or its history expired."""
    properties = version.pinned.properties()
    if version.located.branch is not None or PROPERTY not in properties:
        return None
    for snapshot in ancestors(version.pinned, version.snapshot_id, None):
        match = _VALUE.match(snapshot.summary().get(PROPERTY) or "")
        if match:
            names = "format", "id", "version", "columns"
            return Source.from_dict(dict(zip(names, match.groups(), strict=True)))
    return None


def find_rewrites(version: Version, since: int) -> list[tuple[int, int]]:
    """Return the snapshots after *since* of operation ``replace``, each after its parent.

    They exchange files or metadata, and no rows. None if *since* is no ancestor.
    """
    newer = list(ancestors(version.pinned, version.snapshot_id, since or None))[::-1]
    if not newer or (newer[0].parentId() or 0) != since:
        return []
    return [
        (int(snapshot.parentId() or 0), int(snapshot.snapshotId()))
        for snapshot in newer
        if snapshot.operation() == "replace"
    ]
