"""Clean-up of a table after its rewrite, by its format's own procedures."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from math import ceil

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend.contract import VersionedBackend, is_recoverable, is_versioned
from zadapter.base.interrupts import interruptible, reraise
from zadapter.base.names import quote, split, text_literal
from zadapter.base.outcome import sending
from zadapter.base.printable import printable
from zadapter.base.secrets import mask_secrets
from zadapter.base.translate_errors import root_cause, texts, translate_errors
from zadapter.errors import EngineError, ProtectedFilesError, UnsupportedError
from zadapter.lake import limits
from zadapter.lake.limits import EVER, HOUR, REFUSED_BY_DELTA, longest
from zadapter.lake.listing import find_tables, qualify
from zadapter.lake.settings import Keep
from zadapter.rewrite.recovery.leftovers import read_clock
from zadapter.spark.clone import scratch, set_all
from zadapter.spark.opening import OpenTable, open_in

_Run = Callable[[], Mapping[str, int]]
_OPEN = "open"
"""Name of the step that opens the table, which is reported only if it fails."""
LEFT_OUT = "left out"
"""Step of a table that itself keeps all of its files."""
_NO_DRY_RUN = "Iceberg has no dry run of this procedure, which deletes no files"
_AT_MOST = (
    "the number of snapshots at most: Iceberg keeps as many as "
    "history.expire.min-snapshots-to-keep and the settings of a branch demand"
)
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
_VACUUM_SETTINGS = {
    # off, a retention shorter than the table's own would delete files that readers need, or files
    # that another table shares
    _CHECK: "true",
    # on, as since Delta 4.1, RETAIN is ignored, and so is a retention longer than the table's own
    "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",
    # paths may contain ${...}
    "spark.sql.variable.substitute": "false",
}
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
"""Number of tasks in which Delta lists a table; Spark's default of 10 000 takes minutes, and for a
few files the 256 of a clone take three times as long as a few tasks do."""
_TOO_SHORT = "retention period"
"""What Delta's error about a retention that is too short says in all releases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What one step of a clean-up has done, or would do."""

    step: str
    """The procedure or command, as its format names it; ``open``: the table cannot be opened, or
    its clean-up is refused; ``left out``: the table itself keeps all of its files, as the note
    says."""
    counts: Mapping[str, int]
    """What the step has deleted or replaced, or would, by name; empty: nothing, or unknown.

    The names are those of Iceberg's results. ``orphan_files``, ``paths`` (files and folders of a
    ``VACUUM``, as its dry run lists them right before) and ``files`` (of a Parquet table) are
    listings. ``expired_snapshots`` is of dry runs."""
    seconds: float
    note: str | None = None
    """What the counts do not say; None: they say it all."""
    error: str | None = None
    """Why the step failed, and so the last one; None: it succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a clean-up, as SQL."""

    name: str
    query: str | None = None
    """A statement whose result is counted; None: there is none, and nothing is counted."""
    listed: str | None = None
    """What each row of the result is; None: the result is one row of counts."""
    then: str | None = None
    """A statement that runs if the query lists anything."""
    sooner: str | None = None
    """A statement that lists what the query will list an hour later, too; None: there is none."""
    note: str | None = None


def clean(
    spark: SparkSession,
    table: str,
    format: str,  # noqa: A002 - as the fields of a lake's values
    keep: Keep,
    *,
    dry_run: bool,
    files: int | None = None,
) -> tuple[Cleaned, ...]:
    """Delete what a table no longer needs, by the procedures of its format, in the safe order.

    The caller must not clean a table whose rewrite has failed or has an unknown outcome.

    What ``zadapter.lake.limits`` refuses does not begin, nor does the clean-up of a table that
    itself keeps all of its files. Orphans are listed first: if any of them
    lies in a folder of another table, inside of this one's or around it, none is deleted. Neither
    is any if one of Delta would do so within an hour.

    - **Iceberg**: ``rewrite_position_delete_files``, ``expire_snapshots`` and ``rewrite_manifests``
      if ``keep.versions`` is set, then ``remove_orphan_files`` if ``keep.orphans`` is set.
    - **Delta**: ``VACUUM``. It has one retention for files of older versions and for orphans, so
      the longer one of both applies, in whole hours. Without ``keep.orphans``, it is
      ``VACUUM ... LITE``, which deletes only files that the log names. Delta's check is on,
      whatever the session says: no retention may be shorter than the table's
      ``delta.deletedFileRetentionDuration``. Checkpoints and the clean-up of the log are left to
      Delta.
    - **Parquet**: :func:`zadapter.vacuum`, by the longer retention. It deletes no files that are
      unknown to zadapter.

    Args:
        spark: A session.
        table: A path or an identifier.
        format: Name of the table's format.
        keep: How long older versions and orphans are kept; None of them: nothing is deleted.
        dry_run: Only report what would be deleted.
        files: Number of live files; None: unknown.

    Returns:
        The steps in their order. After a failed step, which is the last one, no other runs.
    """
    if keep == Keep():
        return ()
    start = time.monotonic()
    with interruptible(spark.sparkContext), ExitStack() as left:
        try:
            with translate_errors(table):
                opened = left.enter_context(open_in(spark, table, format, spark))
                owns = is_versioned(opened.backend)
                limits.check(spark, opened.snapshot(), keep, owns_folder=owns)
                limits.check_unprotected(opened.snapshot())
                steps = _steps(opened, keep, files, dry_run=dry_run)
        except Exception as error:  # noqa: BLE001 - a failure stays with its table
            return (_failed(_OPEN, error, start),)
        done = list[Cleaned]()
        for step, run in steps:
            done.append(_take(table, step, run))
            if done[-1].error is not None:
                break
        return tuple(done)


