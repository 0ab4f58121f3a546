"""What people read of a run."""

from datetime import datetime, timezone

import pytest

from zadapter.lake.cleaning import Cleaned
from zadapter.lake.journal import Line
from zadapter.lake.report import LakeReport

TIME = datetime(2025, 10, 26, tzinfo=timezone.utc)


def line(table, verdict="rewritten", **facts):
    return Line(run="r", time=TIME, table=table, format="delta", verdict=verdict, **facts)


def report(*lines, dry_run=False, **facts):
    return LakeReport(lake="l", run="r", dry_run=dry_run, lines=lines, seconds=1.0, **facts)


@pytest.mark.parametrize(
    ("tables", "shown"),
    [
        (["/a/b/x", "/a/b/y"], ["x", "y"]),
        (["/a/b/x", "/a/bc/y"], ["b/x", "bc/y"]),
        (["/a/b", "/a/b/c"], ["b", "b/c"]),
        (["s3://l/a/x", "/l/a/y"], ["s3://l/a/x", "/l/a/y"]),
        (["/a/b/x", "sales.orders"], ["/a/b/x", "sales.orders"]),
        (["/a/b/x", "/a/b/y", "sales.orders"], ["x", "y", "sales.orders"]),
    ],
)
def test_tables_are_shown_without_the_folder_that_they_share(tables, shown):
    (listing, *_) = report(*map(line, tables)).listings()

    assert [row[0] for row in listing.rows] == shown


def test_what_failed_comes_first_and_reasons_have_a_list_of_their_own():
    lines = [
        line("a", bytes_rewritten=1 << 20, share_before=0.5, share_after=0.2),
        line("b", "waits", waited=1, remark="budget spent", share_before=0.5, share_predicted=0.3),
        line("c", "failed", error="no column 'x'"),
    ]
    found = report(
        *lines, cleaned={"a": (Cleaned(step="VACUUM", counts={"paths": 0}, seconds=1.0),)}
    )
    tables, remarks, cleaned = found.listings()

    assert [row[:2] + row[4:5] for row in tables.rows] == [
        ("c", "delta", None), ("a", "delta", "50.0% to 20.0%"), ("b", "delta", "50.0% to 30.0%")
    ]  # fmt: skip
    assert remarks.rows == (("c", "no column 'x'"), ("b", "1 night: budget spent"))
    assert cleaned.rows == ()
    assert found.failed == ("c",)


def test_a_clean_up_that_failed_is_a_failure_of_its_table():
    steps = (Cleaned(step="VACUUM", counts={}, seconds=1.0, error="retention is too short"),)

    found = report(line("a", "nothing to do"), cleaned={"a": steps})

    assert found.failed == ("a",)
    assert found.listings()[2].rows == (("a", "VACUUM", "nothing", "retention is too short"),)
