"""Internal stats table: one row per file, in immutable Parquet files (parts).

============================ ====================================================
column                       meaning
============================ ====================================================
``path``                     relative to the table's root, unescaped
``size``, ``rows``           bytes, rows
``layout``                   id of the file's layout
``{column}_partitionValue``  value of a partition column
``{column}_minValue``        lowest value, null if unknown or if there is none
``{column}_maxValue``        highest value, null if unknown or if there is none
``{column}_num_nulls``       number of nulls, null if unknown
``{column}_num_nans``        number of NaNs, null if unknown
``{column}_bounds``          :class:`zadapter.table.file_stats.Bounds`
============================ ====================================================

A commit rewrites the parts that list removed files and adds parts for new files. Stats and files
change atomically, with the log entry that names the parts.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zadapter.base.key_types import is_text
from zadapter.base.names import NameParts, join
from zadapter.base.quantities import show_count
from zadapter.errors import CorruptLogError
from zadapter.table import file_stats
from zadapter.table.file_stats import column_type, schema
from zadapter_parquet.format.entries import StatsPart
from zadapter_parquet.format.paths import HIDDEN, check_path, former, successors
from zadapter_parquet.store.contract import Files

FOLDER = f"{HIDDEN}/stats"
FILES_A_PART = 50_000
"""Files per part: smaller parts mean less to rewrite, larger ones mean fewer to open."""

_PLAIN = ("path", "size", "rows", "layout")
_SUSPICIOUS = r"[%\\\x00]|(^|/)\.{0,2}(/|$)"
"""Pattern of paths that :func:`zadapter_parquet.format.paths.check_path` has to check."""
_SUFFIXES = {
    "min": "minValue",
    "max": "maxValue",
    "nulls": "num_nulls",
    "nans": "num_nans",
    "bounds": "bounds",
}


def flat(files: pa.Table) -> pa.Table:
    """Return a file table in the columns of the stats table."""
    columns = {name: files[name] for name in _PLAIN}
    for field in files.schema.field("partition").type:
        columns[f"{join((field.name,))}_partitionValue"] = file_stats.partition(files, field.name)
    for field in files.schema.field("stats").type:
        for name, suffix in _SUFFIXES.items():
            columns[f"{field.name}_{suffix}"] = file_stats.child(files["stats"], field.name, name)
    return pa.table(columns)


def load(
    store: Files,
    parts: Iterable[StatsPart],
    columns: Mapping[NameParts, pa.DataType],
    partition: Mapping[str, pa.DataType],
) -> pa.Table:
    """Return the file table of *parts*; only the stats of *columns* are read."""
    file_schema = schema(columns, partition)
    tables = (_load(store, part, columns, partition, file_schema) for part in parts)
    return file_stats.concat_files(chain([file_schema.empty_table()], tables))


def _load(
    store: Files,
    part: StatsPart,
    columns: Mapping[NameParts, pa.DataType],
    partition: Mapping[str, pa.DataType],
    file_schema: pa.Schema,
) -> pa.Table:
    names = {
        parts: [f"{join(parts)}_{suffix}" for suffix in _SUFFIXES.values()] for parts in columns
    }
    required = [*_PLAIN, *(f"{join((name,))}_partitionValue" for name in partition)]
    table = read(store, part, required, [name for group in names.values() for name in group])
    present = set(table.column_names)
    stats = [
        _structs([table[name] for name in names[parts]], type_)
        if names[parts][0] in present
        else pa.nulls(table.num_rows, column_type(type_))
        for parts, type_ in columns.items()
    ]
    values = [table[f"{join((name,))}_partitionValue"].combine_chunks() for name in partition]
    by_name = {name: table[name] for name in _PLAIN} | {
        "partition": file_stats.structs(
            values, file_schema.field("partition").type, table.num_rows
        ),
        "stats": file_stats.structs(stats, file_schema.field("stats").type, table.num_rows),
    }
    arrays = [
        by_name.get(field.name, pa.nulls(table.num_rows, field.type)) for field in file_schema
    ]
    return pa.table(arrays, schema=file_schema)


def read(
    store: Files, part: StatsPart, required: Sequence[str] | None, optional: Sequence[str] = ()
) -> pa.Table:
    """Read columns of a part.

    Args:
        store: The table's files.
        part: The part.
        required: Required columns; None: all.
        optional: Optional columns, read if the part has them.

    Raises:
        CorruptLogError: The part is missing or damaged.
        ConnectionError: The store does not answer.
    """
    try:
        with (
            _open_part(store, part.path) as file,
            pq.ParquetFile(file, page_checksum_verification=True) as reader,
        ):
            present = set(reader.schema_arrow.names)
            names = (
                None if required is None else [*required, *(n for n in optional if n in present)]
            )
            table = reader.read(columns=names)
    except ConnectionError:
        raise
    except FileNotFoundError as error:
        raise _corrupt(store, part, "is missing") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _corrupt(store, part, f"cannot be read: {error}") from error
    if missing := [name for name in required or _PLAIN if name not in table.column_names]:
        raise _corrupt(store, part, f"has no column {missing[0]!r}")
    if table.num_rows != part.files:
        raise _corrupt(
            store, part, f"lists {show_count(table.num_rows, 'files')} instead of {part.files}"
        )
    paths = successors(table["path"])
    _check_paths(store, part, paths)
    return table.set_column(table.column_names.index("path"), "path", paths)


def _open_part(store: Files, path: str) -> pa.NativeFile:
    """Open a part by its current or former name: another writer may be renaming it."""
    with suppress(FileNotFoundError):
        return store.open_file(path)
    with suppress(FileNotFoundError):
        return store.open_file(former(path))
    return store.open_file(path)


def _corrupt(store: Files, part: StatsPart, problem: str) -> CorruptLogError:
    return CorruptLogError(
        f"the stats file {store.location(part.path)} {problem}; restore it from a backup. Nothing "
        "was changed"
    )


def _check_paths(store: Files, part: StatsPart, paths: pa.ChunkedArray) -> None:
    """Check that paths stay within the table.

    Raises:
        CorruptLogError: A path is missing, or leads out of the table.
    """
    if paths.null_count or not is_text(paths.type):
        raise _corrupt(store, part, "has no path for a file")
    for path in paths.filter(pc.match_substring_regex(paths, _SUSPICIOUS)).to_pylist():
        check_path(path)


def _structs(children: Sequence[pa.ChunkedArray], type_: pa.DataType) -> pa.StructArray:
    fields = list(column_type(type_))
    arrays = [
        child.combine_chunks().cast(field.type)
        for child, field in zip(children, fields, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def rewrite_parts(
    store: Files, parts: Sequence[StatsPart], removed: set[str], added: pa.Table
) -> tuple[StatsPart, ...]:
    """Write the changed parts, and return all parts of the new version.

    Parts that are less than half full are merged.

    Args:
        store: The table's files.
        parts: Parts of the previous version.
        removed: Paths of removed files; each is in one of *parts*.
        added: File table of added files.
    """
    kept: list[StatsPart] = []
    tables = [flat(added)] if added.num_rows else []
    removed_paths = pa.array(sorted(removed), pa.string())
    for part in parts:
        if not removed and part.files >= FILES_A_PART // 2:
            kept.append(part)
            continue
        stays = pc.invert(pc.is_in(read(store, part, ["path"])["path"], removed_paths))
        if part.files >= FILES_A_PART // 2 and pc.all(stays).as_py():
            kept.append(part)
            continue
        remaining = read(store, part, None).filter(stays)
        if remaining.num_rows:
            tables.append(remaining)
    return (*kept, *_write_parts(store, tables))


def _write_parts(store: Files, tables: Sequence[pa.Table]) -> list[StatsPart]:
    """Write *tables* as parts of about equal size."""
    if not tables:
        return []
    merged = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    count = -(-merged.num_rows // FILES_A_PART)
    cuts = [merged.num_rows * at // count for at in range(count + 1)]
    return [write(store, merged.slice(low, high - low)) for low, high in pairwise(cuts)]


def rename_files(
    store: Files, parts: Sequence[StatsPart], names: Mapping[str, str]
) -> tuple[StatsPart, ...]:
    """Rewrite the parts that list renamed files; *names* maps old to new paths."""
    kept: list[StatsPart] = []
    for part in parts:
        table = read(store, part, None)
        paths = table["path"].to_pylist()
        if not names.keys() & set(paths):
            kept.append(part)
            continue
        new_paths = pa.array([names.get(path, path) for path in paths], pa.string())
        index = table.column_names.index("path")
        kept.append(write(store, table.set_column(index, "path", new_paths)))
    return tuple(kept)


def write(store: Files, table: pa.Table) -> StatsPart:
    """Write a part under a unique name."""
    for path in table["path"].to_pylist():
        check_path(path)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    data = sink.getvalue().to_pybytes()
    # names are never reused, since vacuum may be about to delete an old part
    path = f"{FOLDER}/{uuid4().hex}.stats"
    store.write(path, data)
    return StatsPart(path=path, files=table.num_rows, size=len(data))
