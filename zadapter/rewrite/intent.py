"""The layout that a call without ``by`` follows: the layout of the table's own files."""

from dataclasses import replace

import pyarrow as pa

from zadapter.backend.contract import Backend
from zadapter.base.names import join, resolve
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.layout.layout import Request
from zadapter.layout.store import LAST
from zadapter.planning.file_size import heaviest_request
from zadapter.planning.options import AUTO, Options
from zadapter.table.snapshot import Snapshot


def followed(options: Options, backend: Backend, snapshot: Snapshot) -> Options | None:
    """Return *options* with the key columns, weights and curve of the table's layout.

    Options with key columns are returned as they are. Of several layouts, the one that wrote most
    of the live bytes is followed. If no live file has one, since all rows were overwritten, the
    last rewrite's is followed. A table without a layout may have clustering columns; None: it has
    neither.

    Raises:
        UsageError: The table lacks a column of its layout.
    """
    return options if options.by is not None else laid(options, backend.files(snapshot), snapshot)


def laid(options: Options, files: pa.Table, snapshot: Snapshot) -> Options | None:
    """Return *options* with the layout of *files*, as :func:`followed` does."""
    request = heaviest_request(files, snapshot.layouts)
    size = options.target_file_size
    if request is not None:
        _check(request, snapshot)
    elif (request := _last(snapshot)) is not None:
        size = request.target_file_size if size == AUTO else size
    if request is None and snapshot.clustering:
        return replace(options, by=[join(parts) for parts in snapshot.clustering])
    if request is None:
        return None
    keys = request.keys
    return replace(
        options,
        by=keys if keys.filters else keys.weights,
        curve=request.curve.value,
        row_groups=request.row_groups,
        target_file_size=size,
    )


def _last(snapshot: Snapshot) -> Request | None:
    """Return the request of the last rewrite, if the table still has its columns."""
    layout = snapshot.layouts.get(LAST)
    try:
        if layout is not None:
            _check(layout.request, snapshot)
    except UsageError:  # another table in the same folder
        return None
    return None if layout is None else layout.request


def _check(request: Request, snapshot: Snapshot) -> None:
    """Check that the table still has the key columns.

    Raises:
        UsageError: It lacks one.
    """
    try:
        for parts in request.columns:
            resolve(parts, snapshot.schema)
    except UnknownColumnError as error:
        raise UsageError(
            f"{snapshot.table} was clustered by {request.keys}, but {error}; pass by= (--by) "
            "with other columns"
        ) from error
