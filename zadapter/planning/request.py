"""The layout that a call asks for, by the table's schema: key columns, sizes, Bloom filters."""

import pyarrow as pa

from zadapter.base.key_types import is_key
from zadapter.base.names import NameParts, join, resolve, split
from zadapter.errors import UsageError
from zadapter.layout.layout import Curve, Request
from zadapter.planning.file_size import choose_file_size, find_bloom_filters
from zadapter.planning.options import Options
from zadapter.table.bloom_filters import refusal
from zadapter.table.snapshot import Snapshot

_NO_KEYS = (
    (pa.types.is_struct, "a struct; pass one of its fields"),
    (pa.types.is_list, "an array; pass other columns"),
    (pa.types.is_map, "a map; pass other columns"),
    (
        lambda type_: not is_key(type_),
        "of the type {type}, without min and max; pass other columns",
    ),
)


def key_columns(options: Options, snapshot: Snapshot) -> tuple[NameParts, ...]:
    """Return the key columns as the table's schema spells them.

    Raises:
        UnknownColumnError: The table has no such column.
        UsageError: A column cannot be a key.
    """
    return tuple(_key(name, snapshot) for name in options.weights)


def request_of(options: Options, snapshot: Snapshot, files: pa.Table) -> Request:
    """Resolve the options against a snapshot and its files, with the errors of `key_columns`."""
    columns, curve = key_columns(options, snapshot), Curve(options.curve)
    size = options.file_bytes or choose_file_size(
        files, snapshot.layouts, columns, curve, snapshot.target_file_size
    )
    return Request(
        columns=columns,
        bloom_filters=_bloom_filters(options, snapshot, files),
        weights=tuple(options.weights.values()),
        curve=curve,
        target_file_size=size,
        row_groups=int(options.row_groups),
        filters=options.filters,
    )


def _bloom_filters(options: Options, snapshot: Snapshot, files: pa.Table) -> tuple[NameParts, ...]:
    """Return the columns with Bloom filters: the stated ones, or those of the table's layout.

    Raises:
        UnknownColumnError: The table has no such column.
        UsageError: A column cannot have one.
    """
    if options.bloom_filters is None:
        return find_bloom_filters(files, snapshot.layouts)
    return tuple(
        sorted({_resolve_filter_column(name, snapshot) for name in options.filtered_columns})
    )


def _resolve_filter_column(name: str, snapshot: Snapshot) -> NameParts:
    parts, type_ = resolve(split(name), snapshot.schema)
    reason = refusal(parts, type_, snapshot.physical)
    if parts[0] in snapshot.partition:
        reason = "it is a partition column, so each file contains one value of it"
    if reason is not None:
        raise UsageError(f"{join(parts)!r} cannot have a Bloom filter: {reason}")
    return parts


def _key(name: str, snapshot: Snapshot) -> NameParts:
    parts, type_ = resolve(split(name), snapshot.schema)
    if parts[0] in snapshot.partition:
        raise UsageError(
            f"{join(parts)!r} is a partition column, so each file contains one value of it "
            "already; pass other columns"
        )
    name_of_type = snapshot.stored_types.get(parts, type_)
    for is_a, reason in _NO_KEYS:
        if is_a(type_):
            stated = reason.format(type=name_of_type)
            raise UsageError(f"{join(parts)!r} cannot be a key: it is {stated}")
    if parts in snapshot.without_bounds:
        raise UsageError(
            f"{join(parts)!r} cannot be a key: {snapshot.format} stores no min and max of its type "
            f"({name_of_type}), so clustering by it would not prune any files; pass other columns"
        )
    return parts
