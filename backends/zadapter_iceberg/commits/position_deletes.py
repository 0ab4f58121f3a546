"""Position deletes of new files, for rows that other writers have deleted.

Tables of version 2 get a delete file for each data file, tables of version 3 deletion vectors.
Iceberg's own classes write both. The positions of one data file at a time pass through the driver.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend.row_places import FILE, POSITION, ROW_ID
from zadapter.base.interrupts import reraise
from zadapter.spark.jvm import scala
from zadapter.spark.jvm.gateway import analyzed_plan, java_rows
from zadapter.spark.jvm.scala import each
from zadapter.spark.jvm.spark_classes import dataset
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats.row_deletes import Deletes
from zadapter_iceberg.table.snapshots import Version, with_properties

ROW_DELETES = 2
"""First format version with row-level deletes."""

_ICEBERG = "org.apache.iceberg."
_DELETES = f"{_ICEBERG}deletes"
_STRUCT, _SPEC = f"{_ICEBERG}StructLike", f"{_ICEBERG}PartitionSpec"
_ID = "_row_id"
_OUTPUT = 1
"""Place of the output among the fields of Spark's ``DataSourceV2Relation``."""
_FULL = "write.metadata.metrics.default"
"""Property whose value ``full`` keeps bounds whole. By them, readers see that a delete file is of
one data file."""


@dataclass(frozen=True, kw_only=True)
class NewDelete:
    """Deletes of rows of one new data file."""

    path: str
    """Path of the data file."""
    file: JavaObject
    """Iceberg's ``DeleteFile``."""


def of_files(deletes: Sequence[NewDelete], files: Mapping[str, JavaObject]) -> dict[str, Deletes]:
    """Return the deletes of new data files, by path.

    Args:
        deletes: Deletes of rows of some of the files.
        files: The ``DataFile`` of each new data file, by path.
    """
    found = dict[str, Deletes]()
    for each_delete in deletes:
        delete, rows = each_delete.file, int(files[each_delete.path].recordCount())
        deleted = int(delete.recordCount())
        id_ = f"{delete.location()}@{delete.contentOffset()}"
        found[each_delete.path] = Deletes(id_, deleted, deleted / max(rows, 1), 1)
    return found


def with_places(jvm: Jvm, rows: DataFrame) -> DataFrame:
    """Return rows of files with the columns of :mod:`zadapter.backend.row_places`."""
    places = [F.col("_file").alias(FILE), F.col("_pos").alias(POSITION)]
    if _ID not in rows.columns:
        return rows.select("*", *places)
    return _show_metadata(jvm, rows).select("*", *places, F.col(_ID).alias(ROW_ID))


def _show_metadata(jvm: Jvm, rows: DataFrame) -> DataFrame:
    """Return a scan that has all metadata columns, although it returns some as columns.

    Spark hides the others behind those that are marked as metadata columns, such as the row ids
    that Iceberg's reads for a rewrite return.
    """
    relation = analyzed_plan(rows)
    unmarked = jvm.root.org.apache.spark.sql.types.Metadata.empty()
    output = [each.withMetadata(unmarked) for each in scala.items(jvm.root, relation.output())]
    fields = scala.fields(relation)
    fields[_OUTPUT] = scala.seq(jvm.root, scala.java_list(jvm.root, output))
    return DataFrame(dataset(jvm.root, jvm.session, relation.copy(*fields)), jvm.spark)


def with_first_ids(jvm: Jvm, version: Version, files: Sequence[JavaObject]) -> list[JavaObject]:
    """Return files that are not committed, for a read of their rows' ids.

    The files have the id of each row. Iceberg reads none of a file that has no first id.
    """
    if not version.has_row_ids:
        return list(files)
    specs = version.pinned.specs()
    builders = (jvm.iceberg.DataFiles.builder(specs.get(f.specId())).copy(f) for f in files)
    return [builder.withFirstRowId(0).build() for builder in builders]


def write(
    jvm: Jvm, version: Version, folder: str, files: Mapping[str, JavaObject], places: DataFrame
) -> list[NewDelete]:
    """Write deletes of rows of new data files.

    Args:
        jvm: The session's JVM.
        version: The version that the files were written for.
        folder: Where to write.
        files: The ``DataFile`` of each new data file, by path.
        places: The columns ``FILE`` and ``POSITION`` of the rows.
    """
    table = with_properties(jvm, version.pinned, {"write.data.path": folder, _FULL: "full"})
    positions = _positions(jvm, places)
    if version.has_row_ids:
        return _write_vectors(jvm, table, files, positions)
    return [_write_file(jvm, table, folder, files[path], at) for path, at in positions]


