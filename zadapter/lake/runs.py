"""Calls for the tables of one run, side by side, and what became of each table."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from zadapter.api.run_optimize import run_optimize
from zadapter.base.interrupts import POLL, Watch
from zadapter.base.java_errors import first_line
from zadapter.base.secrets import mask_secrets
from zadapter.errors import ZadapterError
from zadapter.lake import journal
from zadapter.lake.choice import Choice, Part
from zadapter.lake.discovery import Found
from zadapter.lake.journal import Line
from zadapter.lake.settings import Entry, Lake
from zadapter.lake.side_by_side import run_side_by_side
from zadapter.lake.tables import Judged
from zadapter.planning.options import Options
from zadapter.report.optimize_report import Report
from zadapter.table.snapshot import Snapshot

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run over the tables of a lake."""

    id: str
    began: datetime
    """When it began, in UTC."""
    lake: Lake
    spark: SparkSession
    concurrent: int
    """Number of tables side by side."""
    dry_run: bool
    started: float = field(default_factory=time.monotonic)
    spent: list[float] = field(default_factory=list[float])
    """Money that each rewrite has cost."""
    watch: Watch = field(default_factory=lambda: Watch(""))
    """The signals of the run: after one, nothing starts any more."""

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.started

    @property
    def over(self) -> str:
        """Why no further rewrite starts; empty: one may start."""
        budget = self.lake.budget
        if self.watch.is_ending:
            return "the run was interrupted"
        if budget.seconds is not None and self.elapsed >= budget.seconds:
            return "the run had no time left"
        if budget.money is not None and sum(self.spent) >= budget.money:
            return "the run had no money left"
        return ""

    def line(self, table: str, format_: str | None, verdict: str, **facts: Any) -> Line:
        """Return a line of the journal; facts that are not stated are unknown."""
        return Line(
            run=self.id, time=self.began, table=table, format=format_, verdict=verdict, **facts
        )


_MOVING = ("min_age", "queries", "tiers", "where")
"""Options by which a rewrite can become due though the table has not changed: files grow older,
logs longer, and conditions may depend on the time."""


def is_settled(known: Mapping[str, Line], table: Found, snapshot: Snapshot) -> bool:
    """Return whether a table needs no judgement: it and its entry are as the last run has left it.

    Args:
        known: The last line of each table.
        table: The table, with its own settings: other ones may leave its version as it was.
        snapshot: Its current version.
    """
    last, entry = known.get(table.table), table.entry
    digest = digest_of(entry, snapshot.id)
    if last is None or last.settings != digest or set(_MOVING) & entry.options.keys():
        return False
    return journal.unchanged(known, table.table, snapshot.version, format=table.format)


def digest_of(entry: Entry, id_: str | None) -> str:
    """Return a digest of an entry and of a table's id: another entry or table is judged again.

    A table that was dropped and created again may have the same version.
    """
    stated = json.dumps([entry.format, sorted(entry.options.items()), id_], default=repr)
    return sha256(stated.encode()).hexdigest()[:16]


def each_table(
    run: Run, tables: Sequence[Found], work: Callable[[Found], R]
) -> list[R | Exception]:
    """Return what *work* returns for each table, or its error; some tables run side by side.

    Raises:
        BaseException: A signal has arrived, and the calls under way have ended.
    """
    results = _side_by_side(run, tables, work)
    if run.watch.is_ending:
        raise run.watch.ending()
    return [each for each in results if each is not None]


def rewrite_tables(
    run: Run, found: Sequence[Found], choice: Choice
) -> Mapping[str, Report | Exception | None]:
    """Run the chosen rewrites in their order, until the time is over or a signal arrives.

    Returns:
        The results by table; None for a rewrite that did not start.
    """
    tables = {each.table: each for each in found}
    chosen = [] if run.dry_run else [tables[name] for name in choice.order]

    def work(table: Found) -> Report | None:
        return None if run.over else _rewrite(run, table, choice.taken[table.table])

    results = _side_by_side(run, chosen, work)
    return dict(zip([each.table for each in chosen], results, strict=True))


def _rewrite(run: Run, table: Found, part: Part) -> Report:
    options = {**table.entry.options, "max_bytes": part.bytes}
    budget = run.lake.budget
    if budget.seconds is not None:  # of a table's jobs, too, none starts after it
        left = max(budget.seconds - run.elapsed, POLL)
        options["max_seconds"] = min(options.get("max_seconds") or left, left)
    if budget.prices is not None:
        options["price"] = asdict(budget.prices)
    report = run_optimize(Options(table=table.table, **options), table.format, run.spark)
    run.spent.append(report.price or 0.0)
    return report


