"""Tables that match the patterns of a lake."""

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from pyspark.sql import SparkSession

from zadapter.backend import plugins
from zadapter.base.interrupts import Watch
from zadapter.base.java_errors import first_line
from zadapter.base.locations import identify, remove_new_warehouse
from zadapter.base.translate_errors import translate_errors
from zadapter.errors import (
    MissingBackendError,
    SessionError,
    UnknownTableError,
    UnsupportedError,
    UsageError,
    ZadapterError,
)
from zadapter.lake.listing import (
    Candidate,
    Pattern,
    explain,
    find_excluded,
    find_logs,
    list_matches,
    read,
)
from zadapter.lake.settings import MAX_CONCURRENT, Entry
from zadapter.lake.side_by_side import run_side_by_side
from zadapter.spark.clone import scratch
from zadapter.spark.jvm.spark_classes import activate
from zadapter.spark.jvm.spark_names import JVM_ERRORS
from zadapter.spark.opening import open_in
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A table of a lake."""

    table: str
    """Path in the scheme of the pattern, or identifier with its catalog."""
    format: str
    entry: Entry
    """The entry that it matches first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What matches a pattern but is not maintained."""

    table: str
    reason: str
    """Why, and what to do, as a sentence without a full stop."""
    failed: bool = False
    """Whether something is out of order, so that tables may be missing."""


Look = Callable[[Found, Snapshot], None]
"""Called with each table that is opened, and its current version, in one of several threads."""


def discover(
    spark: SparkSession,
    entries: Sequence[Entry],
    others: Collection[Hashable] = (),
    *,
    concurrent: int = MAX_CONCURRENT,
    look: Look | None = None,
) -> tuple[list[Found], list[LeftOut]]:
    """Find the tables that match the patterns of a lake, in the order of the entries.

    A pattern with ``/``, a backslash or ``:`` outside of backticks is one of paths, as Hadoop reads
    it: ``*`` stands for characters of one folder's name. Tables are folders. Folders inside of a
    table are none: what a wildcard stands for is never a partition (``day=1``) or a hidden folder,
    and nothing below a folder with a table's log or metadata is a table.

    Another pattern is one of names. Its first part is a catalog if the session has one of that
    name; otherwise the names are those of the current catalog, and a pattern of one part matches in
    the current namespace. A wildcard stands for characters of one part: ``iceberg.*.*`` matches the
    tables of all namespaces of one level. Tables are found under their whole names.

    - A table that several entries match belongs to the first, even if it is left out there. A table
      that is found is not found again under another spelling, such as its path. What an entry
      excludes, later ones may match. What lies in an excluded folder is excluded, too.
    - An entry with a format leaves tables of other formats to later entries without a word, unless
      its pattern has no wildcards. It takes folders of Parquet files without a log, which entries
      without a format leave out.

    Args:
        spark: The session, whose catalogs and file systems are listed.
        entries: The entries of the lake.
        others: Locations of tables that belong to no entry, such as the lake's journal.
        concurrent: Number of tables that are opened side by side.
        look: What else is to be done with a table while it is open.

    Returns:
        The tables, and what is left out: views, other tables, what cannot be listed or opened, and
        patterns that match nothing.

    Raises:
        UsageError: A pattern cannot be read, or one of ``exclude`` can match no table of its entry.
        MissingBackendError: No backend of an entry's format is installed.
    """
    work = [_read(spark, entry) for entry in entries]
    found: list[Found] = []
    left_out: list[LeftOut] = []
    known: _Known = dict.fromkeys(others)
    with ExitStack() as left:
        clone = left.enter_context(scratch(spark))
        left.enter_context(remove_new_warehouse(clone))
        opener = left.enter_context(_opening(spark, concurrent, look))
        for each in work:
            if isinstance(each, LeftOut):
                left_out.append(each)
            else:
                tables, others = _search(each, opener, clone, known)
                found += tables
                left_out += others
    return found, left_out


_Known = dict[Hashable, Found | None]
"""The tables by their places; None: what is left out, or belongs to no entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """An entry whose patterns are read."""

    entry: Entry
    match: Pattern
    exclude: tuple[Pattern, ...]


