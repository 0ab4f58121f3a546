"""Table properties that hold while some files are written, and that nobody else sees."""

from uuid import uuid4

from zadapter.layout.layout import Layout
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Snapshot
from zadapter_iceberg.table.snapshots import METRICS

_DICTIONARY = "write.parquet.dict-encoding-enabled.column."


def settings(snapshot: Snapshot, layout: Layout | None, encoding: Encoding) -> dict[str, str]:
    """Return the properties; the folder is one that no other write has.

    Args:
        snapshot: What is written to.
        layout: What has placed the rows, which the folder's name will say; None: nothing has.
        encoding: How the rows are put into Parquet.
    """
    own = dict(snapshot.handle.pinned.properties())
    folder = own.get("write.data.path", f"{snapshot.location}/data").rstrip("/")
    placed = "" if layout is None else f"/zadapter-{layout.id}"
    said = {"write.data.path": f"{folder}{placed}/{uuid4().hex}"}
    if layout is not None:
        for parts in layout.request.columns:
            # bounds cut to 16 characters are all alike where texts share a prefix
            said[METRICS + ".".join(parts)] = "full"
    for parts in encoding.plain:
        name = _DICTIONARY + ".".join(parts)
        said[name] = own.get(name, "false")
    if encoding.row_group is not None:
        most = str(encoding.row_group)
        # once in so many rows the writer looks, and finds the row group large enough
        said["write.parquet.row-group-size-bytes"] = "1"
        said["write.parquet.row-group-check-min-record-count"] = most
        said["write.parquet.row-group-check-max-record-count"] = most
    return said
