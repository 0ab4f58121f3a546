"""The layout and the files that the arguments of a call ask for."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.backend.contract import Backend, is_dated
from zadapter.base.names import NameParts, join, resolve
from zadapter.errors import UnknownColumnError, UnsupportedError, UsageError
from zadapter.layout.layout import Request
from zadapter.layout.store import LAST
from zadapter.planning.file_size import followed_request
from zadapter.planning.options import AUTO, Options
from zadapter.predicates.predicate import Predicate
from zadapter.predicates.predicate import columns as columns_of
from zadapter.predicates.pruning import matching
from zadapter.spark.where import condition
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedFiles:
    """The files of a table, and those of them that may be rewritten."""

    files: pa.Table = field(repr=False)
    """All live files, with stats of the columns that matter."""
    candidates: pa.Table = field(repr=False)
    """Those that may hold rows matching ``where``, and are old enough for ``min_age``."""
    young: int = 0
    """Number of files that are not old enough."""


def select_files(
    options: Options,
    backend: Backend,
    snapshot: Snapshot,
    columns: Sequence[NameParts],
    predicate: Predicate | None,
) -> SelectedFiles:
    """Return the live files with stats of *columns*, and those that may be rewritten.

    Raises:
        UnsupportedError: The backend does not know the age of files.
    """
    used = () if predicate is None else sorted(columns_of(predicate))
    files = backend.files(snapshot, tuple(dict.fromkeys((*columns, *used))))
    candidates = files if predicate is None else files.filter(pa.array(matching(predicate, files)))
    settled = _old_enough(options, backend, snapshot, candidates)
    return SelectedFiles(
        files=files, candidates=settled, young=candidates.num_rows - settled.num_rows
    )


def _old_enough(
    options: Options, backend: Backend, snapshot: Snapshot, files: pa.Table
) -> pa.Table:
    """Return the files that are as old as ``min_age`` asks for.

    Raises:
        UnsupportedError: The backend does not know the age of files.
    """
    if options.least_age is None:
        return files
    if not is_dated(backend):
        raise UnsupportedError(
            f"{snapshot.table}: the backend of this format does not know the age of files; omit "
            "min_age="
        )
    before = datetime.now(timezone.utc) - options.least_age
    return files.filter(pc.is_in(files["path"], backend.older(snapshot, before)))


def predicate_of(where: str | None, backend: Backend, snapshot: Snapshot) -> Predicate | None:
    """Convert a condition to a predicate for the files of the current snapshot; None stays None."""
    if where is None:
        return None
    no_files = file_stats.empty({}, snapshot.partition)
    return condition(
        where, backend.read(snapshot, no_files), snapshot.schema, later=False
    ).predicate


def follow_layout(options: Options, backend: Backend, snapshot: Snapshot) -> Options | None:
    """Return *options* with the key columns, weights and curve of the table's layout.

    Options with key columns are returned as they are. Of several layouts, the last one that was
    meant for the whole table is followed, or else the one that wrote most of the live bytes. If no
    live file has one, since all rows were overwritten, the last rewrite's is followed. A table
    without a layout may have clustering columns; None: it has neither.

    Raises:
        UsageError: The table lacks a column of its layout.
    """
    return (
        options
        if options.by is not None
        else follow_files(options, backend.files(snapshot), snapshot)
    )


def follow_files(options: Options, files: pa.Table, snapshot: Snapshot) -> Options | None:
    """Return *options* with the layout of *files*, as :func:`follow_layout` does."""
    request = followed_request(files, snapshot.layouts)
    size = options.target_file_size
    if request is not None:
        _check(request, snapshot)
    elif (request := _last(snapshot)) is not None:
        size = request.target_file_size if size == AUTO else size
    if request is None and snapshot.clustering:
        return replace(options, by=[join(parts) for parts in snapshot.clustering])
    if request is None:
        return None
    return replace(options.with_layout(request), target_file_size=size)


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
