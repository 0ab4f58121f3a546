"""``optimize`` and ``plan``."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter import filestats
from zadapter.backend import Backend, Factory
from zadapter.commit import Backoff, Landed, publish
from zadapter.errors import (
    ConflictError,
    ReplacedTableError,
    UnknownOutcomeError,
    VerificationError,
    ZadapterError,
)
from zadapter.failures import explained, explaining
from zadapter.filestats import narrowed
from zadapter.grouping import Group, find_roots
from zadapter.interrupts import Interrupted, interruptible
from zadapter.report import Plan, Report, Verification, timing
from zadapter.spark.files import discard
from zadapter.spark.scratch import refresh, scratch
from zadapter.spark.verification import check_contents, check_rows, live_rows, staged
from zadapter.table import Exchange, Rewrite, Staged, Written, chosen
from zadapter.verbs.asking import open_table
from zadapter.verbs.preparing import Prepared, Work, prepare
from zadapter.verbs.question import By, Question
from zadapter.verbs.writing import write


@explained
def optimize(  # noqa: PLR0913 - the public call, all by keyword
    table: str | PathLike[str],
    *,
    by: By,
    backend: str | Factory | None = None,
    where: str | None = None,
    curve: str = "adaptive",
    target_file_size: str | int = "128MB",
    row_groups: int = 16,
    max_group_bytes: str | int = "256GB",
    widen_stats: bool = False,
    force: bool = False,
    verify: str = "counts",
    backoff: Backoff | None = None,
    spark: SparkSession | None = None,
) -> Report:
    """Cluster *table* so that filters on *by* open fewer files and row groups.

    Rows, schema, partitions, row ids and streams stay as they are. Files that an earlier run laid
    out in the same way are left alone: a run after an append rewrites little more than that.

    Args:
        table: A path, ``delta.`path```, or an identifier of the session's catalog.
        by: Key columns, those most filters use; one to four are useful. Nested fields as ``a.b``.
            A mapping of column to weight gives a column more of the z-value's bits.
        backend: ``"delta"``, ``"iceberg"``, ``"parquet"`` or a backend's class; None finds it out.
        where: SQL. Files that cannot hold a matching row are left alone, others rewritten whole.
        curve: ``"adaptive"``, ``"zorder"``, ``"hilbert"`` or ``"linear"``.
        target_file_size: Bytes a written file should have, or text such as ``"128MB"``.
        row_groups: Row groups a written file should have; readers skip them one by one.
        max_group_bytes: Larger partitions are clustered in parts of at most this many bytes.
        widen_stats: Add key columns without stats to the table property that lists those with.
        force: Rewrite what is clustered already, and fit new cuts.
        verify: ``"counts"`` compares rows by number, ``"checksum"`` by all values (one more read).
        backoff: When to try a commit again after losing a race.
        spark: A classic Spark session; None takes the active one, or starts a local one.

    Returns: What was rewritten, what was left behind, and what it brought.

    Raises:
        UsageError, SessionError, UnsupportedError: Nothing was written; the message says why.
        VerificationError: What was written is not what was read; it was not committed.
        ConflictError: Other writers were faster until attempts ran out; nothing was committed.
        UnknownOutcomeError: It is not known whether a commit landed; nothing was deleted.
    """
    question = Question(
        table=table,
        by=by,
        where=where,
        curve=curve,
        target_file_size=target_file_size,
        row_groups=row_groups,
        max_group_bytes=max_group_bytes,
        widen_stats=widen_stats,
        force=force,
        verify=verify,
        backoff=Backoff() if backoff is None else backoff,
    )
    with _opened(question, backend, spark) as (opened, own, users):
        return _run(question, opened, own, users)


@explained
def plan(  # noqa: PLR0913 - the public call, all by keyword
    table: str | PathLike[str],
    *,
    by: By,
    backend: str | Factory | None = None,
    where: str | None = None,
    curve: str = "adaptive",
    target_file_size: str | int = "128MB",
    row_groups: int = 16,
    max_group_bytes: str | int = "256GB",
    widen_stats: bool = False,
    force: bool = False,
    verify: str = "counts",
    spark: SparkSession | None = None,
) -> Plan:
    """Predict what :func:`optimize` would do with the same arguments, without writing anything.

    Reads the table's log and a sample of the key columns. With ``widen_stats``, it predicts as if
    the stats were there, and changes no property.

    Raises:
        UsageError: An argument makes no sense for this table.
        SessionError: The Spark session, its jars or Java do not fit.
        UnsupportedError: The table uses a feature that zadapter cannot keep.
        MissingStatsError: The table collects no stats for a key column.
    """
    question = Question(
        table=table,
        by=by,
        where=where,
        curve=curve,
        target_file_size=target_file_size,
        row_groups=row_groups,
        max_group_bytes=max_group_bytes,
        widen_stats=widen_stats,
        force=force,
        verify=verify,
    )
    with _opened(question, backend, spark) as (opened, own, _):
        return prepare(question, opened, own, write=False).plan()


@contextmanager
def _opened(
    question: Question, backend: str | Factory | None, spark: SparkSession | None
) -> Iterator[tuple[Backend, SparkSession, SparkSession]]:
    """Open the table in a session beside the user's; yield the backend and both sessions."""
    users, factory = open_table(question.name, backend, spark)
    with (
        interruptible(users.sparkContext),
        scratch(users) as own,
        closing(factory(own)) as opened,
    ):
        yield opened, own, users


