"""Scan tasks of Iceberg: data files with their row-level deletes."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.quantities import show_count
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
_PACKAGE = "org.apache.iceberg."
_NO_STATS = (
    "file_path",
    "file_format",
    "file_size_in_bytes",
    "record_count",
    "partition",
    "key_metadata",
    "split_offsets",
    "sort_order_id",
)
"""Fields of data files that Iceberg's own scans read (``BaseScan.SCAN_COLUMNS``)."""


class FilePlaces(NamedTuple):
    """Which manifests list the live data files of a snapshot.

    Attributes:
        paths: Paths of the files, manifest by manifest.
        manifests: A ``java.util.List`` of ``ManifestFile``.
        counts: Number of live files of each of them.
    """

    paths: pa.ChunkedArray
    manifests: JavaObject
    counts: Sequence[int]

    def find_manifests(self, paths: Iterable[str]) -> list[int] | None:
        """Return the numbers of the manifests of some files; None: a file is missing, or twice."""
        wanted = pa.array(set(paths), pa.string())
        at = np.flatnonzero(pc.is_in(self.paths, wanted).to_numpy())
        held = self.paths.take(pa.array(at))
        if len(at) != len(wanted) or pc.count_distinct(held).as_py() != len(wanted):
            return None
        found = np.searchsorted(np.cumsum(self.counts), at, side="right")
        return [int(number) for number in np.unique(found)]


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
        self._places: FilePlaces | None = None

    def set_places(self, places: FilePlaces) -> None:
        """Read from now on only the manifests of the files that are looked up.

        Iceberg plans all files of a snapshot, of ten million in 20 core seconds. The snapshot must
        have no row-level deletes.
        """
        current = self._table.currentSnapshot()
        if not self._is_held and current is not None and current.snapshotId() == self._snapshot_id:
            self._places = places  # scans of older snapshots have older schemas

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
        of_file = loops.method(FILE, "location")
        location = loops.chain(loops.method(SCAN, "file"), of_file)
        contains = loops.method(_SET, "contains", "java.lang.Object").bindTo(names)
        found = self._find_in_manifests(paths, loops.chain(of_file, contains))
        if found is None:
            found = self._where(loops.chain(location, contains)) if paths else self._empty()
        if found.size() != len(paths):
            self._refuse(paths, list(loops.map_items(found, location)))
        loops.sort(found, location)  # manifests are read in parallel
        return found

    def _find_in_manifests(self, paths: frozenset[str], test: JavaObject) -> JavaObject | None:
        """Return the tasks of some files, if few manifests list them."""
        places = self._places
        numbers = None if places is None else places.find_manifests(paths)
        if places is None or numbers is None or 2 * len(numbers) > len(places.counts):
            return None
        jvm, table, files = self._jvm, self._table, self._empty()
        manifests = [places.manifests.get(number) for number in numbers]
        opened = jvm.iceberg.util.ParallelIterable(
            jvm.list(_open_manifests(jvm, table, manifests)),
            jvm.iceberg.util.ThreadPools.getWorkerPool(),
        )
        try:
            handle = jvm.loops.where(test, jvm.loops.adding_to(files))
            jvm.loops.for_each(opened.iterator(), handle)
        finally:
            opened.close()
        return plan_files(jvm, table, files)

    def _refuse(self, paths: frozenset[str], found: Sequence[str]) -> NoReturn:
        twice = [path for path, count in Counter(found).items() if count > 1]
        snapshot = f"snapshot {self._snapshot_id}"
        if twice:
            raise UnsupportedError(
                f"{snapshot} contains {twice[0]} twice, so its rows are read twice; remove one of "
                "the two entries first"
            )
        raise UnsupportedError(
            f"{snapshot} has only {len(found)} of {show_count(len(paths), 'files')}"
        )

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


def _open_manifests(
    jvm: Jvm, table: JavaObject, manifests: Iterable[JavaObject]
) -> Iterator[JavaObject]:
    """Yield readers of the data files of manifests, without stats."""
    io, specs, names = table.io(), table.specs(), jvm.list(_NO_STATS)
    for manifest in manifests:
        yield jvm.iceberg.ManifestFiles.read(manifest, io, specs).select(names)


def plan_files(jvm: Jvm, table: JavaObject, files: JavaObject) -> JavaObject:
    """Return a ``FileScanTask`` without deletes for each ``DataFile`` of a ``java.util.List``."""
    loops, tasks = jvm.loops, jvm.root.java.util.ArrayList()
    evaluator = f"{_PACKAGE}expressions.ResidualEvaluator"
    text, no_deletes = "java.lang.String", f"[L{DELETE_FILE};"
    task = loops.constructor(
        f"{_PACKAGE}BaseFileScanTask", f"{_PACKAGE}DataFile", no_deletes, text, text, evaluator
    )
    always_true = jvm.iceberg.expressions.Expressions.alwaysTrue()
    residuals = jvm.iceberg.expressions.ResidualEvaluator.unpartitioned(always_true)
    schema, id_of = jvm.iceberg.SchemaParser.toJson(table.schema()), loops.method(FILE, "specId")
    equals = loops.method("java.lang.Object", "equals", "java.lang.Object")
    for id_ in each(jvm.root, jvm.root.java.util.HashSet(loops.map_items(files, id_of))):
        spec = jvm.iceberg.PartitionSpecParser.toJson(table.specs().get(id_))
        of_spec = loops.select_items(files, loops.chain(id_of, equals.bindTo(id_)))
        tasks.addAll(loops.map_items(of_spec, loops.bind(task, 1, None, schema, spec, residuals)))
    return tasks


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