def _positions(jvm: Jvm, places: DataFrame) -> Iterator[tuple[str, JavaObject]]:
    """Yield the path of each file with a ``java.util.List`` of the positions in it, sorted."""
    grouped = places.groupBy(FILE).agg(F.sort_array(F.collect_list(POSITION)).alias(POSITION))
    rows = java_rows(grouped.select(FILE, POSITION)).toLocalIterator()
    while rows.hasNext():
        row = rows.next()
        yield str(row.getString(0)), jvm.root.java.util.ArrayList(row.getList(1))


def _write_file(
    jvm: Jvm, table: JavaObject, folder: str, file: JavaObject, positions: JavaObject
) -> NewDelete:
    path, loops = str(file.location()), jvm.loops
    output = table.io().newOutputFile(f"{folder}/{uuid4().hex}-deletes.parquet")
    metrics = jvm.iceberg.MetricsConfig.forTable(table)
    builder = jvm.iceberg.parquet.Parquet.writeDeletes(output).overwrite().metricsConfig(metrics)
    spec = table.specs().get(file.specId())
    writer = builder.withSpec(spec).withPartition(file.partition()).buildPositionWriter()
    record = f"{_DELETES}.PositionDelete"
    delete = jvm.iceberg.deletes.PositionDelete.create()
    place = loops.method(record, "set", "java.lang.CharSequence", "long").bindTo(delete)
    add = loops.method(f"{_DELETES}.PositionDeleteWriter", "write", record).bindTo(writer)
    try:
        positions.forEach(loops.consumer(loops.chain(loops.bind(place, 0, path), add)))
    finally:
        writer.close()
    of_file = jvm.iceberg.FileMetadata.deleteFileBuilder(spec).copy(writer.toDeleteFile())
    return NewDelete(path=path, file=of_file.withReferencedDataFile(path).build())


def _write_vectors(
    jvm: Jvm,
    table: JavaObject,
    files: Mapping[str, JavaObject],
    positions: Iterator[tuple[str, JavaObject]],
) -> list[NewDelete]:
    loops = jvm.loops
    factory = jvm.iceberg.io.OutputFileFactory.builderFor(table, 0, 0)
    outputs = factory.format(jvm.iceberg.FileFormat.PUFFIN).operationId(uuid4().hex).build()
    none = loops.method("java.util.Map", "get", "java.lang.Object").bindTo(
        jvm.root.java.util.HashMap()
    )
    writer = jvm.iceberg.deletes.BaseDVFileWriter(outputs, loops.function(none))
    delete = loops.method(
        f"{_DELETES}.DVFileWriter", "delete", "java.lang.String", "long", _SPEC, _STRUCT
    ).bindTo(writer)
    try:
        for path, at in positions:
            file = files[path]
            spec = table.specs().get(file.specId())
            of_file = loops.bind(loops.bind(delete, 2, spec, file.partition()), 0, path)
            at.forEach(loops.consumer(of_file))
    finally:
        writer.close()
    vectors = each(jvm.root, writer.result().deleteFiles())
    return [NewDelete(path=str(v.referencedDataFile()), file=v) for v in vectors]


def can_permit(jvm: Jvm) -> bool:
    """Return whether this release of Iceberg has what :func:`permit` needs."""
    try:
        _deletes_manager(jvm)
        _delete_by_filter(jvm)
    except Exception as error:  # noqa: BLE001 - there is no such field or method
        reraise(error)
        return False
    return True


def permit(jvm: Jvm, update: JavaObject, column: str) -> None:
    """Let a ``RewriteFiles`` add deletes although it removes none.

    Iceberg checks that it removes some, since a rewrite of delete files has to. A condition that no
    delete file fulfils satisfies the check, and removes nothing. Iceberg has no public call for it.

    Args:
        jvm: The session's JVM.
        update: The ``RewriteFiles``.
        column: Name of a column.
    """
    manager = _deletes_manager(jvm).get(update)
    never = getattr(jvm.iceberg.expressions.Expressions, "in")(column, jvm.list([]))
    _delete_by_filter(jvm).invoke(manager, jvm.array(jvm.root.java.lang.Object, [never]))


def _deletes_manager(jvm: Jvm) -> JavaObject:
    field = jvm.class_of(f"{_ICEBERG}MergingSnapshotProducer").getDeclaredField(
        "deleteFilterManager"
    )
    field.setAccessible(True)
    return field


def _delete_by_filter(jvm: Jvm) -> JavaObject:
    condition = jvm.class_of(f"{_ICEBERG}expressions.Expression")
    classes = jvm.array(jvm.root.java.lang.Class, [condition])
    manager = jvm.class_of(f"{_ICEBERG}ManifestFilterManager")
    method = manager.getDeclaredMethod("deleteByRowFilter", classes)
    method.setAccessible(True)
    return method
