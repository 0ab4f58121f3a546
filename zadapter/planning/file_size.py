"""Choice of the target file size from the table, for callers that state none.

A table that is clustered already keeps the size of its layout, so that a second call finds nothing
to do. Otherwise the size follows from the table's bytes: small tables get enough files for filters
to skip some, large tables few enough files to plan with.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.arrays import as_array
from zadapter.base.names import NameParts
from zadapter.base.ranks import Ints
from zadapter.layout.cold import request_for_cold, request_of_table
from zadapter.layout.layout import ID, Curve, LayoutStore, Request
from zadapter.layout.store import LAST
from zadapter.table.file_stats import total
from zadapter.table.overlap.depth import partition_numbers

MIB = 1 << 20
FILES = 32
"""Minimum number of files of a table, unless they would be smaller than :data:`SMALLEST`."""
SMALLEST = MIB
"""Minimum chosen size: opening a smaller file costs more than reading it."""
USUAL, LARGEST = 128 * MIB, 1024 * MIB
"""Maximum chosen size of a usual and of a very large table."""
NO_LIMIT = np.iinfo(np.int64).max
MANY_FILES = 8192
"""Number of files above which files grow from the usual size to the largest."""


def target_file_size(size: int, limit: int | None = None) -> int:
    """Return the target file size of a new layout, in bytes.

    The size is a power of two unless *limit* is smaller, so that an append rarely changes it.

    Args:
        size: Bytes of the table.
        limit: Target file size in the table's own properties; None if there is none.

    >>> [target_file_size(mib << 20) >> 20 for mib in (10, 1024, 10 << 10, 4 << 20)]
    [1, 32, 128, 512]
    """
    most = limit or min(max(USUAL, size // MANY_FILES), LARGEST)
    wanted = 1 << (max(1, min(size // FILES, most)).bit_length() - 1)
    return min(max(wanted, SMALLEST), limit or LARGEST)


def find_file_size(
    files: pa.Table, layouts: LayoutStore, columns: Sequence[NameParts], curve: Curve
) -> int | None:
    """Return the target file size of the layout that wrote most bytes, or None.

    Args:
        files: The table's files.
        layouts: Layouts stored with the table, by id.
        columns: Key columns. Layouts of other columns do not count.
        curve: Curve. Layouts of other curves do not count.
    """
    for request in find_requests(files, layouts):
        if request is not None and request.columns == tuple(columns) and request.curve is curve:
            return request.target_file_size
    return None


def present_file_size(
    files: pa.Table, layouts: LayoutStore, request: Request | None, limit: int | None
) -> int:
    """Return the size of the table's layout, or a size by its bytes if it has none."""
    if request is not None:
        return request.target_file_size
    return target_file_size(int(counted_sizes(files, layouts).sum()), limit)


def choose_file_size(
    files: pa.Table,
    layouts: LayoutStore,
    columns: Sequence[NameParts],
    curve: Curve,
    limit: int | None,
) -> int:
    """Return the size of the table's layout of the same keys, or else a size by its bytes."""
    present = present_request(files, layouts)
    if present is not None and (present.columns, present.curve) == (tuple(columns), curve):
        kept: int | None = present.target_file_size
    else:
        kept = find_file_size(files, layouts, columns, curve)
    if kept is None:
        return target_file_size(int(counted_sizes(files, layouts).sum()), limit)
    return min(kept, limit or kept)


def counted_sizes(files: pa.Table, layouts: LayoutStore) -> Ints:
    """Return the bytes of each file, as they count for the number of files that replace them.

    Small files of many columns are larger than their target, since each of their row groups has its
    own pages and dictionaries. Those of a run count as so many targets together: by all of their
    bytes, each change of the keys would write more files, whose row groups are smaller and take
    more bytes again. Each has a part of that in proportion to its bytes. If each counted as one
    target at most, runs of large and small files would become fewer files with each rewrite. From
    the usual size on, row groups are large, so that files above their target have more rows than
    they should.

    Args:
        files: The table's files.
        layouts: Layouts stored with the table, by id.
    """
    sizes, written = files["size"].to_numpy(), as_array(files["layout"]).dictionary_encode()
    most = [_find_target(name, layouts) for name in written.dictionary.to_pylist()]
    if all(each == NO_LIMIT for each in most):
        return np.asarray(sizes, np.int64)
    number, most = written.indices.fill_null(len(most)).to_numpy(), [*most, NO_LIMIT]
    partition, _ = partition_numbers(files, [each.name for each in files["partition"].type])
    _, run_of = np.unique(partition * len(most) + number, return_inverse=True)
    mean = np.bincount(run_of, sizes) / np.bincount(run_of)
    share = np.minimum(1, np.array(most)[number] / np.maximum(mean, 1)[run_of])
    return np.asarray(np.rint(sizes * share), np.int64)


