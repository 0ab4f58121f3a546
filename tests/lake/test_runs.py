"""What became of a table in a run, as a line of the journal."""

from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from zadapter.base.interrupts import Watch
from zadapter.inspection.querylog.spelling import Spelling
from zadapter.lake import journal
from zadapter.lake.choice import Choice, Part, Step
from zadapter.lake.discovery import Found
from zadapter.lake.page import render
from zadapter.lake.report import LakeReport
from zadapter.lake.runs import Outcome, Run
from zadapter.lake.settings import Entry, Lake
from zadapter.lake.side_by_side import run_side_by_side
from zadapter.lake.tables import Judged
from zadapter.planning.relearning import Relearning

ENTRY = Entry(match="t")
FOUND = Found(table="t", format="delta", entry=ENTRY)
RUN = Run(
    id="r",
    began=datetime(2026, 11, 29, tzinfo=timezone.utc),
    lake=Lake(tables=(ENTRY,)),
    spark=None,
    concurrent=1,
    dry_run=False,
)
KEPT = Relearning(regret=1.0, bytes=1 << 30)
NOTHING = Choice(taken={}, order=(), left={}, weights={})


def line_of(judged):
    """The line of a table without a due rewrite."""
    return Outcome.of(RUN, FOUND, judged, NOTHING, None).line(0, {})


def judged(**facts):
    """A table that was judged."""
    spelling = Spelling(("t",), "t", registered=False, elsewhere=lambda _: False)
    return Judged(
        found=FOUND, stated=ENTRY, spelling=spelling, id="i", version=3, share=0.1, **facts
    )


@pytest.mark.parametrize(
    ("facts", "verdict", "remark"),
    [
        ({"files": 7, "relearning": KEPT}, journal.NOTHING_TO_DO, str(KEPT)),
        ({"files": 7, "reason": "no key columns"}, journal.DECLINED, "no key columns"),
        ({"files": 7}, journal.NOTHING_TO_DO, None),
    ],
)
def test_a_remark_on_a_healthy_table_is_no_error(facts, verdict, remark):
    """So an alert on errors in the journal, the report, the page and the metrics is silent."""
    line = line_of(judged(**facts))
    report = LakeReport(lake="l", run="r", dry_run=False, lines=(line,), seconds=1.0)

    assert (line.verdict, line.error, line.remark) == (verdict, None, remark)
    assert report.failed == ()
    assert report.listings()[1].rows == ((("t", remark),) if remark else ())
    assert "failed: 1" not in render("l", [line], None)
    assert (remark or "") in render("l", [line], None)
    assert 'zadapter_table_failed{lake="l",table="t",format="delta"} 0' in report.to_prometheus()


@pytest.mark.parametrize(
    ("fewer", "share", "remark"),
    [
        (3, 0.0, "files become fewer and larger; filters skip row groups within them"),
        (0, 0.0, "filters skip row groups within the files"),
        (3, 0.1, None),
    ],
)
def test_a_dry_run_says_what_a_rewrite_brings_where_it_is_not_seen_by_file(fewer, share, remark):
    """One file becomes neither fewer nor larger."""
    part = Part.of([Step(bytes=1, saved=1.0, seconds=1.0, money=0.0, share=share, fewer=fewer)])
    choice = Choice(taken={"t": part}, order=("t",), left={}, weights={})

    line = Outcome.of(replace(RUN, dry_run=True), FOUND, judged(files=4), choice, None).line(0, {})

    assert (line.verdict, line.remark) == (journal.DUE, remark)


def test_an_error_is_no_remark():
    """And its table has failed everywhere."""
    line = line_of(ValueError("no column 'x'"))
    report = LakeReport(lake="l", run="r", dry_run=False, lines=(line,), seconds=1.0)

    assert (line.verdict, line.error, line.remark) == (
        journal.FAILED, "ValueError: no column 'x'", None
    )  # fmt: skip
    assert report.failed == ("t",)
    assert report.listings()[1].rows == (("t", "ValueError: no column 'x'"),)
    assert "failed: 1" in render("l", [line], None)


def test_tables_that_cannot_run_side_by_side_say_so(caplog):
    """An old way of PySpark shares one thread of Java; the run is as good, but slower."""
    session = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=object()))
    tables = [FOUND, FOUND]

    done = run_side_by_side(session, tables, lambda _: 1, concurrent=2, watch=Watch(""))
    [said] = caplog.messages
    run_side_by_side(session, tables, lambda _: 1, concurrent=1, watch=Watch(""))

    assert done == [1, 1]
    assert "unset PYSPARK_PIN_THREAD" in said
    assert caplog.messages == [said]
