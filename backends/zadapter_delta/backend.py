"""The backend contract, for Delta."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.encoding import KEPT, Encoding
from zadapter.errors import UnsupportedError
from zadapter.filestats import partition as partition_values
from zadapter.layout import Layout
from zadapter.layouts import Layouts
from zadapter.locations import is_relative
from zadapter.names import Parts, leaves, quote, resolve
from zadapter.schemas import arrow_schema
from zadapter.table import Rewrite, Snapshot, Staged, Written
from zadapter_delta import commits
from zadapter_delta.jvm import JavaObject, Jvm
from zadapter_delta.records import stats_json
from zadapter_delta.schemas import physical_names, with_bounds
from zadapter_delta.stats import Wanted, file_table
from zadapter_delta.stores import Store
from zadapter_delta.tables import Located, current, locate

_COLLECT = "spark.databricks.delta.stats.collect"
"""Counting while writing costs a fifth of it, and finds what footers do not have: bounds beside a
NaN."""
_FEW_FILES = 200
"""Up to this many files are all fetched at once: a look into the log's state takes a quarter of a
second, however few files are asked for."""
_STATS_COLUMNS = "delta.dataSkippingStatsColumns"


class _Handle(NamedTuple):
    located: Located
    snapshot: JavaObject


class DeltaBackend:
    """Delta tables, read and committed through Delta's own classes."""

    format = "delta"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = Jvm(spark)
        # sampling, reading and committing ask for the same files one after the other
        self._collected: tuple[JavaObject, list[str], JavaObject] = (None, [], None)
        self._few: tuple[JavaObject, dict[str, JavaObject]] = (None, {})

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the current version of *table*: a path, ``delta.`path``` or an identifier.

        Raises:
            UnknownTableError: There is no such table, or it is not a Delta table.
            UnsupportedError: Liquid clustering, a catalog-managed table, or a protocol that this
                Delta version cannot write.
        """
        located = since.handle.located if since is not None else locate(self._jvm, table)
        snapshot = current(self._jvm, table, located)
        version = int(snapshot.version())
        metadata, protocol = snapshot.metadata(), snapshot.protocol()
        schema = _json(metadata.schema())
        arrow, partitioned = arrow_schema(schema), self._jvm.iterate(metadata.partitionColumns())
        applied = frozenset[str]()
        if since is not None:
            versions = range(since.version + 1, version + 1)
            applied = commits.commit_ids(self._jvm, located.log, versions)
        return Snapshot(
            table=table,
            format=self.format,
            version=version,
            location=str(located.log.dataPath()),
            schema=arrow,
            partition={name: _partition_type(arrow.field(name).type) for name in partitioned},
            definition=hashlib.sha256(f"{metadata.json()}{protocol.json()}".encode()).hexdigest(),
            physical=physical_names(T.StructType.fromJson(schema)),
            without_stats=self._without_stats(snapshot, arrow),
            without_bounds=frozenset(p for p, t in leaves(arrow) if not with_bounds(t)),
            applied=applied,
            layouts=Layouts(Store(self._jvm, located.log)),
            handle=_Handle(located, snapshot),
        )

    def _without_stats(self, snapshot: JavaObject, schema: pa.Schema) -> frozenset[Parts]:
        collected = arrow_schema(_json(snapshot.statCollectionLogicalSchema()))
        known = {parts for parts, _ in leaves(collected)}
        return frozenset(p for p, t in leaves(schema) if p not in known or not with_bounds(t))

    def files(self, snapshot: Snapshot, columns: Sequence[Parts] = ()) -> pa.Table:
        """Return the live files with the log's stats of *columns*."""
        adds = DataFrame(snapshot.handle.snapshot.allFiles().toDF(), self._spark)
        return self._file_table(snapshot, adds, columns)

    def _file_table(
        self, snapshot: Snapshot, adds: DataFrame, columns: Sequence[Parts]
    ) -> pa.Table:
        schema = T.StructType.fromJson(_json(snapshot.handle.snapshot.metadata().schema()))
        partition = {name: _wanted(snapshot, schema, (name,)) for name in snapshot.partition}
        wanted = [
            _wanted(snapshot, schema, parts) for parts in columns if parts[0] not in partition
        ]
        made = file_table(adds, wanted, partition)
        for name, type_ in snapshot.partition.items():
            if (
                pa.types.is_string(type_)
                and pc.any(pc.equal(partition_values(made, name), "")).as_py()
            ):
                raise UnsupportedError(
                    f"{snapshot.table}: files have the empty text as their {name}, which Delta's "
                    f"writer would turn into null; UPDATE these rows first, for example to '-'"
                )
        return made

    def uris(self, snapshot: Snapshot, paths: Sequence[str]) -> list[str]:
        """Return where the files with *paths* in the log lie: within the table, or anywhere."""
        within = snapshot.handle.located.log.dataPath()
        root, escaped = str(within), str(within.toUri())
        operations = self._jvm.delta.util.DeltaFileOperations
        return [
            f"{escaped}/{path}"
            if is_relative(path)
            else str(operations.absolutePath(root, path).toUri())
            for path in paths
        ]

    def widen_stats(self, snapshot: Snapshot, columns: Sequence[Parts]) -> Snapshot:
        """Add *columns* to the table's ``delta.dataSkippingStatsColumns``, in one commit.

        Raises:
            ConflictError: Another writer changed the table's properties meanwhile.
        """
        kept = [
            parts
            for parts, _ in leaves(snapshot.schema)
            if parts not in snapshot.without_stats and parts[0] not in snapshot.partition
        ]
        names = ",".join(map(quote, (*kept, *columns)))
        commits.set_property(self._jvm, snapshot, _STATS_COLUMNS, names)
        return self.snapshot(snapshot.table)

    def read(self, snapshot: Snapshot, files: pa.Table) -> DataFrame:
        """Return the live rows of *files*, deletion vectors applied, row ids kept."""
        located, base = snapshot.handle
        adds = self._jvm.seq_of(self._adds(base, files))
        rows = located.log.createDataFrame(base, adds, False, self._jvm.option("Optimize"))  # noqa: FBT003
        tracking = self._jvm.module(self._jvm.delta, "RowTracking")
        return DataFrame(tracking.preserveRowTrackingColumns(rows, base), self._spark)

    def _adds(self, base: JavaObject, files: pa.Table) -> JavaObject:
        """Return Delta's AddFile actions of *files* as a ``java.util.List``."""
        paths = files["path"].to_pylist()
        if self._collected[:2] != (base, paths):
            found = self._collect(base, paths)
            if found.size() != len(paths):
                raise UnsupportedError(f"{found.size()} of {len(paths)} files found in the log")
            self._collected = base, paths, found
        return self._collected[2]

    def _collect(self, base: JavaObject, paths: Sequence[str]) -> JavaObject:
        adds = base.allFiles()
        if base.numOfFiles() <= _FEW_FILES:
            if self._few[0] != base:
                self._few = base, {add.path(): add for add in adds.collectAsList()}
            known = self._few[1]
            return self._jvm.list_of(known[path] for path in paths if path in known)
        if len(paths) < base.numOfFiles():
            adds = adds.filter(F.col("path").isin(paths)._jc)  # noqa: SLF001
        return adds.collectAsList()

    def write(
        self, snapshot: Snapshot, rows: DataFrame, layout: Layout, encoding: Encoding
    ) -> Written:
        """Write *rows* through Delta's writer, constraints and column mapping included."""
        located, base = snapshot.handle
        types = [resolve(parts, snapshot.schema)[1] for parts in layout.request.columns]
        collect = {_COLLECT: str(any(map(pa.types.is_floating, types)))}
        with self._set(collect | encoding.settings(snapshot.physical)):
            written = commits.write(self._jvm, located.log, located.catalog_table, base, rows)
        adds = (commits.tagged(self._jvm, add, layout.id) for add in written)
        new = {add.path(): add for add in adds}
        return Written(
            paths=dict(zip(new, self.uris(snapshot, list(new)), strict=True)),
            handle=(layout.request.columns, new),
        )

    @contextmanager
    def _set(self, settings: Mapping[str, str]) -> Iterator[None]:
        """Change the session's settings for a while."""
        before = {key: self._spark.conf.get(key, None) for key in settings}
        try:
            for key, value in settings.items():
                self._spark.conf.set(key, value)
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    self._spark.conf.unset(key)
                else:
                    self._spark.conf.set(key, old)

    def stage(self, snapshot: Snapshot, written: Written, files: pa.Table) -> Staged:
        """Return *written* with stats as JSON, and as a reader of the log will see them."""
        base = snapshot.handle.snapshot
        files = files.filter(pc.greater(files["rows"], 0))
        collected = arrow_schema(_json(base.statCollectionLogicalSchema()))
        columns = {parts: snapshot.physical[parts] for parts, _ in leaves(collected)}
        stats = self._jvm.module(self._jvm.delta.stats, "StatsCollectionUtils")
        prefix = stats.getDataSkippingStringPrefixLength(self._jvm.session, base.metadata())
        keys, new = written.handle
        kept = {parts: max(prefix, KEPT) if parts in keys else prefix for parts in columns}
        texts = stats_json(self._jvm, files, columns, kept)
        adds = {
            path: commits.described(new[path], text)
            for path, text in zip(files["path"].to_pylist(), texts, strict=True)
        }
        wanted = [parts for parts in columns if parts not in snapshot.without_stats]
        known = self._file_table(snapshot, self._frame(list(adds.values())), wanted)
        return Staged(files=known, paths=written.paths, handle=adds)

    def _frame(self, adds: Sequence[JavaObject]) -> DataFrame:
        """Return AddFile actions as rows, like those of a snapshot."""
        lines = [add.json() for add in adds]
        parsed = F.from_json("value", f"add {_ADD_FILE}")
        frame = self._jvm.frame([(line,) for line in lines], "value string")
        return frame.select(parsed["add"].alias("add")).select("add.*")

    def commit(self, rewrite: Rewrite) -> int:
        """Exchange the files in one OPTIMIZE commit, after keeping the layout.

        Raises:
            ConflictError: Another writer was faster; nothing was committed.
            UnknownOutcomeError: It may or may not have been committed.
        """
        Layouts(Store(self._jvm, rewrite.base.handle.located.log)).keep(rewrite.layout)
        removed = pa.concat_tables([exchange.removed for exchange in rewrite.exchanges])
        added = pa.concat_tables([exchange.added for exchange in rewrite.exchanges])
        adds = [rewrite.staged.handle[path] for path in added["path"].to_pylist()]
        removes = list(self._adds(rewrite.base.handle.snapshot, removed))
        return commits.commit(self._jvm, rewrite, removes, adds)

    def close(self) -> None:
        """Delta's own classes hold nothing for us."""


