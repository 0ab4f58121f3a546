"""``maintain``: one run over the tables of a lake."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.base.interrupts import holding_signals
from zadapter.base.locations import identify
from zadapter.base.outcome import stating
from zadapter.base.phases import phase
from zadapter.base.printable import abridge
from zadapter.base.translate_errors import translate_errors
from zadapter.errors import ReportError, UsageError
from zadapter.lake import journal
from zadapter.lake.choice import Candidate, choose
from zadapter.lake.cleaning import LEFT_OUT, Cleaned, clean
from zadapter.lake.discovery import Found, LeftOut, discover
from zadapter.lake.journal import Line
from zadapter.lake.page import RUNS
from zadapter.lake.report import CLEANED, LakeReport
from zadapter.lake.runs import (
    Outcome,
    Run,
    each_table,
    is_settled,
    message_of,
    rewrite_tables,
)
from zadapter.lake.settings import MAX_CONCURRENT, Keep, Lake, load, parse
from zadapter.lake.tables import Judged, judge, judge_settled
from zadapter.lake.weights import weigh_tables
from zadapter.report import lineage
from zadapter.spark.clone import scratch
from zadapter.spark.jobs import call
from zadapter.spark.opening import session_for
from zadapter.table.snapshot import Snapshot
from zadapter.table.staged_files import new_id

GivenLake = str | PathLike[str] | Mapping[str, Any] | Lake


def maintain(
    lake: GivenLake,
    *,
    dry_run: bool = False,
    max_concurrent_tables: int = MAX_CONCURRENT,
    spark: SparkSession | None = None,
) -> LakeReport:
    """Maintain the tables of a lake under one budget.

    The tables that match the patterns of the lake are judged from their logs alone. The rewrites
    that save filters most for their cost are run until the budget is spent; the others wait, and
    weigh more in the next run. Then tables are cleaned up where ``keep`` says so, and the journal
    gets a line for each table. A failure stays with its table.

    Example:
        ```python
        entry = {"match": "lake/*", "by": ["event_time", "user_id"]}
        report = zadapter.maintain({"tables": [entry]}, dry_run=True)
        print(report)
        ```

    Args:
        lake: The file of the lake in TOML, its content as a mapping, or a :class:`zadapter.Lake`.
        dry_run: Only report what would be rewritten and deleted; nothing is written.
        max_concurrent_tables: Number of tables that are opened, judged or rewritten side by side.
        spark: A Spark session. Defaults to the running session, or a new one.

    Raises:
        UsageError: The lake has mistakes, or its journal is no journal.
        Interrupted: A signal has ended the run. The rewrites that were under way have ended, and
            are in the journal.
        ReportError: The rewrites are done, but the journal cannot be written.
    """
    count: object = max_concurrent_tables
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise UsageError(
            f"max_concurrent_tables= must be a whole number above 0, not {max_concurrent_tables!r}"
        )
    asked, name = _read(lake)
    places = [each.match for each in asked.tables] + ([asked.journal] if asked.journal else [])
    session = session_for([], None, spark, new=places)
    run = Run(
        id=new_id(),
        began=datetime.now(timezone.utc),
        lake=asked,
        spark=session,
        concurrent=max_concurrent_tables,
        dry_run=dry_run,
    )
    # the end of the clone restores what threads have left
    with scratch(session), stating(), translate_errors(name):
        return _maintain(run, name)


def _read(lake: GivenLake) -> tuple[Lake, str]:
    """Return a lake, and its name in messages."""
    if isinstance(lake, Lake):
        return lake, "the lake"
    if isinstance(lake, Mapping):
        return parse(lake, "the lake"), "the lake"
    return load(Path(lake)), fspath(lake)


def _maintain(run: Run, name: str) -> LakeReport:
    lake, spark = run.lake, run.spark
    lines, others = _open_journal(run)
    with call("maintain", name, spark), phase("discover", name):
        tables = _discover(run, lines, others)
    if tables.found and lake.journal is not None and not run.dry_run:
        journal.prepare(spark, lake.journal, lake.journal_format)
    with holding_signals() as watch:
        run = replace(run, watch=watch)
        report, found = _rewrite(run, name, lines, tables)
        report = _clean(run, found, report)
        failure = _write_journal(run, report)
    done = [line.table for line in report.lines if line.bytes_rewritten and not run.dry_run]
    outcome = [f"tables rewritten: {abridge(done) or 'none'}"]
    if failure is not None:
        outcome.append(f"the journal has no line of this run: {message_of(failure)}")
    if watch.is_ending:
        raise watch.ending(". ".join(outcome))
    if failure is not None:
        error = ReportError(". ".join(outcome))
        error.committed = bool(done)
        raise error from failure
    return report


def _open_journal(run: Run) -> tuple[pa.Table, list[Hashable]]:
    """Return the lines of the journal before the run, and its location: it is left alone."""
    place, form = run.lake.journal, run.lake.journal_format
    if place is None:
        return journal.to_table(()), []
    location = journal.locate(run.spark, place, form)
    lines = journal.read(run.spark, place, form)
    return lines, [] if location is None else [identify(location)]


def _write_journal(run: Run, report: LakeReport) -> Exception | None:
    """Append the lines of a run to the journal, and return why they cannot be."""
    if run.lake.journal is None or run.dry_run or not report.has_tables:
        return None
    try:
        journal.append(run.spark, run.lake.journal, run.lake.journal_format, report.lines)
    except Exception as error:  # noqa: BLE001 - raised with what was done
        return error
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """What matches the patterns of a lake, and what is known of it before it is judged."""

    found: list[Found]
    left_out: list[LeftOut]
    last: Mapping[str, Line]
    """The last line of each table in the journal."""
    settled: Mapping[str, Judged]
    """Tables that need no judgement."""


def _discover(run: Run, lines: pa.Table, others: list[Hashable]) -> _Tables:
    """Find the tables, and which of them are as the last run has left them."""
    last, settled = journal.latest(lines), dict[str, Judged]()

    def look(table: Found, snapshot: Snapshot) -> None:
        judged = judge_settled(run.spark, table, snapshot, partial(is_settled, last))
        if judged is not None:
            settled[table.table] = judged

    found, left_out = discover(
        run.spark, run.lake.tables, others, concurrent=run.concurrent, look=look
    )
    return _Tables(found=found, left_out=left_out, last=last, settled=settled)


def _rewrite(
    run: Run, name: str, lines: pa.Table, tables: _Tables
) -> tuple[LakeReport, list[Found]]:
    """Judge the tables, run the rewrites that are chosen, and report what became of each table.

    Returns:
        The report, and the tables with their own settings, in the order of its lines.
    """
    lake, spark, known = run.lake, run.spark, tables.last
    waited, factors = journal.waited(lines), journal.correction(lines)

    def judge_one(table: Found) -> Judged:
        settled = tables.settled.get(table.table)
        return settled or judge(spark, table, lake.budget, partial(is_settled, known))

    results = each_table(run, tables.found, judge_one)
    judged = {each.found.table: each for each in results if isinstance(each, Judged)}
    found = [judged[each.table].found if each.table in judged else each for each in tables.found]
    with call("maintain", name, spark), phase("weigh", name):
        reads = weigh_tables(run, judged)
    candidates = [
        _candidate(each, reads.weights.get(name, 1.0), waited.get(name, 0), factors.get(name, 1.0))
        for name, each in judged.items()
        if each.steps
    ]
    choice = choose(candidates, lake.budget, int(spark.sparkContext.defaultParallelism))
    with lineage.sending(lineage.lake_job(run.id, name)):
        rewrites = rewrite_tables(run, found, choice)
    done = [
        Outcome.of(run, table, result, choice, rewrites.get(table.table)).line(
            waited.get(table.table, 0), known
        )
        for table, result in zip(found, results, strict=True)
    ]
    others = [*reads.lines, *(_left_out(run, each) for each in tables.left_out)]
    report = LakeReport(
        lake=name,
        run=run.id,
        dry_run=run.dry_run,
        lines=(*done, *others),
        history=None if lake.journal is None else journal.keep_last_runs(lines, RUNS),
        own={table: each.own for table, each in judged.items() if each.own},
        seconds=run.elapsed,
    )
    return report, found


def _candidate(judged: Judged, reads: float, waited: int, factor: float) -> Candidate:
    entry = judged.found.entry
    return Candidate(
        table=judged.found.table,
        steps=tuple(replace(step, saved=step.saved * factor) for step in judged.steps),
        weight=entry.weight * reads,
        waited=waited,
        max_wait=entry.max_wait,
    )


def _left_out(run: Run, left_out: LeftOut) -> Line:
    if left_out.failed:
        return run.line(left_out.table, None, journal.FAILED, error=left_out.reason)
    return run.line(left_out.table, None, journal.LEFT_OUT, remark=left_out.reason)


def _clean(run: Run, found: list[Found], report: LakeReport) -> LakeReport:
    """Clean up the tables that have neither failed nor are left out, until a signal arrives."""
    cleaned = dict[str, CLEANED]()
    for table, line in zip(found, report.lines, strict=False):  # what was not found has no table
        keep = table.entry.keep
        if run.watch.is_ending:
            break
        if keep is not None and line.verdict not in {journal.FAILED, journal.LEFT_OUT}:
            steps = _clean_table(run, table, keep, line.files)
            if steps:
                cleaned[table.table] = steps
    lines = tuple(_after_clean(line, cleaned.get(line.table, ())) for line in report.lines)
    return replace(report, lines=lines, cleaned=cleaned, seconds=run.elapsed)


def _clean_table(run: Run, table: Found, keep: Keep, files: int | None) -> CLEANED:
    name, form, spark = table.table, table.format, run.spark
    try:
        with call("maintain", name, spark), phase("clean", name):
            return clean(spark, name, form, keep, dry_run=run.dry_run, files=files)
    except Exception as error:  # noqa: BLE001 - a failure stays with its table
        return (Cleaned(step="open", counts={}, seconds=0.0, error=message_of(error)),)


def _after_clean(line: Line, steps: CLEANED) -> Line:
    """Return a line without its version if a clean-up may have committed another one."""
    if steps and steps[-1].error is not None:
        error = f"{journal.CLEAN_UP_FAILED}{steps[-1].step}: {steps[-1].error}"
        line = replace(line, error="; ".join(filter(None, (line.error, error))))
    if steps and steps[-1].step == LEFT_OUT:
        remark = f"{journal.CLEAN_UP_LEFT_OUT}{steps[-1].note}"
        line = replace(line, remark="; ".join(filter(None, (line.remark, remark))))
    return replace(line, version=None) if any(any(each.counts.values()) for each in steps) else line
