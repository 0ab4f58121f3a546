"""What a migration is asked to do, and what all its ways have in common."""

import re
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.arguments.options import Question
from zadapter.arguments.resolve import request_of
from zadapter.backend.contract import Portable
from zadapter.base.locations import overlap
from zadapter.base.names import join, leaves
from zadapter.errors import UnknownTableError, UsageError
from zadapter.layout.layout import Layout, Request, orders
from zadapter.migration.copy import Way, keys_of, request_kept
from zadapter.migration.verify import Side, filters_on, prove
from zadapter.reports.migration import Migration, Mode, Proof
from zadapter.spark.clone import refresh
from zadapter.table import file_stats
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Snapshot, Source
from zadapter.table.spec import Definition, carried

_ODD = re.compile(r"\A\Z|\A__HIVE_DEFAULT_PARTITION__\Z|\\|(\A|/)\.\.(/|\Z)")


@dataclass(frozen=True, kw_only=True)
class Move:
    """What is asked for."""

    table: str
    source: Portable
    target_table: str
    target: Portable
    to: str
    mode: Mode
    question: Question | None
    """The layout that is wanted; None: the one that the table has."""
    spark: SparkSession
    """A session of our own."""
    users: SparkSession
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """What each phase has taken so far."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """The old table as it was looked at."""

    way: Way
    before: Definition
    request: Request | None
    """The layout that the new table gets."""

    @property
    def origin(self) -> Source:
        """What the new table will say that it is of."""
        of = self.way.snapshot
        return Source(format=of.format, id=of.id, version=of.version, columns=self.before.digest)


def start(move: Move) -> Start:
    """Look at the old table.

    Raises:
        UsageError: It is of the new format already, or cannot be clustered as asked.
    """
    snapshot = move.source.snapshot(move.table)
    if snapshot.format == move.to:
        raise UsageError(f"{move.table} is a table of {move.to} already; see zadapter.optimize()")
    before = move.source.define(snapshot)
    every = [
        parts
        for parts, type_ in leaves(snapshot.schema)
        if parts[0] not in snapshot.partition and orders(type_)
    ]
    files = move.source.files(snapshot, every)
    kept = request_kept(snapshot, files)
    fields = [each.name for each in before.partition]
    odd = [name for name in fields if _is_odd(file_stats.partition(files, name))]
    before = replace(before, unspeakable=frozenset(odd))
    way = Way(
        source=move.source,
        target=move.target,
        snapshot=snapshot,
        files=files,
        definition=move.target.accept(before),
        spark=move.spark,
    )
    wanted = kept if move.question is None else request_of(move.question, snapshot)
    return Start(way=way, before=before, request=wanted)


def _is_odd(values: pa.Array | None) -> bool:
    """Tell whether a partition value is one that a folder's name cannot say, or says as null."""
    if values is None or not pa.types.is_string(values.type):
        return False
    return any(_ODD.search(text) for text in values.drop_null().unique().to_pylist())


def existing(move: Move) -> Snapshot | None:
    """Return the new table, if there is one."""
    try:
        found = move.target.snapshot(move.target_table)
    except UnknownTableError:
        return None
    return found if found.version >= 0 else None


def landed(move: Move, version: int | None) -> Snapshot:
    """Return what a commit has made: the newest version if nobody knows which one that is."""
    target = move.target_table
    head = move.target.snapshot(target) if version is None else move.target.at(target, version)
    refresh(move.users, head)
    return head


def check_apart(old: Snapshot, new: Snapshot) -> None:
    """Make sure that no table's clean-up finds the files of the other in its own folder.

    Raises:
        UsageError: It would.
    """
    if overlap(old.location, new.location):
        raise UsageError(
            f"{old.table} and {new.table} lie within each other, where clean-ups of the one would "
            "delete files of the other; name another target"
        )


def listing(started: Start, made: Snapshot) -> pa.Table:
    """Return the files of the new table, with stats of what filters will ask for."""
    way = started.way
    return way.target.files(made, keys_of(way, started.request))


def proof(started: Start, made: Snapshot, columns: int, old: pa.Table, new: pa.Table) -> Proof:
    """Read files of both tables, and compare.

    Args:
        started: The old table.
        made: The new one.
        columns: How many of its columns are as they should be.
        old: Files of the old one.
        new: Files of the new one, of those that :func:`listing` has returned.

    Raises:
        VerificationError: They hold different rows.
    """
    way = replace(started.way, files=old)
    before = Side(backend=way.source, snapshot=way.snapshot, files=old, stats=way.files_as(made))
    after = Side(backend=way.target, snapshot=made, files=new, stats=new)
    keys = keys_of(way, started.request)
    filters = filters_on(before.stats, way.rows(old.slice(0, 0)), keys)
    return prove(before, after, way.columns(), filters, columns)


def report(move: Move, started: Start, mode: Mode, why: str, files: pa.Table) -> Migration:
    """Return what there is to say before anything is written."""
    snapshot = started.way.snapshot
    definition = started.way.definition
    return Migration(
        table=move.table,
        format=snapshot.format,
        version=snapshot.version,
        target=move.target_table,
        to=move.to,
        mode=mode,
        why=why,
        items=(*carried(started.before, definition), *definition.items),
        layout=_intended(started, mode, anew=move.question is not None),
        files=files.num_rows,
        size=total(files, "size"),
        seconds=move.seconds,
    )


def _intended(started: Start, mode: Mode, *, anew: bool) -> str:
    lost = len(started.before.partition) != len(started.way.definition.partition)
    return _told(started.request, anew=anew or (lost and mode is Mode.COPY))


def described(layouts: tuple[Layout, ...], known: Snapshot) -> str:
    """Return what has become of the layout."""
    anew = any(known.layouts.get(layout.id) is None for layout in layouts)
    return _told(layouts[0].request if layouts else None, anew=anew)


def _told(request: Request | None, *, anew: bool) -> str:
    if request is None:
        return "none; rows stay as they lie"
    columns = ", ".join(join(parts) for parts in request.columns)
    return f"{request.curve.value} by {columns}, {'fitted anew' if anew else 'kept'}"