def _side_by_side(
    run: Run, tables: Sequence[Found], work: Callable[[Found], R | None]
) -> list[R | Exception | None]:
    return run_side_by_side(run.spark, tables, work, concurrent=run.concurrent, watch=run.watch)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a table in a run."""

    run: Run
    found: Found
    judged: Judged | Exception
    taken: Part | None
    """The rewrites that were chosen; None: none was due."""
    left: tuple[Part, str] | None
    """The rewrites that were left, and why."""
    weight: float | None
    """How much the table counted in the choice; None: nothing was due."""
    result: Report | Exception | None
    """Of the chosen rewrites; None: they did not start."""

    @classmethod
    def of(
        cls,
        run: Run,
        found: Found,
        judged: Judged | Exception,
        choice: Choice,
        result: Report | Exception | None,
    ) -> "Outcome":
        """Return what became of a table."""
        left = choice.left.get(found.table)
        return cls(
            run=run,
            found=found,
            judged=judged,
            taken=choice.taken.get(found.table),
            left=None if left is None else (left[0], left[1].value),
            weight=choice.weights.get(found.table),
            result=result,
        )

    def line(self, waited: int, known: Mapping[str, Line]) -> Line:
        """Return the line of the journal.

        Args:
            waited: Nights that a due rewrite of the table has waited before.
            known: The last line of each table.
        """
        judged = self.judged
        if isinstance(judged, Exception):
            return self._line(journal.FAILED, error=message_of(judged))
        facts: dict[str, Any] = {
            "version": judged.version,
            "files": judged.files,
            "share_before": judged.share,
            "share_after": judged.share,
        }
        last = known.get(self.found.table)
        if judged.files is None and last is not None:  # as the last run has left it
            shares = dict.fromkeys(("share_before", "share_after"), last.share_after)
            facts |= {"files": last.files, **shares}
        if judged.reason is not None:
            verdict = journal.DECLINED if self.found.entry.enabled else journal.LEFT_OUT
            return self._line(verdict, **facts, remark=judged.reason)
        if self.taken is None:
            return self._line(journal.NOTHING_TO_DO, **facts)
        return self._due(self.taken, facts, waited)

    def _line(self, verdict: str, **facts: Any) -> Line:
        found, judged = self.found, self.judged
        if isinstance(judged, Exception):
            digest = digest_of(found.entry, None)
        else:
            digest = digest_of(judged.stated, judged.id)
        facts |= {"settings": digest, "weight": self.weight}
        remarks = (facts.get("remark"), self._relearning)
        facts["remark"] = "; ".join(each for each in remarks if each) or None
        return self.run.line(found.table, found.format, verdict, **facts)

    @property
    def _relearning(self) -> str:
        """What a query log has done to the layout, as text; empty: it was not asked."""
        if isinstance(self.result, Report):
            found = self.result.plan.relearning
        else:
            found = None if isinstance(self.judged, Exception) else self.judged.relearning
        return "" if found is None else str(found)

    def _due(self, taken: Part, facts: dict[str, Any], waited: int) -> Line:
        """Return the line of a table with due rewrites."""
        result = self.result
        if isinstance(result, Report):
            return self._rewritten(result, waited)
        if isinstance(result, Exception):
            return self._line(journal.FAILED, **facts, error=message_of(result))
        part = taken if taken.steps or self.left is None else self.left[0]
        facts["share_predicted"] = max(0.0, (facts["share_before"] or 0.0) - part.share)
        if taken.steps and self.run.dry_run:
            money = None if self.run.lake.budget.prices is None else part.money
            facts |= {"bytes_rewritten": part.bytes, "money": money}
            return self._line(journal.DUE, **facts, remark=_within(part))
        why = self.run.over if taken.steps or self.left is None else self.left[1]
        facts |= {"waited": waited + 1, "remark": why}
        return self._line(journal.WAITS, **facts)

    def _rewritten(self, report: Report, waited: int) -> Line:
        """Return the line of a table whose rewrites have run."""
        plan = report.plan
        some_left = report.jobs_left or report.stale or plan.groups_left
        facts: dict[str, Any] = {
            "version": _settled_version(report),
            "files": plan.files_before - report.files_removed + report.files_added,
            "share_before": report.share_before,
            "share_after": report.share_after,
            "seconds": report.seconds.get("total", 0.0),
            "core_seconds": report.cost.core_seconds,
            "money": report.price,
        }
        if report.nothing_to_do:
            return self._idle(report, facts, waited)
        verdict = journal.IN_PART if self.left is not None or some_left else journal.REWRITTEN
        return self._line(
            verdict,
            **facts,
            bytes_rewritten=report.bytes_removed,
            share_predicted=plan.share_after,
            remark="; ".join(report.stale) or _by_row_group(report),
        )

    def _idle(self, report: Report, facts: Mapping[str, Any], waited: int) -> Line:
        """Return the line of a table whose rewrites were judged otherwise when they began."""
        if report.plan.groups_left:
            why = "others have changed the table, and its rewrites exceed what is left for them"
            return self._line(journal.WAITS, **facts, waited=waited + 1, remark=why)
        if report.plan.groups_declined:
            why = "a sample of the rows says that the rewrite brings nothing"
            return self._line(journal.DECLINED, **facts, remark=why)
        return self._line(journal.NOTHING_TO_DO, **facts)


_FEWER = "files become fewer and larger; filters skip row groups within them"
_WITHIN = "filters skip row groups within the files"


def _within(part: Part) -> str | None:
    """Return what a rewrite is to bring that makes filters open no fewer rows by file."""
    if part.share > 0:
        return None
    return _FEWER if part.fewer > 0 else _WITHIN


def _by_row_group(report: Report) -> str | None:
    """Return what a rewrite brings that makes filters open no fewer rows by file."""
    plan = report.plan
    before, after = plan.row_group_share_before, plan.row_group_share_after
    if report.share_after < report.share_before:
        return None
    if before is not None and after is not None:
        return f"by row group {before:.1%} to {after:.1%}"
    return _FEWER if report.files_removed > report.files_added else _WITHIN


def _settled_version(report: Report) -> int | None:
    """Return the version that a rewrite has left; None: others may have written meanwhile.

    What others have written is part of the version, but was not judged. Formats whose versions are
    no consecutive numbers do not tell, so that their tables are judged once more.
    """
    start, versions = report.plan.version, report.versions
    if not versions:
        return start
    known = start is not None and versions == tuple(range(start + 1, start + 1 + len(versions)))
    return versions[-1] if known else None


def message_of(error: Exception) -> str:
    """Return the message of an error as one text."""
    is_ours = isinstance(error, ZadapterError)
    return mask_secrets(str(error)) if is_ours else f"{type(error).__name__}: {first_line(error)}"
