"""AddFile actions of a snapshot's live files.

Each query of the log's state takes a quarter of a second, however few files it returns. Planning,
sampling, reading and committing request the same files in turn, so they are kept.
"""

import json
from collections.abc import Callable, Iterator
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.interrupts import ignoring_errors
from zadapter.base.quantities import show, show_count
from zadapter.errors import UnsupportedError
from zadapter.spark.jvm.gateway import java_rows
from zadapter.table.file_stats import total
from zadapter_delta.jvm import JavaObject, Jvm
from zadapter_delta.stats.add_files import Read, by_spark
from zadapter_delta.table.checkpoint_log import CheckpointLog, find_checkpoint
from zadapter_delta.table.large_log import LargeLog, is_large
from zadapter_delta.table.replay import ADD_FILE, replay_commits, select_paths

FEW = 10_000
"""Up to this many files in a snapshot, all AddFile actions are kept on the driver."""
BYTES_A_FILE = 50
"""Bytes of a log for a file, at least."""
SHORT_LOG = 8 << 20
"""Bytes of a log that is replayed on the driver."""
SMALL_LOG = 1 << 20
"""Bytes of a log whose state is collected to see whether its files are few."""


class LiveFiles:
    """The AddFile actions of the snapshot that was asked for last."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._snapshot: JavaObject = None
        self._few: JavaObject | None = None
        self._few_sizes: dict[str, int] = {}
        self._is_large = False
        self._checkpoint: CheckpointLog | None = None
        self._last: tuple[list[str], int, JavaObject] = ([], 0, None)

    def frame(self, snapshot: JavaObject) -> DataFrame:
        """Return the AddFile actions as a DataFrame."""
        self._look_at(snapshot)
        if self._is_large:
            return self._large.frame()
        if self._few is None:
            return DataFrame(snapshot.allFiles().toDF(), self._jvm.spark)
        # not that of allFiles(), which plans the query of the state
        return self._jvm.action_frame(self._few)

    def to_table(self, snapshot: JavaObject, convert: Callable[[Read], pa.Table]) -> pa.Table:
        """Return the file table to which *convert* converts the AddFile actions.

        A file table that contradicts the version's checksum is not believed: then another reader
        reads the log, at last Delta's state. A version without a checksum contradicts nothing.
        """
        self._look_at(snapshot)
        if self._checkpoint is not None:
            with ignoring_errors():
                files = convert(self._checkpoint.read)
                if _agrees(snapshot, files.num_rows, total(files, "size")):
                    return files
            self._checkpoint = None
        files = convert(self._by_spark(snapshot))
        if not self._is_large or _agrees(snapshot, files.num_rows, total(files, "size")):
            return files
        self._is_large = False
        self._keep_if_few(snapshot)
        return convert(self._by_spark(snapshot))

    def _by_spark(self, snapshot: JavaObject) -> Read:
        return by_spark(self.frame(snapshot), self.estimate_count(snapshot))

    def estimate_count(self, snapshot: JavaObject) -> int:
        """Return about how many files there are, by the bytes of the log."""
        size = int(snapshot.deltaFileSizeInBytes()) + int(snapshot.checkpointSizeInBytes())
        return size // BYTES_A_FILE

    def find_actions(self, snapshot: JavaObject, files: pa.Table) -> JavaObject:
        """Return the AddFile actions of some files as a ``java.util.List``.

        Actions that are not those of the files are not believed: then another reader reads the
        log, at last Delta's state.

        Args:
            snapshot: The version.
            files: A part of its file table.

        Raises:
            UnsupportedError: The log has not exactly these files.
        """
        self._look_at(snapshot)
        paths, size = files["path"].to_pylist(), total(files, "size")
        if self._last[:2] != (paths, size):
            found = self._select_few(paths, size)
            if found is None:
                found = next((adds for adds in self._select_actions(snapshot, paths)
                              if self._are_of(adds, len(paths), size)), None)  # fmt: skip
            if found is None:
                raise UnsupportedError(
                    f"Delta's state of {snapshot.deltaLog().dataPath()} has other actions than "
                    f"those of the {show_count(len(paths), 'files')} of {show(size)} that its log "
                    "lists; nothing was written with them, please report this"
                )
            self._last = paths, size, found
        return self._last[2]

    def _look_at(self, snapshot: JavaObject) -> None:
        if self._snapshot == snapshot:
            return
        self._snapshot, self._last = snapshot, ([], 0, self._jvm.list_of(()))
        self._few, self._few_sizes, self._checkpoint = None, {}, None
        self.__dict__.pop("_large", None)
        self._is_large = is_large(snapshot)
        if self._is_large:
            self._checkpoint = find_checkpoint(self._jvm, snapshot)
        else:
            self._keep_if_few(snapshot)

    @cached_property
    def _large(self) -> LargeLog:
        return LargeLog(self._jvm, self._snapshot)

    def _keep_if_few(self, snapshot: JavaObject) -> None:
        """Keep the AddFile actions if there are few."""
        size = int(snapshot.deltaFileSizeInBytes()) + int(snapshot.checkpointSizeInBytes())
        adds = replay_commits(self._jvm, snapshot, FEW) if size <= SHORT_LOG else None
        sizes = [] if adds is None else self._sizes(adds)
        if adds is not None and not _agrees(snapshot, len(sizes), sum(sizes)):
            adds = None
        if adds is None and size <= SMALL_LOG:
            adds = snapshot.allFiles().collectAsList()
            sizes = self._sizes(adds)
        if adds is not None and len(sizes) <= FEW:
            self._few = adds
            self._few_sizes = dict(zip(self._paths(adds), sizes, strict=False))
            if len(self._few_sizes) != len(sizes):  # as with two deletion vectors of a file
                self._few_sizes = {}

    def _paths(self, adds: JavaObject) -> list[str]:
        """Return the paths of files."""
        return self._jvm.join_texts(self._java_paths(adds)).split("\n")

    def _java_paths(self, adds: JavaObject) -> JavaObject:
        path = self._jvm.loops.method(ADD_FILE, "path")
        return self._jvm.loops.map_items(adds, path)

    def _sizes(self, adds: JavaObject) -> list[int]:
        """Return the bytes of files."""
        sizes = self._jvm.loops.map_items(adds, self._jvm.loops.method(ADD_FILE, "size"))
        return [int(size) for size in json.loads(self._jvm.root.java.util.Objects.toString(sizes))]

    def _select_few(self, paths: list[str], size: int) -> JavaObject | None:
        """Return the actions on *paths* if all are kept, with so many bytes; None: they are not."""
        sizes = [self._few_sizes.get(path) for path in dict.fromkeys(paths)]
        known = [each for each in sizes if each is not None]
        fits = self._few is not None and len(known) == len(paths) and sum(known) == size
        return select_paths(self._jvm, self._few, paths) if fits else None

    def _select_actions(self, snapshot: JavaObject, paths: list[str]) -> Iterator[JavaObject]:
        """Yield the actions on *paths* by each reader of a long log, at last by Delta's state."""
        if self._checkpoint is not None:
            found = None
            with ignoring_errors():
                found = self._checkpoint.find_actions(paths)
            if found is not None:
                yield found
        names = self._jvm.frame(pa.table({"path": pa.array(paths, pa.string())}))
        if self._is_large:
            adds = self._large.frame()
            yield self._large.actions(adds.join(F.broadcast(names), "path", "left_semi"))
        adds = snapshot.allFiles()
        if len(paths) < snapshot.numOfFiles():
            some = DataFrame(adds.toDF(), self._jvm.spark)
            some = some.join(F.broadcast(names), "path", "left_semi")
            adds = getattr(java_rows(some), "as")(adds.encoder())
        yield select_paths(self._jvm, adds.collectAsList(), paths)

    def _are_of(self, adds: JavaObject, count: int, size: int) -> bool:
        """Return whether actions on some of *count* paths are one for each, of as many bytes."""
        sizes = self._sizes(adds)
        distinct = self._jvm.root.java.util.HashSet(self._java_paths(adds)).size()
        return len(sizes) == distinct == count and sum(sizes) == size


def _agrees(snapshot: JavaObject, files: int, size: int) -> bool:
    """Return whether the version's checksum, if it has one, has as many files and bytes."""
    checksum = snapshot.checksumOpt()
    if not checksum.isDefined():
        return True
    stated = checksum.get()
    return bool((stated.numFiles(), stated.tableSizeBytes()) == (files, size))
