"""The ``DeltaLog`` of a table: the one that all threads share, and one of zadapter's own.

Delta keeps one ``DeltaLog`` of a folder in a cache for all threads, and its lock of commits belongs
to that instance. So each commit goes through the one in the cache, and the cache is left alone: a
thread with another instance would commit the same version on a store that cannot tell.

The cached one may be wrong. It reads the checkpoint that it knows from memory, also after another
process has dropped the table and created another one with a checkpoint of the same version. Then
the log is read by an instance that no one else sees.
"""

import json
from typing import Any

from zadapter.base.java_errors import causes
from zadapter_delta.jvm import JavaObject, Jvm, new


def load_shared(jvm: Jvm, log: JavaObject, catalog_table: JavaObject) -> JavaObject:
    """Return the ``DeltaLog`` that Delta's cache has of a table now, which locks its commits."""
    of = catalog_table.get() if catalog_table.isDefined() else log.dataPath()
    return jvm.delta.DeltaLog.forTable(jvm.session, of)


def refresh(jvm: Jvm, log: JavaObject, catalog_table: JavaObject) -> JavaObject:
    """Return a ``DeltaLog`` whose newest snapshot is what the folder has now."""
    snapshot = log.update(False, jvm.option(), catalog_table)  # noqa: FBT003
    files = snapshot.logSegment().checkpointProvider().topLevelFiles()
    if files.isEmpty() or _is_listed(jvm, log, files.head()):
        return log
    return open_own(jvm, log)


def open_own(jvm: Jvm, log: JavaObject) -> JavaObject:
    """Return a new ``DeltaLog`` of the same table, which reads everything and is in no cache."""
    return new(
        jvm,
        "DeltaLog",
        logPath=log.logPath(),
        dataPath=log.dataPath(),
        options=log.options(),
        allOptions=log.allOptions(),
        clock=log.clock(),
        initialCatalogTable=jvm.option(),
    )


def continues(jvm: Jvm, log: JavaObject, snapshot: JavaObject) -> bool:
    """Return whether the log on the store still has the last entry of *snapshot*, as it was.

    Delta's cache is not asked. The time of writing comes from a listing, as that of the snapshot:
    a log store may have another one for the same file.
    """
    known = int(snapshot.logSegment().lastCommitFileModificationTimestamp())
    return _read_modification_time(jvm, log, f"{int(snapshot.version()):020d}.json") == known


def _is_listed(jvm: Jvm, log: JavaObject, file: JavaObject) -> bool:
    """Return whether the log on the store has a file of a checkpoint, as it was."""
    written = _read_modification_time(jvm, log, str(file.getPath().getName()))
    return written == int(file.getModificationTime())


def _read_modification_time(jvm: Jvm, log: JavaObject, name: str) -> int | None:
    """Return when a file of the log was written, by a listing, or None if it is missing."""
    try:
        found = log.store().listFrom(jvm.path(f"{log.logPath()}/{name}"), log.newDeltaHadoopConf())
        first = found.next() if found.hasNext() else None
    except Exception as error:
        if any("FileNotFoundException" in cause for cause in causes(error)):
            return None
        raise
    is_it = first is not None and str(first.getPath().getName()) == name
    return int(first.getModificationTime()) if first is not None and is_it else None


def commit_info(jvm: Jvm, log: JavaObject, conf: JavaObject, version: int) -> dict[str, Any]:
    """Return the ``commitInfo`` of a log entry, empty if the entry has none."""
    entry = jvm.path(f"{log.logPath()}/{version:020d}.json")
    for line in jvm.iterate(log.store().read(entry, conf)):
        if line.startswith('{"commitInfo"'):
            action: dict[str, Any] = json.loads(line)["commitInfo"]
            return action
    return {}


def find_rewrites(jvm: Jvm, log: JavaObject, since: int, head: int) -> list[tuple[int, int]]:
    """Return the commits after *since* that exchange files and no data (``dataChange``)."""
    conf = log.newDeltaHadoopConf()
    versions = range(since + 1, head + 1)
    return [(number - 1, number) for number in versions if _only_rewrites(jvm, log, conf, number)]


def _only_rewrites(jvm: Jvm, log: JavaObject, conf: JavaObject, version: int) -> bool:
    entry = jvm.path(f"{log.logPath()}/{version:020d}.json")
    any_file = False
    for line in jvm.iterate(log.store().read(entry, conf)):
        if line.startswith(('{"add"', '{"remove"')):
            (action,) = json.loads(line).values()
            any_file = True
            if action.get("dataChange", True):
                return False
    return any_file