def _read(spark: SparkSession, entry: Entry) -> _Task | LeftOut:
    """Read the patterns of an entry.

    Raises:
        UsageError: A pattern cannot be read, or one of ``exclude`` can match no table of the entry.
        MissingBackendError: No backend of the format is installed.
    """
    if entry.format is not None:
        plugins.check(entry.format)
    try:
        match, *exclude = [read(spark, text) for text in (entry.match, *entry.exclude)]
    except JVM_ERRORS as error:  # the current catalog cannot be loaded
        return LeftOut(table=entry.match, reason=explain(error), failed=True)
    for pattern in exclude:
        if (pattern.catalog is None) != (match.catalog is None):
            kinds = ("paths", "names") if match.catalog is None else ("names", "paths")
            raise UsageError(
                f"exclude has {pattern.text!r}, a pattern of {kinds[1]}, and {match.text!r} is one "
                f"of {kinds[0]}, so it excludes no table; pass a pattern of {kinds[0]}"
            )
        if match.catalog is not None and not pattern.may_meet(match):
            raise UsageError(
                f"exclude has {pattern.text!r}, which matches no name that {match.text!r} matches; "
                "pass a pattern of the same parts, such as 'sales.tmp_*' for 'sales.*'"
            )
    return _Task(entry=entry, match=match, exclude=tuple(exclude))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opener:
    """Opens tables, several side by side."""

    session: SparkSession
    clones: "SimpleQueue[SparkSession]"
    """One for each table that is open, since formats change settings of their session."""
    concurrent: int
    look: Look | None

    def open(
        self, task: _Task, candidates: Sequence[Candidate]
    ) -> list["_Opened | LeftOut | Exception | None"]:
        """Open tables as ``optimize`` does; None: one is none of the entry's format."""

        def work(candidate: Candidate) -> _Opened | LeftOut | None:
            return self._open(task, candidate)

        return run_side_by_side(
            self.session, candidates, work, concurrent=self.concurrent, watch=Watch("")
        )

    def _open(self, task: _Task, candidate: Candidate) -> "_Opened | LeftOut | None":
        clone = self.clones.get()
        try:
            with activate(clone):
                return _open(candidate, task, self.session, clone, self.look)
        finally:
            self.clones.put(clone)


@contextmanager
def _opening(spark: SparkSession, concurrent: int, look: Look | None) -> Iterator[_Opener]:
    clones: SimpleQueue[SparkSession] = SimpleQueue()
    with ExitStack() as left:
        for _ in range(concurrent):
            clones.put(left.enter_context(scratch(spark)))
        yield _Opener(session=spark, clones=clones, concurrent=concurrent, look=look)


def _search(
    task: _Task, opener: _Opener, clone: SparkSession, known: _Known
) -> tuple[list[Found], list[LeftOut]]:
    """Return the tables of an entry that no earlier one has, and add them to those known."""
    entry, found, left_out = task.entry, list[Found](), list[LeftOut]()
    try:
        is_excluded = find_excluded(clone, task.exclude)
    except JVM_ERRORS as error:
        return [], [LeftOut(table=", ".join(entry.exclude), reason=explain(error), failed=True)]
    is_matched, new = False, list[Candidate]()
    for candidate in list_matches(clone, task.match):
        if candidate.place in known or is_excluded(candidate):
            is_matched = True
            left_out += _find_other_log(clone, candidate, entry, known.get(candidate.place))
        else:
            new.append(candidate)
    for candidate, outcome in zip(new, opener.open(task, new), strict=True):
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is None:
            continue
        is_matched = True
        own, other = _own(outcome, candidate, entry, known)
        found += own
        left_out += other
    if not is_matched:
        tables = f"{entry.format} table" if entry.format else "table"
        reason = f"no {tables} matches; {_advise(task.match)}"
        left_out.append(LeftOut(table=entry.match, reason=reason, failed=True))
    return found, left_out


