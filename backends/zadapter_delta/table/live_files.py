"""AddFile actions of a snapshot's live files.

Each query of the log's state takes a quarter of a second, however few files it returns. Planning,
sampling, reading and committing request the same files in turn, so they are kept.
"""

import json

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.errors import UnsupportedError
from zadapter.spark.jvm.gateway import java_rows
from zadapter.table.file_stats import total
from zadapter_delta.jvm import JavaObject, Jvm
from zadapter_delta.table.large_log import LargeLog, is_large
from zadapter_delta.table.replay import replay_commits

FEW = 10_000
"""Up to this many files in a snapshot, all AddFile actions are kept on the driver."""
BYTES_A_FILE = 50
"""Bytes of a log for a file, at least."""
SHORT_LOG = 8 << 20
"""Bytes of a log that is replayed on the driver."""
SMALL_LOG = 1 << 20
"""Bytes of a log whose state is collected to see whether its files are few."""
_ADD_FILE = "org.apache.spark.sql.delta.actions.AddFile"


class LiveFiles:
    """The AddFile actions of the snapshot that was asked for last."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._snapshot: JavaObject = None
        self._few: JavaObject | None = None
        self._large: LargeLog | None = None
        self._last: tuple[list[str], JavaObject] = ([], None)

    def frame(self, snapshot: JavaObject) -> DataFrame:
        """Return the AddFile actions as a DataFrame."""
        self._look_at(snapshot)
        if self._large is not None:
            return self._large.frame()
        if self._few is None:
            return DataFrame(snapshot.allFiles().toDF(), self._jvm.spark)
        # not that of allFiles(), which plans the query of the state
        return self._jvm.action_frame(self._few)

    def estimate_count(self, snapshot: JavaObject) -> int:
        """Return about how many files there are, by the bytes of the log."""
        size = int(snapshot.deltaFileSizeInBytes()) + int(snapshot.checkpointSizeInBytes())
        return size // BYTES_A_FILE

    def find_actions(self, snapshot: JavaObject, paths: list[str]) -> JavaObject:
        """Return the AddFile actions of *paths* as a ``java.util.List``.

        Raises:
            UnsupportedError: The log lacks some of the files.
        """
        self._look_at(snapshot)
        if self._last[0] != paths:
            adds = self._select_actions(snapshot, paths)
            if adds.size() != len(paths):
                raise UnsupportedError(f"the log has only {adds.size()} of {len(paths)} files")
            self._last = paths, adds
        return self._last[1]

    def contradicts(self, snapshot: JavaObject, files: pa.Table) -> bool:
        """Return whether a file table contradicts the version's checksum.

        From then on, Delta's state is asked for the files. A version without a checksum contradicts
        nothing.
        """
        if self._large is None or _agrees(snapshot, files.num_rows, total(files, "size")):
            return False
        self._large = None
        self._keep_if_few(snapshot)
        return True

    def _look_at(self, snapshot: JavaObject) -> None:
        if self._snapshot == snapshot:
            return
        self._snapshot, self._last = snapshot, ([], self._jvm.list_of(()))
        self._few, self._large = None, None
        if is_large(snapshot):
            self._large = LargeLog(self._jvm, snapshot)
            return
        self._keep_if_few(snapshot)

    def _keep_if_few(self, snapshot: JavaObject) -> None:
        """Keep the AddFile actions if there are few."""
        size = int(snapshot.deltaFileSizeInBytes()) + int(snapshot.checkpointSizeInBytes())
        adds = replay_commits(self._jvm, snapshot, FEW) if size <= SHORT_LOG else None
        if adds is not None:
            sizes = self._sizes(adds)
            adds = adds if _agrees(snapshot, len(sizes), sum(sizes)) else None
        if adds is None and size <= SMALL_LOG:
            adds = snapshot.allFiles().collectAsList()
        if adds is not None and adds.size() <= FEW:
            self._few = adds

    def _sizes(self, adds: JavaObject) -> list[int]:
        """Return the bytes of files."""
        sizes = self._jvm.loops.map_items(adds, self._jvm.loops.method(_ADD_FILE, "size"))
        return [int(size) for size in json.loads(self._jvm.root.java.util.Objects.toString(sizes))]

    def _select_actions(self, snapshot: JavaObject, paths: list[str]) -> JavaObject:
        if self._few is not None:
            loops, mapper = self._jvm.loops, self._jvm.root.com.fasterxml.jackson.databind
            wanted = mapper.ObjectMapper().readValue(
                json.dumps(paths), loops.class_of("java.util.HashSet")
            )
            is_wanted = loops.method("java.util.Set", "contains", "java.lang.Object").bindTo(wanted)
            path = loops.method(_ADD_FILE, "path")
            return loops.select_items(self._few, loops.chain(path, is_wanted))
        names = self._jvm.frame(pa.table({"path": pa.array(paths, pa.string())}))
        if self._large is not None:
            adds = self._large.frame()
            return self._large.actions(adds.join(F.broadcast(names), "path", "left_semi"))
        adds = snapshot.allFiles()
        if len(paths) < snapshot.numOfFiles():
            some = DataFrame(adds.toDF(), self._jvm.spark)
            some = some.join(F.broadcast(names), "path", "left_semi")
            adds = getattr(java_rows(some), "as")(adds.encoder())
        return adds.collectAsList()


def _agrees(snapshot: JavaObject, files: int, size: int) -> bool:
    """Return whether the version's checksum, if it has one, has as many files and bytes."""
    checksum = snapshot.checksumOpt()
    if not checksum.isDefined():
        return True
    stated = checksum.get()
    return bool((stated.numFiles(), stated.tableSizeBytes()) == (files, size))
