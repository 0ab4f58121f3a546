"""Rebase of a rewrite on rows that other writers have deleted meanwhile.

A rewrite moves rows and changes none. So the rows that left the files it replaces have to leave the
files it has written, too. Which of two equal rows leaves does not matter, because a table is a
multiset; where rows have ids, the id is part of the row. No map of positions is needed, and a
rewrite without a conflict costs nothing more.

Each rebase starts from what was planned, and follows all rows that left since then. So a second
conflict during the first rebase needs no other steps.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.interrupts import reraise
from zadapter.base.java_errors import first_line
from zadapter.base.quantities import show_count
from zadapter.base.translate_errors import is_foreign
from zadapter.errors import VerificationError
from zadapter.report.optimize_report import Rebased
from zadapter.rewrite.untouched_boxes import find_untouched
from zadapter.spark.checksum import RowTotals
from zadapter.table import file_stats
from zadapter.table.file_stats import DELETE_FILES, DELETED, DELETED_SHARE
from zadapter.table.snapshot import (
    Change,
    Exchange,
    Snapshot,
    Staged,
    Written,
    select_paths,
    without,
)

_DELETES = ("deletes", "rows", DELETED, DELETED_SHARE, DELETE_FILES)
"""Columns of the file table that row-level deletes change."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Conflict:
    """An exchange of which other writers have changed some removed files.

    ``changed`` and ``gone`` are disjoint parts of the exchange's removed files.
    """

    exchange: Exchange
    changed: pa.Table = field(repr=False)
    """Files with other row-level deletes than planned, as they were planned."""
    gone: pa.Table = field(repr=False)
    """Files that are no longer live, as they were planned."""
    live: pa.Table = field(repr=False)
    """The removed files that are live, with the row-level deletes of the head."""

    @classmethod
    def find(cls, exchange: Exchange, live: pa.Table) -> "Conflict":
        """Compare an exchange with the file table of the head."""
        removed = exchange.removed
        there = select_paths(live, set(removed["path"].to_pylist()))
        at = pc.index_in(removed["path"].combine_chunks(), there["path"].combine_chunks())
        planned, now = removed.filter(at.is_valid()), there.take(at.drop_null())
        planned_deletes, deletes = (files["deletes"].fill_null("") for files in (planned, now))
        changed = planned.filter(pc.not_equal(planned_deletes, deletes))
        for name in _DELETES:
            if name in planned.column_names:
                planned = file_stats.replace_column(planned, planned.schema.field(name), now[name])
        return cls(
            exchange=exchange, changed=changed, gone=removed.filter(at.is_null()), live=planned
        )

    @property
    def planned_rows(self) -> int:
        """Live rows of the replaced files when they were read.

        The footers of the new files say so, or, before these are written, the log.
        """
        return file_stats.total(self.exchange.added, "rows") or int(
            file_stats.row_counts(self.exchange.removed).sum()
        )

    @property
    def least_left(self) -> int:
        """Rows that have left at least, as far as the log states."""
        before = (
            file_stats.total(self.changed, "rows") if not self.changed["rows"].null_count else 0
        )
        now = select_paths(self.live, set(self.changed["path"].to_pylist()))
        known = before and not now["rows"].null_count
        deleted = before - file_stats.total(now, "rows") if known else 0
        return file_stats.total(self.gone, "rows") + max(deleted, 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Followed:
    """Rows that left the replaced files, and the same rows in the new files."""

    left: Sequence[RowTotals]
    """The rows that left, by conflict."""
    returned: Sequence[int]
    """Rows of the changed files that are live again, as after a restore, by conflict."""
    found: Sequence[RowTotals]
    """The same rows in the new files, by conflict."""
    leave_out: Callable[[Sequence[int]], "Remaining"] = field(repr=False)
    """Returns what remains of the new files of some conflicts, by number, without these rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Remaining:
    """New files without rows that left."""

    staged: tuple[Staged, ...]
    """All new files of the job."""
    added: Sequence[pa.Table] = field(repr=False)
    """The file table of each conflict's new files that hold rows."""
    changed: int
    """Number of new files that rows have left."""


class Follow(Protocol):
    """Follows the rows that left since the plan, up to a head."""

    def __call__(
        self, conflicts: Sequence[Conflict], head: Snapshot
    ) -> AbstractContextManager[Followed]:
        """Return the rows."""


def is_hopeless(
    removed: Sequence[pa.Table], planned: Snapshot, head: Snapshot, live: pa.Table, most: float
) -> bool:
    """Return whether no rewrite of some groups of files can be committed any more.

    Args:
        removed: The files of each group, as they were planned.
        planned: The version that they were planned on.
        head: The newest version.
        live: The file table of the newest version.
        most: Largest share of the rows of a group that may have left.
    """
    if head.definition != planned.definition:
        return True
    conflicts = (
        Conflict.find(Exchange(removed=files, added=files.slice(0, 0)), live) for files in removed
    )
    return all(
        each.least_left > most * each.planned_rows
        and each.changed.num_rows + each.gone.num_rows == each.exchange.removed.num_rows
        for each in conflicts
    )


@dataclass(kw_only=True)
class Rebaser:
    """Rebases the change of one job, each time from what was planned."""

    follow: Follow | None
    """Follows rows; None: the format cannot."""
    max_rebase: float
    """Largest share of an exchange's rows that may have left."""
    written: list[Written]
    """The files of the job; those that a rebase writes are added."""
    result: Rebased | None = None
    """What the last rebase has left out; None if there was none."""
    _planned: Change | None = None
    _dropped: list[str] = field(default_factory=list[str])
    _kept_back: dict[int, str] = field(default_factory=dict[int, str])
    """What the last rebase has kept back of an exchange, by the ``id`` of the exchange."""
    _reasons: dict[int, str] = field(default_factory=dict[int, str])
    """Why it could not be rebased."""

    @property
    def stale(self) -> list[str]:
        """One line for each exchange that was dropped, as a whole or in part."""
        return [*self._dropped, *self._kept_back.values()]

    def __call__(
        self, change: Change, head: Snapshot, live: pa.Table
    ) -> tuple[Change, tuple[Exchange, ...]]:
        """Base *change* on *head*; see :meth:`Change.rebase`, whose errors it raises."""
        start = time.monotonic() - (self.result.seconds if self.result is not None else 0.0)
        self.result = None
        planned = self._planned or change
        stale = planned.find_stale(head, live)
        staged, rebased = planned.staged, dict[int, Exchange]()
        self._kept_back = {id(each): _line(each.removed) for each in stale}
        self._reasons.clear()
        if stale and _is_alike(planned, head):
            conflicts = [Conflict.find(each, live) for each in stale]
            staged, rebased = self._rebase(conflicts, planned, head)
            if self.result is not None:
                self.result = replace(self.result, seconds=time.monotonic() - start)
            rebased |= self._divide(each for each in conflicts if id(each.exchange) not in rebased)
        dropped = tuple(each for each in stale if id(each) not in rebased)
        if len(dropped) == len(planned.exchanges):
            raise planned.stale_error(head, live, list(dict.fromkeys(self._reasons.values())))
        self._dropped += [self._kept_back.pop(id(each)) for each in dropped]
        kept = tuple(each for each in planned.exchanges if each not in dropped)
        self._planned = replace(planned, exchanges=kept)
        exchanges = tuple(rebased.get(id(each), each) for each in kept)
        return replace(planned, base=head, exchanges=exchanges, staged=staged), dropped

    def _rebase(
        self, conflicts: Sequence[Conflict], planned: Change, head: Snapshot
    ) -> tuple[tuple[Staged, ...], dict[int, Exchange]]:
        """Return the new files without the rows that left, and the exchanges of them.

        The key of an exchange is the ``id`` of the planned one.
        """
        few = [each for each in conflicts if self._are_few(each, each.least_left)]
        if not few or self.follow is None or not self.max_rebase:
            return planned.staged, {}
        try:
            with self.follow(few, head) as followed:
                sure = self._find_sure(few, followed)
                if not sure:
                    return planned.staged, {}
                remaining = followed.leave_out(sure)
        except Exception as error:
            reraise(error)
            if not is_foreign(error):
                raise
            for each in few:  # such as a replaced file that was deleted already
                self._keep_back(each, f"the rebase failed: {first_line(error)}")
            return planned.staged, {}
        self.written += remaining.staged
        exchanges = dict[int, Exchange]()
        for number, added in zip(sure, remaining.added, strict=True):
            conflict, left = few[number], followed.left[number].rows
            _check_rows(conflict, left, file_stats.total(added, "rows"))
            exchanges[id(conflict.exchange)] = Exchange(removed=conflict.live, added=added)
            del self._kept_back[id(conflict.exchange)]
        self.result = Rebased(
            rows=sum(followed.left[number].rows for number in sure),
            files=remaining.changed,
            seconds=0.0,
        )
        return remaining.staged, exchanges

    def _find_sure(self, conflicts: Sequence[Conflict], followed: Followed) -> list[int]:
        """Return the numbers of the conflicts whose rows were all found."""
        return [n for n, each in enumerate(conflicts) if self._is_sure(each, followed, n)]

    def _is_sure(self, conflict: Conflict, followed: Followed, number: int) -> bool:
        """Return whether all rows that left were found, and none has returned."""
        left, found = followed.left[number], followed.found[number]
        if not self._are_few(conflict, left.rows):
            return False
        returned = followed.returned[number]
        if returned:
            self._keep_back(conflict, f"live again: {show_count(returned, 'deleted rows')}")
        elif left != found:
            self._keep_back(
                conflict,
                f"rows that have left: {left.rows:,}, equal ones in the new files: {found.rows:,}",
            )
        return left == found and not returned

    def _are_few(self, conflict: Conflict, rows: int) -> bool:
        most = f"more than max_rebase={self.max_rebase:g} allows"
        if not conflict.live.num_rows:
            self._keep_back(conflict, "all of them were replaced")
        elif rows > self.max_rebase * conflict.planned_rows:
            counted = f"{rows:,} of {show_count(conflict.planned_rows, 'rows')}"
            self._keep_back(conflict, f"gone from these files: {counted}, {most}")
        else:
            return True
        return False

    def _divide(self, conflicts: Iterable[Conflict]) -> dict[int, Exchange]:
        """Return the parts of exchanges that others have not touched, by the id of the exchange."""
        found = dict[int, Exchange]()
        for conflict in conflicts:
            touched = {*conflict.changed["path"].to_pylist(), *conflict.gone["path"].to_pylist()}
            part = find_untouched(conflict.exchange, touched)
            if part is not None:
                found[id(conflict.exchange)] = part
                paths = set(part.removed["path"].to_pylist())
                left = without(conflict.exchange.removed, paths)
                self._kept_back[id(conflict.exchange)] = f"{_line(left)}, or beside such in a box"
        return found

    def _keep_back(self, conflict: Conflict, reason: str) -> None:
        self._reasons[id(conflict.exchange)] = reason
        self._kept_back[id(conflict.exchange)] = f"{_line(conflict.exchange.removed)}; {reason}"


def _check_rows(conflict: Conflict, left: int, remaining: int) -> None:
    """Refuse new files that would lose or double rows.

    Raises:
        VerificationError: They do not hold all rows but those that left.
    """
    if remaining + left != conflict.planned_rows:
        raise VerificationError(
            f"of {show_count(conflict.planned_rows, 'rows')} in "
            f"{show_count(conflict.exchange.added.num_rows, 'new files')}, "
            f"{left:,} have left, but {remaining:,} remain; nothing was committed. Please report "
            "this"
        )


def _line(files: pa.Table) -> str:
    number = show_count(files.num_rows, "files")
    return f"{number} changed by another writer, first: {files['path'][0]}"


def _is_alike(planned: Change, head: Snapshot) -> bool:
    """Return whether rows of the two versions can be compared."""
    base = planned.base
    same = head.schema.equals(base.schema) and head.partition == base.partition
    return planned.fits(head) and same