def _advise(unmatched: Pattern) -> str:
    """Return what to look at if a pattern matches nothing."""
    if unmatched.catalog is not None:
        return f"list the names by SHOW TABLES, in the catalog {unmatched.catalog}"
    if unmatched.text.startswith("/") or ":" in unmatched.text:
        return "list the folders that the path names"
    return f"relative paths begin in the folder of the call, {Path.cwd()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """What opening a table tells."""

    format: str
    place: Hashable
    """Its location."""


def _open(
    candidate: Candidate,
    task: _Task,
    session: SparkSession,
    clone: SparkSession,
    look: Look | None,
) -> _Opened | LeftOut | None:
    """Open a table, and look at it."""
    table, stated = candidate.table, task.entry.format
    if candidate.refused is not None:
        return LeftOut(table=table, reason=candidate.refused, failed=candidate.failed)
    try:
        with translate_errors(table), open_in(clone, table, stated, session) as opened:
            snapshot, form = opened.snapshot(), opened.factory.format.name
            if look is not None:
                look(Found(table=table, format=form, entry=task.entry), snapshot)
            return _Opened(format=form, place=identify(snapshot.location))
    except Exception as error:  # noqa: BLE001 - a failure stays with its table
        if stated is not None and task.match.has_wildcards and _is_other(error, stated):
            return None
        failed = not isinstance(error, UsageError | UnsupportedError | SessionError)
        return LeftOut(table=table, reason=_reason(error), failed=failed)


def _own(
    outcome: _Opened | LeftOut, candidate: Candidate, entry: Entry, known: _Known
) -> tuple[list[Found], list[LeftOut]]:
    """Return a table, or why it is left out, and add its places; none: an earlier entry has it."""
    if isinstance(outcome, LeftOut):
        known[candidate.place] = None
        return [], [outcome]
    if outcome.place in known:
        owner = known[candidate.place] = known[outcome.place]
        if owner is None or owner.format == outcome.format:
            return [], []
        return [], [LeftOut(table=candidate.table, reason=_shares(owner, outcome.format))]
    found = Found(table=candidate.table, format=outcome.format, entry=entry)
    known[outcome.place] = known[candidate.place] = found
    return [found], []


def _find_other_log(
    clone: SparkSession, candidate: Candidate, entry: Entry, owner: Found | None
) -> list[LeftOut]:
    """Return what is left out of a folder whose table an earlier entry has: one of other format."""
    if candidate.location is None or owner is None:
        return []
    try:
        others = [each for each in find_logs(clone, candidate.location) if each != owner.format]
    except JVM_ERRORS as error:
        return [LeftOut(table=candidate.table, reason=explain(error), failed=True)]
    return [
        LeftOut(table=candidate.table, reason=_shares(owner, other))
        for other in others
        if entry.format in {None, other}
    ]


def _shares(owner: Found, other: str) -> str:
    """Return why one of two tables in one folder is left out."""
    return (
        f"this folder of a table of {other} is also that of {owner.table}, a table of "
        f"{owner.format} which an earlier entry matches; maintain one of them, and match the other "
        "in exclude"
    )


def _is_other(error: Exception, table_format: str) -> bool:
    """Return whether a backend has found a table of another format, or none."""
    if isinstance(error, UnsupportedError):
        return error.table_format not in {None, table_format}
    if isinstance(error, UnknownTableError):
        return not error.exists
    return isinstance(error, UsageError) and not isinstance(error, MissingBackendError)


def _reason(error: Exception) -> str:
    if not isinstance(error, ZadapterError):
        return f"{type(error).__name__}: {first_line(error)}"
    if isinstance(error, UnknownTableError) and error.unregistered is not None:
        return (
            f"its files have no log; state format = {error.unregistered!r} in an entry to create a "
            "table from them"
        )
    return " ".join(str(error).split())
