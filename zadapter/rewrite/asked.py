"""The files that the arguments of a call ask for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.backend.contract import Backend, is_dated
from zadapter.base.names import Parts
from zadapter.errors import UnsupportedError
from zadapter.planning.options import Options
from zadapter.predicates.predicate import Predicate
from zadapter.predicates.predicate import columns as columns_of
from zadapter.predicates.pruning import matching
from zadapter.spark.where import condition
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The files of a table, and those of them that may be rewritten."""

    files: pa.Table = field(repr=False)
    """All live files, with stats of the columns that matter."""
    candidates: pa.Table = field(repr=False)
    """Those that may hold rows matching ``where``, and are old enough for ``min_age``."""
    young: int = 0
    """Number of files that are not old enough."""


def asked(
    options: Options,
    backend: Backend,
    snapshot: Snapshot,
    columns: Sequence[Parts],
    predicate: Predicate | None,
) -> Asked:
    """Return the live files with stats of *columns*, and those that may be rewritten.

    Raises:
        UnsupportedError: The backend does not know the age of files.
    """
    used = () if predicate is None else sorted(columns_of(predicate))
    files = backend.files(snapshot, tuple(dict.fromkeys((*columns, *used))))
    candidates = files if predicate is None else files.filter(pa.array(matching(predicate, files)))
    settled = _old_enough(options, backend, snapshot, candidates)
    return Asked(files=files, candidates=settled, young=candidates.num_rows - settled.num_rows)


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
