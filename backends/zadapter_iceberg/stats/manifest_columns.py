"""Live data files of a snapshot, read from its manifests in bulk, without a job of Spark.

A class of Java reads the manifests through the table's own ``FileIO`` and copies the wanted values
into columns (``ManifestColumns.java``); here they become Arrow arrays, without an object for each
file. Both find fields by their ids, as Iceberg does. Where the class meets what it does not know,
or counts other files than the manifest list has, it stops, and Iceberg's own readers are asked.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from zadapter.base.key_types import (
    BINARY,
    DATE,
    DECIMAL,
    FLOAT,
    TEXT,
    find_key_type,
)
from zadapter.spark.jvm.spark_names import JVM_ERRORS
from zadapter.spark.jvm.spark_parts import serve
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats.binary_values import decode_decimals, decode_numbers

_NAME, _COLUMN = "ManifestColumns", "ArrowColumn"
_MOST_FILES = 100_000
"""Files of one message."""
_MOST_BYTES = 64 << 20
"""Bytes after which a message ends, however many columns it has."""
_FACTS = ("file_path", "record_count", "file_size_in_bytes", "spec_id")
STATS = ("lower_bounds", "upper_bounds", "null_value_counts", "nan_value_counts")
_TEXTS = frozenset({FLOAT, DECIMAL, TEXT, BINARY})
"""Kinds of partition values that manifests have as bytes; the others are whole numbers."""


class UnreadManifestsError(Exception):
    """The manifests cannot be read in bulk: Iceberg's own readers have to read them."""


class PartitionField(NamedTuple):
    """Partition field whose values are read.

    Attributes:
        name: Its name in the result.
        id: Field id.
        type: Type of its values.
        is_uuid: Whether they are uuids, of which texts are made.
    """

    name: str
    id: int
    type: pa.DataType
    is_uuid: bool


class Manifests(NamedTuple):
    """Manifests of data files.

    Attributes:
        items: A ``java.util.List`` of ``ManifestFile``.
        io: The ``FileIO`` that reads them.
        spec: Id of the partition spec whose values are read; files of others have none.
        fields: Fields of this spec.
    """

    items: JavaObject
    io: JavaObject
    spec: int
    fields: Sequence[PartitionField]


class LiveFiles:
    """The live data files of manifests, which are read once, in parts.

    The columns are those of the metadata table ``files``, but that each value of its maps has a
    column of its own, whose name :func:`entry_name` returns.

    Attributes:
        manifests: The manifests.
        counts: Number of live files of each of them, once all were read. Files of a manifest
            follow those of the one before.
    """

    def __init__(self, jvm: Jvm, manifests: Manifests, ids: Sequence[int]) -> None:
        """Read the bounds and counts of the columns *ids*."""
        self._jvm, self._ids = jvm, ids
        self.manifests = manifests
        self.counts: Sequence[int] = ()

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the parts.

        Raises:
            UnreadManifestsError: A manifest cannot be read so, or at all. What was yielded is void.
        """
        if any(find_key_type(field.type) is None for field in self.manifests.fields):
            raise UnreadManifestsError
        reader = _reader(self._jvm, self.manifests, self._ids)
        try:
            yield from self._read(serve(self._jvm.spark, reader))
        finally:
            with suppress(*JVM_ERRORS):  # it may be the JVM that has ended the reading
                reader.close()

    def _read(self, messages: Iterator[bytes]) -> Iterator[pa.Table]:
        for message in messages:
            count, *rest = np.frombuffer(message, "<i4", 2).tolist()
            if count < 0:
                if rest != [1]:
                    break
                self.counts = np.frombuffer(message, "<i4", offset=12).tolist()
                return
            try:
                yield _table(_arrays(message), self.manifests.fields, self._ids)
            except pa.ArrowInvalid as error:
                raise UnreadManifestsError from error
        raise UnreadManifestsError


def entry_name(name: str, id_: int) -> str:
    """Return the name of the column with the values of one key of a map."""
    return f"{name}[{id_}]"


def _reader(jvm: Jvm, manifests: Manifests, ids: Sequence[int]) -> JavaObject:
    try:
        reader = _compile(jvm, _NAME, _compile(jvm, _COLUMN)).newInstance()
        reader.open(
            manifests.items,
            manifests.io,
            manifests.spec,
            jvm.list(ids),
            jvm.list(field.id for field in manifests.fields),
            jvm.list(_is_text(field) for field in manifests.fields),
            _MOST_FILES,
            _MOST_BYTES,
        )
    except JVM_ERRORS as error:
        raise UnreadManifestsError from error
    return reader


def _compile(jvm: Jvm, name: str, used: JavaObject = None) -> JavaObject:
    source = files(__package__).joinpath(f"{name}.java").read_text(encoding="utf-8")
    return jvm.loops.compile(f"zadapter.iceberg.{name}", source, used)


def _is_text(field: PartitionField) -> bool:
    row = find_key_type(field.type)
    return field.is_uuid or row is None or row.kind in _TEXTS


def _arrays(message: bytes) -> list[pa.Array]:
    """Return the columns of a message, whose memory they share."""
    rows, count = np.frombuffer(message, "<i4", 2).tolist()
    heads = np.frombuffer(message, "<i4", 3 * count, 8).reshape(-1, 3).tolist()
    buffer, at = pa.py_buffer(message), _padded(8 + 12 * count)
    arrays = []
    for is_text, nulls, length in heads:
        sizes = [4 * (rows + 1), length] if is_text else [8 * rows]
        buffers = list[pa.Buffer | None]() if nulls else [None]
        for size in [-(-rows // 8), *sizes] if nulls else sizes:
            buffers.append(buffer.slice(at, size))
            at += _padded(size)
        type_ = pa.binary() if is_text else pa.int64()
        arrays.append(pa.Array.from_buffers(type_, rows, buffers, nulls))
    return arrays


def _padded(size: int) -> int:
    return (size + 7) // 8 * 8


def _table(
    arrays: Sequence[pa.Array], fields: Sequence[PartitionField], ids: Sequence[int]
) -> pa.Table:
    names = [*_FACTS, *(entry_name(name, id_) for id_ in ids for name in STATS)]
    columns = dict(zip(names, arrays, strict=False))
    columns["file_path"] = columns["file_path"].cast(pa.string())
    if fields:
        values = map(_partition_values, arrays[len(names) :], fields)
        columns["partition"] = pa.StructArray.from_arrays(list(values), [f.name for f in fields])
    return pa.table(columns)


def _partition_values(values: pa.Array, field: PartitionField) -> pa.Array:
    """Decode values of a partition field."""
    if not _is_text(field):
        return _decode(values, field)
    coded = values.dictionary_encode()  # few are distinct
    return _decode(coded.dictionary, field).take(coded.indices)


def _decode(values: pa.Array, field: PartitionField) -> pa.Array:
    row: Any = find_key_type(field.type)
    if field.is_uuid:
        return pa.array([_uuid(value) for value in values.to_pylist()], field.type)
    if row.kind is FLOAT:
        numbers, valid = decode_numbers(values, row.name)
        return pa.array(numbers, field.type, mask=~valid)
    if row.kind is DECIMAL:
        return decode_decimals(values, field.type)
    return values.cast(pa.int32()).cast(field.type) if row.kind is DATE else values.cast(field.type)


def _uuid(value: bytes) -> str:
    text = value.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
