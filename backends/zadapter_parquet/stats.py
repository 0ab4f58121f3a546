"""The internal stats table: a row a file, in Parquet files that are never changed.

============================ ====================================================
column                       meaning
============================ ====================================================
``path``                     relative to the table's root, as the file is called
``size``, ``rows``           bytes, rows
``layout``                   id of the layout that wrote the file
``{column}_partitionValue``  of each partition column
``{column}_minValue``        lowest value, null where unknown or there is none
``{column}_maxValue``        highest value
``{column}_num_nulls``       nulls, null where unknown
``{column}_num_nans``        NaNs, null where unknown
``{column}_bounds``          :class:`zadapter.filestats.Bounds`
============================ ====================================================

A commit writes the parts anew that hold a file which goes, and one part of those that come: stats
and files change together, with the entry that names the parts.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zadapter import filestats
from zadapter.filestats import column_type, schema
from zadapter.names import Parts, join
from zadapter_parquet.entries import Part
from zadapter_parquet.paths import HIDDEN, checked
from zadapter_parquet.stores import Files

FOLDER = f"{HIDDEN}/stats"
FILES_A_PART = 50_000
"""More parts mean less to write anew, fewer mean less to open."""

_PLAIN = ("path", "size", "rows", "layout")
_SUFFIXES = {
    "min": "minValue",
    "max": "maxValue",
    "nulls": "num_nulls",
    "nans": "num_nans",
    "bounds": "bounds",
}


def flat(files: pa.Table) -> pa.Table:
    """Return a file table as it is stored."""
    columns = {name: files[name] for name in _PLAIN}
    for field in files.schema.field("partition").type:
        columns[f"{join((field.name,))}_partitionValue"] = filestats.partition(files, field.name)
    for field in files.schema.field("stats").type:
        for name, suffix in _SUFFIXES.items():
            columns[f"{field.name}_{suffix}"] = filestats.child(files["stats"], field.name, name)
    return pa.table(columns)


def load(
    store: Files,
    parts: Iterable[Part],
    columns: Mapping[Parts, pa.DataType],
    partition: Mapping[str, pa.DataType],
) -> pa.Table:
    """Return the file table of *parts* with the stats of *columns*; no other stats are read."""
    wanted = schema(columns, partition)
    tables = [_load(store, part, columns, partition, wanted) for part in parts]
    return pa.concat_tables([wanted.empty_table(), *tables]).combine_chunks()


def _load(
    store: Files,
    part: Part,
    columns: Mapping[Parts, pa.DataType],
    partition: Mapping[str, pa.DataType],
    wanted: pa.Schema,
) -> pa.Table:
    names = {parts: [f"{join(parts)}_{each}" for each in _SUFFIXES.values()] for parts in columns}
    asked = [*_PLAIN, *(f"{join((name,))}_partitionValue" for name in partition)]
    with store.opened(part.path) as file, pq.ParquetFile(file) as found:
        there = set(found.schema_arrow.names)
        every = [*asked, *(name for group in names.values() for name in group if name in there)]
        table = found.read(columns=every)
    stats = [
        _structs([table[name] for name in names[parts]], type_)
        if names[parts][0] in there
        else pa.nulls(table.num_rows, column_type(type_))
        for parts, type_ in columns.items()
    ]
    values = [table[f"{join((name,))}_partitionValue"].combine_chunks() for name in partition]
    known = {name: table[name] for name in _PLAIN} | {
        "partition": filestats.structs(values, wanted.field("partition").type, table.num_rows),
        "stats": filestats.structs(stats, wanted.field("stats").type, table.num_rows),
    }
    arrays = [known.get(field.name, pa.nulls(table.num_rows, field.type)) for field in wanted]
    return pa.table(arrays, schema=wanted)


def _structs(children: Sequence[pa.ChunkedArray], type_: pa.DataType) -> pa.StructArray:
    fields = list(column_type(type_))
    arrays = [
        child.combine_chunks().cast(field.type)
        for child, field in zip(children, fields, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def rewritten(
    store: Files, parts: Sequence[Part], removed: set[str], added: pa.Table
) -> tuple[Part, ...]:
    """Write what changes, and return the parts of the new version.

    Args:
        store: The table's files.
        parts: Those of the version before.
        removed: Paths of the files that go; each is in one of *parts*.
        added: File table of those that come.
    """
    kept: list[Part] = []
    loose = [flat(added)] if added.num_rows else []
    gone = pa.array(sorted(removed), pa.string())
    for part in parts:
        if not removed and part.files >= FILES_A_PART // 2:
            kept.append(part)
            continue
        table = _whole(store, part)
        left = table.filter(pc.invert(pc.is_in(table["path"], gone)))
        if left.num_rows == table.num_rows and part.files >= FILES_A_PART // 2:
            kept.append(part)
        elif left.num_rows:
            loose.append(left)
    return (*kept, *_written(store, loose))


def _whole(store: Files, part: Part) -> pa.Table:
    with store.opened(part.path) as file, pq.ParquetFile(file) as found:
        return found.read()


def _written(store: Files, tables: Sequence[pa.Table]) -> list[Part]:
    """Write *tables* as parts of about the same size."""
    if not tables:
        return []
    whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    number = -(-whole.num_rows // FILES_A_PART)
    cuts = [whole.num_rows * at // number for at in range(number + 1)]
    return [_write(store, whole.slice(low, high - low)) for low, high in pairwise(cuts)]


def _write(store: Files, table: pa.Table) -> Part:
    for path in table["path"].to_pylist():
        checked(path)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    # never the name of another part, which a clean-up may be about to delete
    path = f"{FOLDER}/{uuid4().hex}.parquet"
    store.write(path, data)
    return Part(path=path, files=table.num_rows, size=len(data))
