"""Scan tasks of Iceberg: data files with their row-level deletes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zadapter.errors import UnsupportedError
from zadapter.table.spark_scans import leaves_of
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats.manifest_stats import Deletes

POSITIONS = "POSITION_DELETES"
_DELETE_FILE = "org.apache.iceberg.DeleteFile"


def tasks(table: JavaObject, snapshot_id: int) -> dict[str, JavaObject]:
    """Return the ``FileScanTask`` of each live data file, by path.

    Raises:
        UnsupportedError: The snapshot contains a file twice.
    """
    scan = table.newScan().useSnapshot(snapshot_id).ignoreResiduals()
    planned = scan.planFiles()
    tasks_by_path: dict[str, JavaObject] = {}
    try:
        iterator = planned.iterator()
        while iterator.hasNext():
            task = iterator.next()
            path = task.file().location()
            if path in tasks_by_path:
                raise UnsupportedError(
                    f"snapshot {snapshot_id} contains {path} twice, so its rows are read twice; "
                    "remove one of the two entries first"
                )
            tasks_by_path[path] = task
    finally:
        planned.close()
    return tasks_by_path


def of_new(jvm: Jvm, table: JavaObject, files: Iterable[JavaObject]) -> Iterator[JavaObject]:
    """Yield a ``FileScanTask`` for each ``DataFile`` of *files*, which no snapshot contains yet."""
    no_deletes = jvm.root.java.lang.reflect.Array.newInstance(jvm.class_of(_DELETE_FILE), 0)
    schema = jvm.iceberg.SchemaParser.toJson(table.schema())
    always_true = jvm.iceberg.expressions.Expressions.alwaysTrue()
    residuals = jvm.iceberg.expressions.ResidualEvaluator.unpartitioned(always_true)
    for file in files:
        spec = jvm.iceberg.PartitionSpecParser.toJson(table.specs().get(file.specId()))
        yield jvm.iceberg.BaseFileScanTask(file, no_deletes, schema, spec, residuals)


def planned(rows: Any) -> list[str]:
    """Return the locations of the data files in the tasks that Iceberg plans for *rows*."""
    found: dict[str, None] = {}
    for leaf in leaves_of(rows):
        if leaf.getClass().getSimpleName() != "BatchScanExec":
            continue  # local rows: the condition is false
        for part in leaf.batch().planInputPartitions():
            tasks = part.taskGroup().tasks().iterator()
            while tasks.hasNext():
                found[str(tasks.next().file().location())] = None
    return list(found)


@dataclass(frozen=True, kw_only=True)
class Since:
    """Snapshot and partition spec that a rewrite was planned on.

    Attributes:
        sequence: Sequence number of the snapshot, which the new files get.
        spec: Id of the partition spec of the new files.
    """

    sequence: int
    spec: int

    def covers(self, file: JavaObject, delete: JavaObject) -> bool:
        """Return whether *delete* is an equality delete that also applies to a rewrite of *file*.

        It applies if it was added after the snapshot and the rows stay in their partition spec.
        """
        number = delete.dataSequenceNumber()
        late = number is not None and number > self.sequence
        return late and delete.content().name() != POSITIONS and file.specId() == self.spec


def deletes(planned: Mapping[str, JavaObject], since: Since | None) -> dict[str, Deletes]:
    """Return the row-level deletes of each file that has any, by path."""
    files = {path: (task.file(), list(task.deletes())) for path, task in planned.items()}
    return {
        path: _combined(file, delete_files, since)
        for path, (file, delete_files) in files.items()
        if delete_files
    }


def _combined(data: JavaObject, files: Iterable[JavaObject], since: Since | None) -> Deletes:
    """Combine the deletes on one file.

    The id leaves out equality deletes that were added during a rewrite and apply to its result.
    """
    names, rows = [], 0
    counted = True
    for file in files:
        vector = file.format().name() == "PUFFIN"
        counted &= vector
        if vector:
            rows += int(file.recordCount())
        if since is None or not since.covers(data, file):
            names.append(f"{file.location()}@{file.contentOffset()}")
    return Deletes(" ".join(sorted(names)) or None, rows if counted else None)
