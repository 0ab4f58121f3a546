"""Partition values that are uuids, which Spark cannot read in the metadata table ``files``.

They are read from the manifests, one after the other, in loops within the JVM.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.spark.jvm.scala import each
from zadapter_iceberg.bulk_calls import facts
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats.scan_tasks import FILE

_STRUCT = "org.apache.iceberg.StructLike"


def read_uuids(
    jvm: Jvm, table: JavaObject, snapshot_id: int | None, positions: Mapping[str, int]
) -> pa.Table:
    """Return the values of the live data files of the current spec, by ``file_path``.

    Args:
        jvm: The session's JVM.
        table: The pinned table.
        snapshot_id: The snapshot; None if there is none.
        positions: Positions in the current spec of the fields that are uuids, by their names.
    """
    names = ["file_path", *positions]
    schema = pa.schema([(name, pa.string()) for name in names])
    if snapshot_id is None or not positions:
        return schema.empty_table()
    handles = _handles(jvm, positions)
    tables = [schema.empty_table()]
    io, spec = table.io(), table.spec().specId()
    for manifest in each(jvm.root, table.snapshot(snapshot_id).dataManifests(io)):
        if manifest.partitionSpecId() != spec:
            continue
        reader = jvm.iceberg.ManifestFiles.read(manifest, io, table.specs())
        files = jvm.root.java.util.ArrayList()
        try:
            selected = reader.select(jvm.list(["file_path", "partition"]))
            jvm.loops.for_each(selected.iterator(), jvm.loops.adding_to(files))
        finally:
            reader.close()
        found = facts(jvm, files, handles)
        tables.append(pa.table([found[name] for name in names], schema=schema))
    return pa.concat_tables(tables)


def _handles(jvm: Jvm, positions: Mapping[str, int]) -> dict[str, JavaObject]:
    """Return handles of what is read of each file, by name."""
    loops = jvm.loops
    values = loops.method(FILE, "partition")
    get = loops.method(_STRUCT, "get", "int", "java.lang.Class")
    any_class = jvm.class_of("java.lang.Object")
    return {"file_path": loops.method(FILE, "location")} | {
        name: loops.chain(values, loops.bind(get, 1, position, any_class))
        for name, position in positions.items()
    }


def add_to_partition(contents: pa.Table, uuids: pa.Table) -> pa.Table:
    """Add the values to the column ``partition`` of rows of the metadata table ``files``."""
    if uuids.num_columns == 1:
        return contents
    at = pc.index_in(contents["file_path"].combine_chunks(), uuids["file_path"].combine_chunks())
    own = {name: uuids[name].combine_chunks().take(at) for name in uuids.column_names[1:]}
    if "partition" in contents.column_names:
        others = contents["partition"].combine_chunks()
        own |= dict(zip((f.name for f in others.type), others.flatten(), strict=True))
        contents = contents.drop_columns("partition")
    values = pa.StructArray.from_arrays(list(own.values()), list(own))
    return contents.append_column("partition", values)