@dataclass(slots=True)
class _Tally:
    """What a run has done so far."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    versions: list[int | None] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    read_twice: bool = False
    untested: str | None = None

    def note(self, landed: Landed, exchanges: Sequence[Exchange]) -> None:
        """Count a rewrite that landed."""
        self.versions.append(landed.version)
        self.exchanges += [e for e in exchanges if e not in landed.stale]
        self.stale += [
            f"{e.removed.num_rows} files, {e.removed['path'][0]} the first: "
            "changed by another writer"
            for e in landed.stale
        ]

    def verification(self, asked: str) -> Verification:
        """Return how rows were compared, where it was *asked* for so."""
        by = "checksum" if self.untested else asked
        return Verification(by=by, read_twice=self.read_twice, untested=self.untested)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Have an error say what was committed before it."""
        try:
            yield
        except ZadapterError as error:
            if self.versions:
                error.args = (f"{error}. Committed before, and to stay: {self.versions}",)
            raise


def _run(question: Question, backend: Backend, spark: SparkSession, users: SparkSession) -> Report:
    tally = _Tally()
    with timing(tally.seconds, "total"):
        with timing(tally.seconds, "plan"):
            prepared = prepare(question, backend, spark, write=True)
            planned = prepared.plan()
        tally.seconds["fit"] = prepared.seconds
        tally.seconds["plan"] -= prepared.seconds
        with tally.telling(), explaining(question.name):
            errors = [
                error
                for work in prepared.work
                if (error := _rewrite(prepared, work, spark, question, tally)) is not None
            ]
    if errors and len(errors) == len(prepared.work):
        raise errors[-1]
    if tally.versions:
        refresh(users, prepared.snapshot)
    return _report(prepared, planned, tally, question)


def _rewrite(
    prepared: Prepared, work: Work, spark: SparkSession, question: Question, tally: _Tally
) -> ConflictError | None:
    """Stage, verify and publish one job; return the conflict that made it give up."""
    asked = question.verify == "checksum"
    with timing(tally.seconds, "write"):
        written, moved = write(prepared, work, spark, checksum=asked)
    tally.untested = tally.untested or moved.untested
    try:
        with timing(tally.seconds, "verify"):
            made = staged(prepared.backend, prepared.snapshot, written, spark)
            exchanges = _exchanges(prepared, work, made)
            if asked or moved.untested is not None:
                files, found = work.job.files, moved.observed()
                tally.read_twice |= check_contents(
                    prepared.backend, prepared.snapshot, files, made, found
                )
        rewrite = Rewrite(
            base=prepared.snapshot, exchanges=exchanges, layout=work.layout, staged=made
        )
        with timing(tally.seconds, "commit"):
            landed = publish(prepared.backend, rewrite, question.backoff)
    except UnknownOutcomeError:
        raise
    except ConflictError as error:
        # a copy of a table that was dropped may have got them
        if not isinstance(error, ReplacedTableError):
            discard(spark, written)
        tally.stale.append(str(error))
        return error
    except (Exception, Interrupted):
        # nothing was committed: an attempt of unknown outcome would have said so
        with suppress(Exception):
            discard(spark, written)
        raise
    if landed.stale and not landed.doubtful:
        discard(spark, _only(made, landed.stale))
    tally.note(landed, exchanges)
    return None


def _exchanges(prepared: Prepared, work: Work, made: Staged) -> tuple[Exchange, ...]:
    """Check what was staged, partition by partition, and pair it with what goes."""
    snapshot, exchanges = prepared.snapshot, list[Exchange]()
    if not work.job.roots:
        (group,) = work.job.groups
        check_rows(group, filestats.total(made.files, "rows"), _rows_in(prepared, group))
        return (Exchange(removed=group.files, added=made.files),)
    of_root = find_roots(
        work.job.roots,
        [filestats.partition(made.files, name) for name in snapshot.partition],
        made.files.num_rows,
    )
    for number, group in enumerate(work.job.groups):
        mine = of_root == number
        added = made.files.filter(pa.array(mine))
        check_rows(group, filestats.total(added, "rows"), _rows_in(prepared, group))
        exchanges.append(Exchange(removed=group.files, added=added))
    if sum(exchange.added.num_rows for exchange in exchanges) != made.files.num_rows:
        raise VerificationError("a staged file belongs to no partition that was being rewritten")
    return tuple(exchanges)


def _rows_in(prepared: Prepared, group: Group) -> int:
    """Return the live rows of the files that go, counted where the log does not say."""
    known = live_rows(group.files)
    return prepared.backend.read(prepared.snapshot, group.files).count() if known is None else known


def _only(made: Staged, exchanges: Sequence[Exchange]) -> Written:
    """Return the part of *made* that belongs to *exchanges*."""
    paths = {path for exchange in exchanges for path in exchange.added["path"].to_pylist()}
    return Written(paths={path: uri for path, uri in made.paths.items() if path in paths})


def _report(prepared: Prepared, planned: Plan, tally: _Tally, question: Question) -> Report:
    empty = prepared.files.slice(0, 0)
    names = prepared.files.schema
    removed = pa.concat_tables([empty, *(exchange.removed for exchange in tally.exchanges)])
    added = [exchange.added for exchange in tally.exchanges]
    kept = set(prepared.files["path"].to_pylist()) - set(removed["path"].to_pylist())
    now = pa.concat_tables(
        [chosen(prepared.files, kept), *(narrowed(table, names) for table in added)]
    )
    return Report(
        plan=planned,
        versions=tuple(tally.versions),
        files_removed=removed.num_rows,
        files_added=sum(table.num_rows for table in added),
        bytes_removed=filestats.total(removed, "size"),
        bytes_added=sum(filestats.total(table, "size") for table in added),
        rows=sum(filestats.total(table, "rows") for table in added),
        share_after=prepared.share_read(now),
        stale=tuple(tally.stale),
        seconds=dict(tally.seconds),
        verification=tally.verification(question.verify),
    )