def _check_clock(opened: OpenTable) -> None:
    """Refuse to count times back from a clock that is ahead of the store's: they would end early.

    Raises:
        UnsupportedError: It is ahead.
    """
    snapshot = opened.snapshot()
    if is_recoverable(opened.backend) and snapshot.version is not None:
        now = datetime.now(timezone.utc)
        store = read_clock(opened.backend.side_files(snapshot))
        refusal = limits.find_early(now - datetime.fromtimestamp(store / 1_000, timezone.utc))
        if refusal is not None:
            raise UnsupportedError(f"{snapshot.table}: keep: {refusal}")


def _steps(
    opened: OpenTable, keep: Keep, files: int | None, *, dry_run: bool
) -> list[tuple[Step, _Run]]:
    """Return the steps of a table's clean-up, and the functions that take them.

    Raises:
        UnsupportedError: The table's format has no clean-up that zadapter knows, or this machine's
            clock is ahead of the store's.
    """
    if not dry_run:
        _check_clock(opened)
    spark, name = opened.user_session, opened.factory.format.name
    if is_versioned(opened.backend):
        if opened.snapshot().version is None:
            return []  # the folder has no log yet, and so no older version
        run = partial(_vacuum, opened.backend, opened.name, longest(keep), dry_run=dry_run)
        return [(Step(name="zadapter.vacuum"), run)]
    if name == "iceberg":
        identifier = str(opened.snapshot().identifier)
        now = datetime.now(timezone.utc)
        steps = iceberg_steps(identifier, keep, now, dry_run=dry_run)
        location = opened.snapshot().location
        return [(step, partial(_execute, spark, step, location)) for step in steps]
    if name == "delta":
        snapshot = opened.snapshot()
        target = snapshot.identifier or f"delta.{quote((snapshot.location,))}"
        step = delta_step(target, keep, dry_run=dry_run)
        return [(step, partial(_vacuum_delta, spark, step, snapshot.location, files))]
    raise UnsupportedError(f"zadapter knows no clean-up of the format {name}")


def iceberg_steps(identifier: str, keep: Keep, now: datetime, *, dry_run: bool) -> tuple[Step, ...]:
    """Return the steps for an Iceberg table: orphans go last, when no snapshot expires any more.

    Args:
        identifier: The table with its catalog, quoted for SQL.
        keep: How long older versions and orphans are kept.
        now: The time from which on these times are counted back.
        dry_run: Whether nothing is deleted.
    """
    steps = list[Step]()
    if keep.versions is not None:
        steps += _expiry(identifier, _timestamp(now, keep.versions), dry_run=dry_run)
    if keep.orphans is not None:
        name, older = "remove_orphan_files", _timestamp(now, keep.orphans)
        listing, call = (
            _call(name, identifier, older_than=older, dry_run=only) for only in ("true", "false")
        )
        then = None if dry_run else call
        steps.append(Step(name=name, query=listing, listed="orphan_files", then=then))
    return tuple(steps)


def _expiry(identifier: str, older: str, *, dry_run: bool) -> tuple[Step, ...]:
    positions, manifests = "rewrite_position_delete_files", "rewrite_manifests"
    if dry_run:
        listing = (  # quoted by the backend
            f"SELECT count(*) AS expired_snapshots FROM {identifier}.snapshots WHERE committed_at "  # noqa: S608
            f"< {older} AND snapshot_id NOT IN (SELECT snapshot_id FROM {identifier}.refs)"
        )
        return (
            Step(name=positions, note=_NO_DRY_RUN),
            Step(name="expire_snapshots", query=listing, note=_AT_MOST),
            Step(name=manifests, note=_NO_DRY_RUN),
        )
    expire = _call("expire_snapshots", identifier, older_than=older)
    return (
        Step(name=positions, query=_call(positions, identifier)),
        Step(name="expire_snapshots", query=expire),
        Step(name=manifests, query=_call(manifests, identifier)),
    )


def _call(procedure: str, identifier: str, **arguments: str) -> str:
    """Return a call in the table's catalog: Iceberg looks in it alone."""
    catalog = quote(split(identifier)[:1])
    given = {"table": text_literal(identifier)} | arguments
    listed = ", ".join(f"{name} => {value}" for name, value in given.items())
    return f"CALL {catalog}.system.{procedure}({listed})"