def _find_target(layout_id: str, layouts: LayoutStore) -> int:
    """Return the target size of a layout's files if it is small, or else a number above all."""
    stored = layouts.get(layout_id[: len(layout_id) // 2])
    small = stored is not None and stored.request.target_file_size < USUAL
    return stored.request.target_file_size if stored is not None and small else NO_LIMIT


def find_bloom_filters(files: pa.Table, layouts: LayoutStore) -> tuple[NameParts, ...]:
    """Return the columns with Bloom filters of the layout that a call without keys follows."""
    request, last = followed_request(files, layouts), layouts.get(LAST)
    if request is None and last is not None:
        request = last.request
    return () if request is None else request.bloom_filters


def other_bloom_filters(files: pa.Table, layouts: LayoutStore, request: Request) -> frozenset[str]:
    """Return the ids of the requests of the same keys as *request* that have other filters.

    Args:
        files: The table's files.
        layouts: Layouts stored with the table, by id.
        request: The requested layout.
    """
    ids = pc.unique(files["layout"]).drop_null().to_pylist()
    stored = ((name, layouts.get(name)) for name in {each[: len(each) // 2] for each in ids})
    return frozenset(
        name
        for name, layout in stored
        if layout is not None
        and layout.request.has_keys_of(request)
        and layout.request.bloom_filters != request.bloom_filters
    )


def heaviest_request(files: pa.Table, layouts: LayoutStore) -> Request | None:
    """Return the request whose stored layouts wrote most bytes, or None if none is stored."""
    stored = find_requests(files, layouts)
    return next((request for request in stored if request is not None), None)


def present_request(files: pa.Table, layouts: LayoutStore) -> Request | None:
    """Return the request of the layout that a table has; None: it has none.

    This is what ``by="auto"`` keeps. It is that of the last rewrite, if this was meant for the
    whole table and files have it: a change to another layout may take several calls. After a
    rewrite of a part, it is the layout of most bytes, or none if most bytes have none.
    """
    last, ids = layouts.get(LAST), pc.utf8_slice_codeunits(files["layout"], 0, ID)
    if last is not None and not last.of_part:
        own = [last.request.id, request_for_cold(last.request).id]
        if pc.any(pc.is_in(ids, value_set=pa.array(own, ids.type))).as_py():
            return last.request
    bare = total(files.filter(pc.is_null(files["layout"])), "size")
    is_tried = last is not None and last.of_part and 2 * bare > total(files, "size")
    return None if is_tried else heaviest_request(files, layouts)


def followed_request(files: pa.Table, layouts: LayoutStore) -> Request | None:
    """Return the request that a call without keys follows; None: no file has a layout.

    Unlike :func:`present_request`, it is also that of the few files that have a layout.
    """
    return present_request(files, layouts) or heaviest_request(files, layouts)


def find_requests(files: pa.Table, layouts: LayoutStore) -> Iterator[Request | None]:
    """Yield the request of each layout that wrote files, those of most bytes first.

    Args:
        files: The table's files.
        layouts: Layouts stored with the table, by id.

    Yields:
        One request for all of its layouts; None if none of these is stored. Of cold files, the
        request of the others.
    """
    written = as_array(files["layout"]).dictionary_encode()
    ids = written.dictionary.to_pylist()
    number = written.indices.fill_null(len(ids)).to_numpy()
    sizes = np.bincount(number, files["size"].to_numpy(), len(ids))[: len(ids)]
    by_request: dict[str, list[tuple[float, str]]] = {}
    for size, layout_id in zip(sizes.tolist(), ids, strict=True):
        # ids of the same request share their first half
        by_request.setdefault(layout_id[: len(layout_id) // 2], []).append((size, layout_id))
    heaviest = sorted(by_request.values(), key=lambda found: (-sum(s for s, _ in found), found))
    for found in heaviest:
        names = [layout_id for _, layout_id in sorted(found, reverse=True)]
        # of layouts that did not last, the request alone is stored, under its own id
        stored = (layouts.get(name) for name in (*names, names[0][: len(names[0]) // 2]))
        layout = next((layout for layout in stored if layout is not None), None)
        yield None if layout is None else request_of_table(layout.request)
