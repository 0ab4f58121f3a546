"""What an Iceberg table was migrated from: a property of it, and of the snapshots that bring rows.

The property is there to spare all other tables a look into their history.  The version is that of
the newest snapshot that has brought rows and is still an ancestor: a rollback takes both back.
"""

import re

from zadapter.table.snapshot import Source
from zadapter_iceberg.table.lookup import ancestors
from zadapter_iceberg.table.snapshots import Version

PROPERTY = "zadapter.source"
_SAID = re.compile(r"(\w+):(.+)@(-?\d+)#(\w*)\Z")


def text(of: Source) -> str:
    """Return a source as properties say it."""
    return f"{of.format}:{of.id}@{of.version}#{of.columns}"


def source(version: Version) -> Source | None:
    """Return what the rows of the main branch were migrated from, if its history tells."""
    properties = dict(version.pinned.properties())
    if version.located.branch is not None or PROPERTY not in properties:
        return None
    for snapshot in ancestors(version.pinned, version.snapshot_id, None):
        said = _SAID.match(snapshot.summary().get(PROPERTY) or "")
        if said:
            return Source(format=said[1], id=said[2], version=int(said[3]), columns=said[4])
    return None