def _timestamp(now: datetime, kept: timedelta) -> str:
    """Return the time until which things expire, with a zone, since the session's may be any."""
    moment = now.astimezone(timezone.utc) - min(kept, EVER)
    return f"TIMESTAMP '{moment.isoformat(' ', 'milliseconds')}'"


def delta_step(target: str, keep: Keep, *, dry_run: bool) -> Step:
    """Return the ``VACUUM`` of a Delta table.

    Hours are rounded up, since Delta rounds to the nearest hour. The files are listed first: a
    ``VACUUM`` without any would still commit its start and its end, which change the version.

    Delta counts hours back from the start of each statement, so a file of another table may become
    old enough between the listing and the ``VACUUM``. Hence folders of other tables are looked for
    by a retention that is an hour shorter. 0 hours cannot be shorter.

    Args:
        target: The table for SQL.
        keep: How long older versions and orphans are kept.
        dry_run: Whether nothing is deleted.
    """
    lite = " LITE" if keep.orphans is None else ""
    hours = ceil(longest(keep) / HOUR)
    command, shorter = (f"VACUUM {target}{lite} RETAIN {kept} HOURS" for kept in (hours, hours - 1))
    return Step(
        name="VACUUM",
        query=f"{command} DRY RUN",
        listed="paths",
        then=None if dry_run else command,
        sooner=f"{shorter} DRY RUN" if hours else None,
    )


def _take(table: str, step: Step, run: _Run) -> Cleaned:
    start = time.monotonic()
    try:
        with translate_errors(table):
            counts = run()
    except Exception as error:  # noqa: BLE001 - a failure stays with its table
        return _failed(step.name, error, start)
    seconds = time.monotonic() - start
    return Cleaned(step=step.name, counts=counts, seconds=seconds, note=step.note)


def _failed(step: str, error: Exception, start: float) -> Cleaned:
    """Return a failed or left out step, unless the caller's own exception has ended it."""
    reraise(error)
    cause = error.__cause__ if isinstance(error, EngineError) else None
    text = printable(mask_secrets(str(error) if cause is None else root_cause(texts(cause))))
    seconds = time.monotonic() - start
    if isinstance(error, ProtectedFilesError):
        return Cleaned(step=LEFT_OUT, counts={}, seconds=seconds, note=text)
    return Cleaned(step=step, counts={}, seconds=seconds, error=text)


def _execute(
    spark: SparkSession, step: Step, location: str, lister: SparkSession | None = None
) -> Mapping[str, int]:
    """Run the statements of a step on the table at a location, and return the counts.

    Args:
        spark: The session that runs them.
        step: The step.
        location: The table's location.
        lister: The session that lists what an hour adds; None: *spark*.

    Raises:
        UnsupportedError: Some of the files to be deleted may be those of another table.
    """
    if step.query is None:
        return {}
    found = spark.sql(step.query)
    if step.listed is None:
        rows = [row.asDict() for row in found.collect()]
        return {name: int(n) for row in rows for name, n in row.items() if n is not None}
    counts = _count_by_folder(found)
    if not counts:
        return {step.listed: 0}
    sooner = _count_by_folder((lister or spark).sql(step.sooner)) if step.sooner else {}
    tables = find_tables(spark, {*counts, *sooner})
    refusal = limits.find_nested(qualify(spark, location), tables)
    if refusal is not None:
        raise UnsupportedError(refusal)
    if step.then is not None:
        spark.sql(step.then)
    return {step.listed: sum(counts.values())}


def _count_by_folder(paths: DataFrame) -> Mapping[str, int]:
    """Return the number of paths in each folder."""
    folder = F.regexp_replace(F.col(quote((paths.columns[0],))), "/[^/]*$", "").alias("folder")
    return {row["folder"]: row["count"] for row in paths.groupBy(folder).count().collect()}


def _vacuum_delta(
    spark: SparkSession, step: Step, location: str, files: int | None
) -> Mapping[str, int]:
    """Run ``VACUUM`` with Delta's check on, and with the retention that it names.

    The check is off for the listing by a retention that is an hour shorter, which deletes nothing.
    Each task lists some of what lies in the table's own folder: more tasks than files are idle.
    """
    asked = int(spark.conf.get(_LISTING) or 1)
    if files is not None:
        asked = min(asked, max(files, int(spark.sparkContext.defaultParallelism)))
    with scratch(spark) as lister, scratch(spark) as clone:
        tasks = min(asked, int(clone.conf.get(_LISTING) or 1))
        set_all(clone, _VACUUM_SETTINGS | {_LISTING: str(tasks)})
        set_all(lister, _VACUUM_SETTINGS | {_LISTING: str(tasks), _CHECK: "false"})
        try:
            return _execute(clone, step, location, lister)
        except Exception as error:
            if _TOO_SHORT not in str(error):
                raise
            raise UnsupportedError(REFUSED_BY_DELTA) from error


def _vacuum(
    backend: VersionedBackend, table: str, kept: timedelta, *, dry_run: bool
) -> Mapping[str, int]:
    """Delete files as :func:`zadapter.vacuum` does."""
    with nullcontext() if dry_run else sending():
        return {"files": len(backend.vacuum(table, kept, dry_run=dry_run).paths)}
