"""Facts of AddFile actions by Arrow, as ``add_files`` has Spark read them, for millions of files.

A value is read only if Spark certainly reads the same. Spark takes a bound of another form than its
column's type for unknown, reads texts without a zone in that of the session, and rounds decimals.
Arrow's parser refuses such a value, or the forms that texts must have here do. Then Spark has to
read the log.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from zadapter.base.key_types import (
    DATE,
    DECIMAL,
    FLOAT,
    INTEGER,
    TEXT,
    TIMESTAMP,
    has_zone,
    kind_of,
)
from zadapter.base.names import NameParts
from zadapter.table.file_stats import child
from zadapter_delta.stats.add_files import LAYOUT_TAG, PROVIDER, Wanted

_DAY = r"\d{4}-\d{2}-\d{2}"
_TIME = _DAY + r"T\d{2}:\d{2}:\d{2}(\.\d{1,6})?"
_ZONE = r"(Z|[+-](0\d|1[0-7]):[0-5]\d)"  # Spark knows zones up to 18 hours, Arrow more
_WHOLE = r"-?\d{1,19}"


def flatten(
    adds: pa.StructArray, usable: Sequence[Wanted], partition: Mapping[str, Wanted]
) -> pa.Table:
    """Return AddFile actions as one column per fact, named as in ``add_files``.

    Args:
        adds: The actions, none of which is null.
        usable: Columns whose stats are read.
        partition: The partition columns.

    Raises:
        ValueError: Spark may read something otherwise.
    """
    stats = parse_stats(_field(adds, "stats", pa.string()), usable)
    vector = _field(adds, "deletionVector", pa.struct([]))
    owner = _field(adds, "clusteringProvider", pa.string())
    missing = pa.scalar(None, pa.string())
    columns = {
        "path": _field(adds, "path", pa.string()),
        "deletes": _name_vector(vector),
        "size": _field(adds, "size", pa.int64()),
        "records": stats["numRecords"],
        "deleted": _field(vector, "cardinality", pa.int64()).fill_null(0),
        "tight": pc.coalesce(stats["tightBounds"], vector.is_null()),
        "layout": look_up(_field(adds, "tags"), LAYOUT_TAG),
        "owner": pc.if_else(pc.not_equal(owner, PROVIDER), owner, missing),
    }
    values = _field(adds, "partitionValues")
    for number, column in enumerate(partition.values()):
        columns[f"partition{number}"] = _read_partition(values, column)
    for number, column in enumerate(usable):
        for name, group in (("min", "minValues"), ("max", "maxValues")):
            columns[f"{name}{number}"] = _read_bound(child(stats[group], *column.physical), column)
        columns[f"nulls{number}"] = child(stats["nullCount"], *column.physical)
    return pa.table(columns)


def _name_vector(vector: pa.StructArray) -> pa.Array:
    """Return the ids of deletion vectors (``DeletionVectorDescriptor.uniqueId``, with an ``@``).

    Raises:
        ValueError: A deletion vector lacks a part.
    """
    kind, place = (_field(vector, name, pa.string()) for name in ("storageType", "pathOrInlineDv"))
    offset = _field(vector, "offset", pa.int32()).cast(pa.string())
    short = pc.binary_join_element_wise(kind, place, "@")
    if short.null_count != vector.null_count:
        raise ValueError("a deletion vector is incomplete")
    return pc.coalesce(pc.binary_join_element_wise(short, offset, "@"), short)


def parse_stats(stats: pa.StringArray, usable: Sequence[Wanted]) -> pa.Table:
    """Return the stats of each file, with the values of *usable* columns only.

    Raises:
        ValueError: Spark may read something otherwise.
    """
    bounds = _nest_types([(column.physical, _stated_type(column)) for column in usable])
    counts = _nest_types([(column.physical, pa.int64()) for column in usable])
    fields = [("numRecords", pa.int64()), ("tightBounds", pa.bool_())]
    if usable:
        fields += [("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]
    if not len(stats):
        return pa.schema(fields).empty_table()
    lines = _join_lines(stats.fill_null("{}"))
    parsed = pj.read_json(
        pa.BufferReader(pa.py_buffer(lines)),
        # one block: a line may be longer than Arrow's
        pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"),
    )
    if parsed.num_rows != len(stats):
        raise ValueError("the stats of a file are no object of JSON")
    return parsed.combine_chunks()


def _join_lines(texts: pa.StringArray) -> bytes:
    """Return texts as lines, each of which is one object of JSON if the whole has as many objects.

    Raises:
        ValueError: A text has a line break, or begins or ends with another character.
    """
    if not pc.all(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))).as_py():
        raise ValueError("the stats of a file are no object of JSON")
    ends = pa.array([0, len(texts)], pa.int32())
    lines: bytes = (
        pc.binary_join(pa.ListArray.from_arrays(ends, texts), "\n")[0].as_buffer().to_pybytes()
    )
    if lines.count(b"\n") != len(texts) - 1 or b"\r" in lines:
        raise ValueError("the stats of a file have line breaks")
    return lines


def look_up(maps: pa.MapArray, key: str) -> pa.Array:
    """Return the first value of a key in each map, null where there is none.

    It takes a tenth of the time of ``pyarrow.compute.map_lookup``.
    """
    if pa.types.is_null(maps.type):
        return pa.nulls(len(maps), pa.string())
    ends = maps.offsets.to_numpy()
    first, count = int(ends[0]), int(ends[-1] - ends[0])
    is_it = pc.equal(maps.keys.slice(first, count), key)
    rows = np.repeat(np.arange(len(maps)), np.diff(ends))[is_it.to_numpy(zero_copy_only=False)]
    values = maps.items.slice(first, count).filter(is_it).cast(pa.string())
    if len(rows) == len(maps) and not maps.null_count and (np.diff(rows) > 0).all():
        return values
    at = np.full(len(maps), -1)
    at[rows[::-1]] = np.arange(len(rows))[::-1]
    return values.take(pa.array(at, mask=(at < 0) | maps.is_null().to_numpy(zero_copy_only=False)))


def _field(structs: Any, name: str, type_: pa.DataType | None = None) -> Any:
    """Return a field, null where its parent is null; nulls if there is none."""
    if structs.type.get_field_index(name) < 0:
        return pa.nulls(len(structs), pa.null() if type_ is None else type_)
    found = pc.struct_field(structs, name)
    is_same = type_ is None or pa.types.is_struct(type_) or found.type == type_
    return found if is_same else found.cast(type_)


def _nest_types(leaves: Sequence[tuple[NameParts, pa.DataType]]) -> pa.StructType:
    children: dict[str, list[tuple[NameParts, pa.DataType]]] = {}
    for (first, *rest), type_ in leaves:
        children.setdefault(first, []).append((tuple(rest), type_))
    return pa.struct(
        [
            (name, _nest_types(below) if below[0][0] else below[0][1])
            for name, below in children.items()
        ]
    )


def _stated_type(column: Wanted) -> pa.DataType:
    """Return the type by which Arrow parses the bounds of a column.

    Raises:
        ValueError: Java may round a number in the log to another value of the type.
    """
    kind = kind_of(column.type)
    if kind in {DATE, TIMESTAMP}:
        return pa.string()
    if kind not in {INTEGER, DECIMAL, TEXT} and column.type != pa.float64():
        raise ValueError(f"bounds of {column.type} are parsed by Spark")
    return column.type


def _read_bound(bounds: Any, column: Wanted) -> pa.Array:
    """Return the bounds of a column.

    Raises:
        ValueError: Spark may read one otherwise.
    """
    kind = kind_of(column.type)
    if kind is DATE:
        return _parse(bounds, _DAY, column.type)
    if kind is TIMESTAMP:
        return _parse(bounds, _TIME + (_ZONE if has_zone(column.type) else ""), column.type)
    if kind is TEXT:
        bounds.validate(full=True)  # Java replaces what is no UTF-8
    if kind is FLOAT and pc.any(pc.invert(pc.is_finite(bounds))).as_py():
        raise ValueError("a bound is no number")
    return bounds


def _read_partition(maps: pa.MapArray, column: Wanted) -> pa.Array:
    """Return the values of a partition column.

    Raises:
        ValueError: Spark may read one otherwise.
    """
    stated = look_up(maps, column.physical[0]).dictionary_encode()
    distinct, kind = stated.dictionary, kind_of(column.type)
    if kind is TEXT and column.spark_type.simpleString() == "string":
        values = distinct
    elif kind in {INTEGER, DATE}:
        # some writers write null as the empty string
        distinct = pc.if_else(pc.equal(distinct, ""), pa.scalar(None, pa.string()), distinct)
        values = _parse(distinct, _WHOLE if kind is INTEGER else _DAY, column.type)
    else:
        raise ValueError(f"partition values of {column.type} are parsed by Spark")
    return values.take(stated.indices)


def _parse(texts: Any, form: str, type_: pa.DataType) -> pa.Array:
    """Return texts of a form as values.

    Raises:
        ValueError: A text has another form, or is no value.
    """
    if pc.all(pc.match_substring_regex(texts, rf"\A{form}\z")).as_py() is False:
        raise ValueError(f"a text in the log is not written as values of {type_} are")
    return texts.cast(type_)
