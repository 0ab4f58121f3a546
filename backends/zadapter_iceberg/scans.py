"""What Iceberg plans to read: data files, each with the row-level deletes on it."""

from collections.abc import Iterable, Mapping

from zadapter.errors import UnsupportedError
from zadapter_iceberg.contents import Deletes
from zadapter_iceberg.jvm import JavaObject


def tasks(table: JavaObject, snapshot_id: int) -> dict[str, JavaObject]:
    """Return a ``FileScanTask`` for each live data file, by its path.

    Raises:
        UnsupportedError: The snapshot names a file twice.
    """
    scan = table.newScan().useSnapshot(snapshot_id).ignoreResiduals()
    planned = scan.planFiles()
    found: dict[str, JavaObject] = {}
    try:
        iterator = planned.iterator()
        while iterator.hasNext():
            task = iterator.next()
            path = task.file().location()
            if path in found:
                raise UnsupportedError(
                    f"snapshot {snapshot_id} names {path} twice, so its rows count double; remove "
                    "one of the two entries first"
                )
            found[path] = task
    finally:
        planned.close()
    return found


def deletes(planned: Mapping[str, JavaObject]) -> dict[str, Deletes]:
    """Return the row-level deletes on each file that has some."""
    found = {path: list(task.deletes()) for path, task in planned.items()}
    return {path: _of(each) for path, each in found.items() if each}


def _of(files: Iterable[JavaObject]) -> Deletes:
    """Join the deletes on one file.

    Equality deletes are no part of the id: those that arrive during a rewrite apply to its result,
    too, by their sequence number.
    """
    names, rows = [], 0
    known = True
    for file in files:
        vector = file.format().name() == "PUFFIN"
        known &= vector
        if vector:
            rows += int(file.recordCount())
        if file.content().name() == "POSITION_DELETES":
            names.append(f"{file.location()}@{file.contentOffset()}")
    return Deletes(" ".join(sorted(names)) or None, rows if known else None)
