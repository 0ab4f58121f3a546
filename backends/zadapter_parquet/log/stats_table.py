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
``{column}_bounds``          :class:`zadapter.table.file_stats.Bounds`
============================ ====================================================

A commit writes the parts anew that hold a file which goes, and one part of those that come: stats
and files change together, with the entry that names the parts.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zadapter.base.names import Parts, join
from zadapter.errors import CorruptLogError
from zadapter.table import file_stats
from zadapter.table.file_stats import column_type, schema
from zadapter_parquet.format.entries import Part
from zadapter_parquet.format.legacy_names import former, successors
from zadapter_parquet.format.paths import HIDDEN, checked
from zadapter_parquet.store.contract import Files

FOLDER = f"{HIDDEN}/stats"
FILES_A_PART = 50_000
"""More parts mean less to write anew, fewer mean less to open."""

_PLAIN = ("path", "size", "rows", "layout")
_SUSPICIOUS = r"[%\\\x00]|(^|/)\.{0,2}(/|$)"
"""What a path may have to be looked at by :func:`zadapter_parquet.format.paths.checked`."""
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
        columns[f"{join((field.name,))}_partitionValue"] = file_stats.partition(files, field.name)
    for field in files.schema.field("stats").type:
        for name, suffix in _SUFFIXES.items():
            columns[f"{field.name}_{suffix}"] = file_stats.child(files["stats"], field.name, name)
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
    table = read(store, part, asked, [name for group in names.values() for name in group])
    there = set(table.column_names)
    stats = [
        _structs([table[name] for name in names[parts]], type_)
        if names[parts][0] in there
        else pa.nulls(table.num_rows, column_type(type_))
        for parts, type_ in columns.items()
    ]
    values = [table[f"{join((name,))}_partitionValue"].combine_chunks() for name in partition]
    known = {name: table[name] for name in _PLAIN} | {
        "partition": file_stats.structs(values, wanted.field("partition").type, table.num_rows),
        "stats": file_stats.structs(stats, wanted.field("stats").type, table.num_rows),
    }
    arrays = [known.get(field.name, pa.nulls(table.num_rows, field.type)) for field in wanted]
    return pa.table(arrays, schema=wanted)


def read(
    store: Files, part: Part, needed: Sequence[str] | None, known: Sequence[str] = ()
) -> pa.Table:
    """Return columns of a part, which the table cannot do without.

    Args:
        store: The table's files.
        part: The part.
        needed: Columns that it has; None: all.
        known: Columns that it may have.

    Raises:
        CorruptLogError: The part is missing or damaged.
    """
    try:
        with (
            _opened(store, part.path) as file,
            pq.ParquetFile(file, page_checksum_verification=True) as found,
        ):
            there = set(found.schema_arrow.names)
            wanted = None if needed is None else [*needed, *(n for n in known if n in there)]
            table = found.read(columns=wanted)
    except ConnectionError:
        raise
    except FileNotFoundError as error:
        raise _corrupt(store, part, "is missing") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _corrupt(store, part, f"cannot be read: {error}") from error
    if lacking := [name for name in needed or _PLAIN if name not in table.column_names]:
        raise _corrupt(store, part, f"has no column {lacking[0]!r}")
    if table.num_rows != part.files:
        raise _corrupt(store, part, f"lists {table.num_rows} files, the log says {part.files}")
    paths = successors(table["path"])
    _check_paths(store, part, paths)
    return table.set_column(table.column_names.index("path"), "path", paths)


def _opened(store: Files, path: str) -> pa.NativeFile:
    """Open a part; one of the log's first format may be about to get its name of today."""
    with suppress(FileNotFoundError):
        return store.opened(path)
    with suppress(FileNotFoundError):
        return store.opened(former(path))
    return store.opened(path)


def _corrupt(store: Files, part: Part, what: str) -> CorruptLogError:
    return CorruptLogError(
        f"{store.location(part.path)} lists files of a version of the table, and {what}; restore "
        "it from a backup. Nothing was changed"
    )


def _check_paths(store: Files, part: Part, paths: pa.ChunkedArray) -> None:
    """Refuse paths that lead out of the table.

    Raises:
        CorruptLogError: There is one.
    """
    if paths.null_count or not pa.types.is_string(paths.type):
        raise _corrupt(store, part, "has no path for a file")
    for path in paths.filter(pc.match_substring_regex(paths, _SUSPICIOUS)).to_pylist():
        checked(path)


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
        table = read(store, part, None)
        left = table.filter(pc.invert(pc.is_in(table["path"], gone)))
        if left.num_rows == table.num_rows and part.files >= FILES_A_PART // 2:
            kept.append(part)
        elif left.num_rows:
            loose.append(left)
    return (*kept, *_written(store, loose))


def _written(store: Files, tables: Sequence[pa.Table]) -> list[Part]:
    """Write *tables* as parts of about the same size."""
    if not tables:
        return []
    whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    number = -(-whole.num_rows // FILES_A_PART)
    cuts = [whole.num_rows * at // number for at in range(number + 1)]
    return [write(store, whole.slice(low, high - low)) for low, high in pairwise(cuts)]


def renamed(store: Files, parts: Sequence[Part], names: Mapping[str, str]) -> tuple[Part, ...]:
    """Write the parts anew that name one of the files that get other names."""
    kept: list[Part] = []
    for part in parts:
        table = read(store, part, None)
        paths = table["path"].to_pylist()
        if not names.keys() & set(paths):
            kept.append(part)
            continue
        now = pa.array([names.get(path, path) for path in paths], pa.string())
        at = table.column_names.index("path")
        kept.append(write(store, table.set_column(at, "path", now)))
    return tuple(kept)


def write(store: Files, table: pa.Table) -> Part:
    """Write a part, under a name of its own."""
    for path in table["path"].to_pylist():
        checked(path)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    data = sink.getvalue().to_pybytes()
    # never the name of another part, which a clean-up may be about to delete
    path = f"{FOLDER}/{uuid4().hex}.stats"
    store.write(path, data)
    return Part(path=path, files=table.num_rows, size=len(data))