_ADD_FILE = (
    "struct<path: string, partitionValues: map<string, string>, size: bigint, stats: string, "
    "tags: map<string, string>, deletionVector: struct<storageType: string, "
    "pathOrInlineDv: string, offset: int, cardinality: bigint>>"
)
"""The part of PROTOCOL.md's "Add File" that a file table is made of."""


def _json(scala_schema: JavaObject) -> dict[str, object]:
    parsed: dict[str, object] = json.loads(scala_schema.json())
    return parsed


def _wanted(snapshot: Snapshot, schema: T.StructType, parts: Parts) -> Wanted:
    resolved, type_ = resolve(parts, snapshot.schema)
    spark_type: T.DataType = schema
    for part in resolved:
        field = spark_type[part]  # type: ignore[index]
        spark_type = field.dataType
    changes = field.metadata.get("delta.typeChanges", ())
    return Wanted(
        parts=resolved,
        physical=snapshot.physical.get(resolved, resolved),
        type=snapshot.partition.get(resolved[0], type_),
        spark_type=spark_type,
        was_float=any(change["fromType"] == "float" for change in changes),
    )


def _partition_type(type_: pa.DataType) -> pa.DataType:
    """CHAR has no order of its own, but its values as they are stored tell partitions apart."""
    return pa.string() if pa.types.is_null(type_) else type_
