"""The tables of a lake, opened one by one: what rewrites of each would save, from its log alone."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial

from pyspark.sql import SparkSession

from zadapter.backend.contract import is_versioned
from zadapter.errors import UsageError
from zadapter.inspection.advise.choice import follow_queries
from zadapter.inspection.measure.table_access import Opened, opening
from zadapter.inspection.querylog.plans import is_in_catalog
from zadapter.inspection.querylog.spelling import Spelling, spelling
from zadapter.lake import limits
from zadapter.lake.choice import Step
from zadapter.lake.discovery import Found
from zadapter.lake.journal import is_journal
from zadapter.lake.judging import Terms, steps
from zadapter.lake.own_settings import Settings, follow_definition, settings_of
from zadapter.lake.settings import OWN, Budget, Entry
from zadapter.layout.layout import Request
from zadapter.planning.cost import object_store
from zadapter.planning.merges import Renewal
from zadapter.planning.options import Options
from zadapter.planning.reading import filter_weights
from zadapter.planning.relearning import Relearning
from zadapter.planning.request import key_columns, request_of
from zadapter.rewrite.file_selection import follow_layout, predicate_of, select_files
from zadapter.rewrite.planner import with_stats
from zadapter.table.file_stats import row_counts
from zadapter.table.overlap.extents import extent, space
from zadapter.table.snapshot import Snapshot

IsSettled = Callable[[Found, Snapshot], bool]
"""Returns whether a version of a table, as it is to be maintained, needs no judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is known of a table before a run."""

    found: Found
    """The table; its entry has what the table itself states instead of the file."""
    stated: Entry
    """That entry before a sort order decides its keys: the journal knows it by this one."""
    own: tuple[str, ...] = ()
    """What it states, as texts."""
    spelling: Spelling
    """The names by which queries refer to it."""
    id: str
    """The table's id (``Snapshot.id``)."""
    version: int | None
    files: int | None = None
    """Live files; None: not counted, since the table is as the last run has left it."""
    share: float | None = None
    """Mean share of the rows that a range filter reads, by the bounds of files, from 0 to 1."""
    steps: tuple[Step, ...] = ()
    """The rewrites that are due."""
    reason: str | None = None
    """Why no rewrite can be due; None: there is no such reason."""
    relearning: Relearning | None = None
    """Whether a query log has changed its layout; None: it was not asked."""


def judge(spark: SparkSession, found: Found, budget: Budget, is_settled: IsSettled) -> Judged:
    """Judge the rewrites of a table, with the errors of :func:`zadapter.plan`.

    Args:
        spark: A session.
        found: The table.
        budget: What the run may spend: no rewrite is planned that is larger.
        is_settled: Whether a version is as the last run has left it.

    Raises:
        UsageError: A property of the table cannot be read.
        UnsupportedError: The table cannot be rewritten, or not cleaned up as its entry asks.
    """
    with opening("analyze", found.table, found.format, spark) as opened:
        snapshot = opened.snapshot
        judged, is_done = _begin(spark, found, snapshot, is_settled)
        if is_done:
            return judged
        if is_journal(snapshot.schema.names):
            return replace(judged, reason="it is the journal of a lake; match it in exclude")
        snapshot.check_rewritable()
        if judged.stated.keep is not None:
            owns = is_versioned(opened.backend)
            limits.check(spark, snapshot, judged.stated.keep, owns_folder=owns)
        return _judge_keyed(opened, judged, budget)


def judge_settled(
    spark: SparkSession, found: Found, snapshot: Snapshot, is_settled: IsSettled
) -> Judged | None:
    """Return what :func:`judge` returns of a table that needs no judgement; None: it may need one.

    Args:
        spark: A session.
        found: The table.
        snapshot: Its current version.
        is_settled: Whether a version is as the last run has left it.
    """
    try:
        judged, is_done = _begin(spark, found, snapshot, is_settled)
    except UsageError:  # the judgement says which property
        return None
    return judged if is_done else None


def _begin(
    spark: SparkSession, found: Found, snapshot: Snapshot, is_settled: IsSettled
) -> tuple[Judged, bool]:
    """Return what a version and its properties tell of a table, and whether that is all."""
    settings = settings_of(found.entry, snapshot)
    judged = Judged(
        found=replace(found, entry=settings.entry),
        stated=settings.entry,
        own=settings.own,
        spelling=spelling(snapshot, partial(is_in_catalog, spark)),
        id=snapshot.id,
        version=snapshot.version,
    )
    if settings.entry.enabled:
        return judged, is_settled(judged.found, snapshot)
    by_property = any(text.startswith(f"{OWN}enabled") for text in settings.own)
    where = f"its property {OWN}enabled" if by_property else "enabled in its entry"
    return replace(judged, reason=f"{where} is false"), True


def _judge_keyed(opened: Opened, judged: Judged, budget: Budget) -> Judged:
    """Judge a table by its keys; without any, by the columns of its sort order."""
    snapshot, found = opened.snapshot, judged.found
    options = Options(table=found.table, **found.entry.options)
    options = follow_queries(options, opened.backend, snapshot, opened.session)
    keyed = follow_layout(options, opened.backend, snapshot)
    if keyed is None and found.entry.options.get("by") is None:
        settings = follow_definition(Settings(entry=found.entry, own=judged.own), snapshot)
        found = replace(found, entry=settings.entry)
        judged = replace(judged, found=found, own=settings.own)
        options = Options(table=found.table, **found.entry.options)
        keyed = follow_layout(options, opened.backend, snapshot)
    if keyed is None:
        files = opened.backend.files(snapshot).num_rows
        reason = "no key columns; state by in the file of the lake, or cluster the table once"
        reason = options.unchosen or reason
        return replace(judged, files=files, reason=reason)
    return _judge_files(opened, keyed, judged, budget)


def _judge_files(opened: Opened, options: Options, judged: Judged, budget: Budget) -> Judged:
    backend, columns = opened.backend, key_columns(options, opened.snapshot)
    ages, now = options.tier_ages, datetime.now(timezone.utc)
    tiers = None if ages is None else ages.at(now, opened.snapshot)
    if tiers is not None:
        columns = tiers.with_column(columns, opened.snapshot.partition)
    snapshot = with_stats(backend, opened.snapshot, columns, options, write=False)
    predicate = predicate_of(options.where, backend, snapshot)
    asked = select_files(options, backend, snapshot, columns, predicate)
    request: Request = request_of(options, snapshot, asked.files)
    files = asked.candidates
    extents = [extent(files, column) for column in request.columns]
    boxes = space(extents, row_counts(files), filter_weights(request))
    terms = Terms(
        renewal=Renewal.of(
            files, snapshot.layouts, request, is_sized=options.file_bytes is not None
        ),
        store=object_store(snapshot.location, renames=backend.format.renames),
        prices=budget.prices,
        tiers=tiers,
    )
    sizes = [size for size in (options.limits.bytes, budget.bytes) if size is not None]
    limits = replace(options.limits, bytes=min(sizes, default=None))
    return replace(
        judged,
        files=asked.files.num_rows,
        share=boxes.share_now if files.num_rows else 0.0,
        relearning=options.relearning,
        steps=steps(files, request, tuple(snapshot.partition), limits, boxes, terms),
    )
