"""Columns that are likely to tell the rows of a table apart, by the footer of one of its files."""

from collections.abc import Mapping
from math import log2

import pyarrow as pa
import pyarrow.parquet as pq

from zadapter.base.key_types import is_key
from zadapter.base.names import NameParts

_SURE = 24
"""Bits beyond those with which two of the rows would be equal by chance."""
_NARROW = 16
"""Bytes of a value that are decoded in no time to speak of."""


def find_identifying_columns(
    footer: pq.FileMetaData, schema: pa.Schema, physical: Mapping[NameParts, NameParts], rows: int
) -> tuple[str, ...]:
    """Return a few columns that may tell all rows apart, or none.

    Columns are taken in the order of the bits that a value needs when it is compressed, narrow ones
    first, until the birthday paradox makes equal rows unlikely. Whether they do tell the rows apart
    has to be checked.

    Args:
        footer: Footer of a file with many of the rows.
        schema: Columns of the table.
        physical: Names of columns in the files, where they differ from the logical names.
        rows: Number of all rows.
    """
    sizes = _sizes(footer)
    found = list[tuple[bool, float, str]]()
    for field in schema:
        path = ".".join(physical.get((field.name,), (field.name,)))
        if is_key(field.type) and path in sizes and footer.num_rows:
            compressed, plain = (size / footer.num_rows for size in sizes[path])
            found.append((plain > _NARROW, -8 * compressed, field.name))
    chosen, bits = list[str](), 0.0
    for _, negative_bits, name in sorted(found):
        chosen.append(name)
        bits -= negative_bits
        if bits >= 2 * log2(max(rows, 2)) + _SURE:
            return tuple(chosen) if len(chosen) < len(schema) else ()
    return ()


def _sizes(footer: pq.FileMetaData) -> dict[str, tuple[int, int]]:
    """Return the compressed and the plain bytes of each column, by its path."""
    sizes = dict[str, tuple[int, int]]()
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            compressed, plain = sizes.get(column.path_in_schema, (0, 0))
            sizes[column.path_in_schema] = (
                compressed + column.total_compressed_size,
                plain + column.total_uncompressed_size,
            )
    return sizes
