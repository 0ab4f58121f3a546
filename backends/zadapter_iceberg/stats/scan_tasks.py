"""Scan tasks of Iceberg: data files with their row-level deletes."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from zadapter.errors import UnsupportedError
from zadapter.spark.jvm.scala import each
from zadapter.spark.jvm.spark_classes import leaves_of
from zadapter_iceberg.jvm import JavaObject, Jvm

MOST_HELD = 100_000
"""Number of files of which all tasks are kept: about 100 MB."""
POSITIONS = "POSITION_DELETES"
TASK = "org.apache.iceberg.FileScanTask"
SCAN = "org.apache.iceberg.ContentScanTask"
FILE = "org.apache.iceberg.ContentFile"
_LIST, _SET = "java.util.List", "java.util.Set"
DELETE_FILE = "org.apache.iceberg.DeleteFile"


class Tasks:
    """The ``FileScanTask`` objects of a snapshot, looked up by path.

    All loops over files run within the JVM.
    """

    def __init__(
        self, jvm: Jvm, table: JavaObject, snapshot_id: int | None, files: int = 0
    ) -> None:
        """Look up tasks of a snapshot with about *files* files."""
        self._jvm = jvm
        self._table = table
        self._snapshot_id = snapshot_id
        self._is_held = files <= MOST_HELD
        self._last: tuple[frozenset[str], JavaObject] = frozenset(), self._empty()

    def find_tasks(self, paths: Iterable[str]) -> JavaObject:
        """Return the tasks of some live data files as a ``java.util.List``, by path.

        Raises:
            UnsupportedError: The snapshot contains one of the files twice, or lacks one.
        """
        wanted = frozenset(paths)
        last = self._last  # read once: threads share it
        if last[0] != wanted:
            last = self._last = wanted, self._find_by_location(wanted)
        return last[1]

    def with_deletes(self, among: JavaObject = None) -> JavaObject:
        """Return tasks with row-level deletes: of all live data files, or of *among*.

        They are a ``java.util.List``.
        """
        loops = self._jvm.loops
        without = loops.chain(loops.method(TASK, "deletes"), loops.method(_LIST, "isEmpty"))
        test = loops.negate(without)
        return self._where(test) if among is None else loops.select_items(among, test)

    def files(self, paths: Iterable[str]) -> JavaObject:
        """Return some live data files as a ``java.util.List`` of ``DataFile``."""
        return self._jvm.loops.map_items(
            self.find_tasks(paths), self._jvm.loops.method(SCAN, "file")
        )

    def specs(self, paths: Iterable[str]) -> set[int]:
        """Return the ids of the partition specs of some live data files."""
        loops = self._jvm.loops
        ids = loops.map_items(self.files(paths), loops.method(FILE, "specId"))
        return set(map(int, each(self._jvm.root, self._jvm.root.java.util.HashSet(ids))))

    def _find_by_location(self, paths: frozenset[str]) -> JavaObject:
        loops = self._jvm.loops
        names = self._jvm.json.readValue(
            json.dumps(list(paths)), self._jvm.class_of("java.util.HashSet")
        )
        location = loops.chain(loops.method(SCAN, "file"), loops.method(FILE, "location"))
        contains = loops.method(_SET, "contains", "java.lang.Object").bindTo(names)
        found = self._where(loops.chain(location, contains)) if paths else self._empty()
        if found.size() != len(paths):
            self._refuse(paths, list(loops.map_items(found, location)))
        loops.sort(found, location)  # manifests are read in parallel
        return found

    def _refuse(self, paths: frozenset[str], found: Sequence[str]) -> NoReturn:
        twice = [path for path, count in Counter(found).items() if count > 1]
        snapshot = f"snapshot {self._snapshot_id}"
        if twice:
            raise UnsupportedError(
                f"{snapshot} contains {twice[0]} twice, so its rows are read twice; remove one of "
                "the two entries first"
            )
        raise UnsupportedError(f"{snapshot} has only {len(found)} of {len(paths)} files")

    def _where(self, test: JavaObject) -> JavaObject:
        """Return the tasks for which *test* holds, as a ``java.util.List``."""
        if self._is_held:
            return self._jvm.loops.select_items(self._held, test)
        found, loops = self._empty(), self._jvm.loops
        self._plan(loops.where(test, loops.adding_to(found)))
        return found

    @cached_property
    def _held(self) -> JavaObject:
        """All tasks: the snapshot may be expired while a rewrite of several jobs goes on."""
        found = self._empty()
        self._plan(self._jvm.loops.adding_to(found))
        return found

    def _plan(self, handle: JavaObject) -> None:
        """Call *handle* with each task of the snapshot."""
        if self._snapshot_id is None:
            return
        planned = self._table.newScan().useSnapshot(self._snapshot_id).ignoreResiduals().planFiles()
        try:
            self._jvm.loops.for_each(planned.iterator(), handle)
        finally:
            planned.close()

    def _empty(self) -> JavaObject:
        return self._jvm.root.java.util.ArrayList()


def plan_new_files(
    jvm: Jvm, table: JavaObject, files: Iterable[JavaObject]
) -> Iterator[JavaObject]:
    """Yield a ``FileScanTask`` for each ``DataFile`` of *files*, which no snapshot contains yet."""
    no_deletes = jvm.root.java.lang.reflect.Array.newInstance(jvm.class_of(DELETE_FILE), 0)
    schema = jvm.iceberg.SchemaParser.toJson(table.schema())
    always_true = jvm.iceberg.expressions.Expressions.alwaysTrue()
    residuals = jvm.iceberg.expressions.ResidualEvaluator.unpartitioned(always_true)
    for file in files:
        spec = jvm.iceberg.PartitionSpecParser.toJson(table.specs().get(file.specId()))
        yield jvm.iceberg.BaseFileScanTask(file, no_deletes, schema, spec, residuals)


def list_planned_files(rows: Any) -> list[str]:
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

    def covers(self, sequence: int | None, spec: int) -> bool:
        """Return whether an equality delete also applies to the rewrite of a file.

        It applies if it was added after the snapshot and the rows stay in their partition spec.

        Args:
            sequence: Data sequence number of the delete.
            spec: Id of the partition spec of the file.
        """
        return sequence is not None and sequence > self.sequence and spec == self.spec
