"""Plans and reports tell their facts."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.kit.builders import file_table
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.planning.cost import Cost, ObjectStore, Prices
from zadapter.report.facts import align_facts
from zadapter.report.optimize_report import Report, Verification
from zadapter.report.plan import Plan

PLAN = Plan(
    table="sales.orders",
    format="delta",
    version=41,
    columns=("ts", "user.id"),
    curve="adaptive",
    target_file_size=128 << 20,
    groups=3,
    files_before=950,
    files_asked=950,
    files_rewritten=812,
    files_written=97,
    bytes_rewritten=13 << 30,
    rows=1_234_567,
    share_before=0.875,
    share_after=0.0625,
    row_group_share_before=0.5,
    row_group_share_after=0.0125,
    reasons={"new files": 800, "runs merged": 12},
)
REPORT = Report(
    table=PLAN.table,
    plan=PLAN,
    versions=(42, None),
    files_removed=800,
    files_added=96,
    bytes_removed=12 << 30,
    bytes_added=11 << 30,
    rows_added=1_200_001,
    rows_removed=1_200_001,
    share_after=0.07,
    stale=("12 files changed by another writer, first: a.parquet",),
    cost=Cost(
        bytes_read=12 << 30,
        bytes_written=11 << 30,
        bytes_shuffled=30 << 30,
        get_requests=0,
        put_requests=0,
        core_seconds=9000.0,
    ),
    seconds={"plan": 1.25, "write": 20.0, "total": 22.5},
    verification=Verification(by="counts"),
)


S3 = ObjectStore(renames=False)


def test_a_folder_that_is_no_table_yet_has_no_version():
    assert "sales.orders (parquet, no version yet)" in str(
        replace(REPORT.plan, format="parquet", version=None)
    )


def test_a_plan_of_a_report_is_not_run_again():
    """Only what ``plan`` returns has the layouts."""
    with pytest.raises(UsageError, match=r"call zadapter\.plan"):
        REPORT.plan.run()


def test_what_runs_a_plan_is_none_of_its_facts():
    """Texts, documents and comparisons are the same with it."""
    runs = replace(PLAN, _runner=lambda: REPORT)

    assert runs.run() is REPORT
    assert (runs, str(runs), repr(runs)) == (PLAN, str(PLAN), repr(PLAN))
    assert runs.to_dict(files=True) == PLAN.to_dict(files=True)


def test_a_plan_shows_its_facts():
    """What, how, how much, and what it will bring."""
    assert str(PLAN).splitlines() == [
        "table         sales.orders (delta, version 41)",
        "layout        adaptive by ts, user.id, files of 128 MB",
        "files         812 of 950 -> 97",
        "why           new files: 800, runs merged: 12",
        "bytes         13 GB",
        "rows          1,234,567",
        "data scanned  87.5% of the rows -> 6.2%, predicted",
        "by row group  50.0% -> 1.2% of the rows of the files to rewrite, predicted",
        "cost          13 GB read, 13 GB written, 26 GB shuffled, 0.4 core hours, estimated",
    ]


def test_a_learned_layout_is_named_so():
    learned = str(replace(PLAN, filters=40)).splitlines()[1]

    assert (
        learned == "layout        adaptive by ts, user.id, learned from 40 filters, files of 128 MB"
    )


def test_a_report_shows_its_facts():
    """What was done, rather than what was planned."""
    assert str(REPORT).splitlines() == [
        "table          sales.orders (delta, version 41)",
        "layout         adaptive by ts, user.id, files of 128 MB",
        "files          800 of 950 -> 96",
        "why            new files: 800, runs merged: 12",
        "bytes          12 GB -> 11 GB",
        "rows           1,200,001",
        "data scanned   87.5% of the rows -> 7.0%",
        "by row group   50.0% -> 1.2% of the rows of the files to rewrite, predicted",
        "cost           12 GB read, 11 GB written, 30 GB shuffled, 2.5 core hours",
        "verified by    counts",
        "seconds        plan 1.2, write 20.0, total 22.5",
        "committed      version 42, unknown",
        "not rewritten  12 files changed by another writer, first: a.parquet",
    ]


def test_what_is_left_for_later_is_said():
    """Beyond the limits of the call, or its time; where nothing is done, what a new fit brings."""
    limited = replace(
        PLAN, groups_left=3, bytes_left=40 << 20, bytes_anew=20 << 30, saved_anew=0.12
    )
    done = replace(limited, groups=0, groups_left=0)

    assert str(limited).splitlines()[-1] == "left for later  3 file groups of 40 MB"
    assert str(done).splitlines()[1:] == [
        "nothing to do  already clustered",
        "a new fit      filters would read 12% less, for 20 GB rewritten; force=True (--force)",
    ]
    assert "left alone    5 files, clustered by another implementation; force=True" in str(
        replace(PLAN, files_owned=5)
    )
    assert "not started    2 jobs, in the time of this call" in str(replace(REPORT, jobs_left=2))
    assert "a new fit" not in str(replace(done, saved_anew=0.04))


def test_a_report_says_how_rows_were_compared():
    """By a checksum, at what price, and why it was not left out."""
    found = Verification(by="checksum", read_twice=True, untested="Spark 9.0")

    assert (
        "verified by    checksum, with a second read of the rows; plain Spark operations, "
        "untested with Spark 9"
    ) in str(replace(REPORT, verification=found))


def test_what_is_not_known_is_not_claimed():
    """Rows that no log counts, and commits that were not made."""
    assert "rows          unknown" in str(replace(PLAN, rows=None))
    assert "committed     nothing" in str(replace(REPORT, versions=(), stale=()))
    assert "not rewritten" not in str(replace(REPORT, stale=()))


@pytest.mark.parametrize(
    ("files", "asked", "why"),
    [
        (950, 950, "already clustered"),
        (950, 0, "no file matches the condition"),
        (0, 0, "the table has no files"),
    ],
)
def test_nothing_to_do_says_why(files, asked, why):
    """In the plan and in the report alike."""
    plan = replace(PLAN, groups=0, files_rewritten=0, files_before=files, files_asked=asked)
    report = replace(REPORT, plan=plan, versions=())

    assert plan.nothing_to_do
    assert not PLAN.nothing_to_do
    assert str(plan).splitlines()[1:] == [f"nothing to do  {why}"]
    assert str(report) == str(plan)


def test_a_rewrite_that_brings_nothing_says_what_it_would_bring():
    """And how to have it all the same; a part of the table may be worth it."""
    plan = replace(PLAN, groups=0, groups_declined=3, files_rewritten=0)

    assert plan.nothing_to_do
    assert plan.nothing_to_gain
    assert not replace(PLAN, groups_declined=1).nothing_to_gain
    assert str(plan).endswith(
        "nothing to gain  range filters scan 87.5% of the rows -> 6.2%, by row group 50.0% -> "
        "1.2%, predicted; force=True (--force) rewrites"
    )
    assert "nothing to gain  in 2 file groups, which are kept" in str(
        replace(PLAN, groups_declined=2)
    )


def test_a_report_knows_what_was_before():
    """From its plan."""
    assert REPORT.share_before == PLAN.share_before


def test_facts_stand_below_one_another():
    """Values begin in one column."""
    assert align_facts({"a": "1", "long": "2"}) == "a     1\nlong  2"


NO_KEYS = "too few small files; the table is not clustered, pass by= (--by) to cluster it"


def files(rows=10, *, bounds=True):
    """Return two files with bounds of ts, or without."""
    low = pa.array([1, 5] if bounds else [None, None], pa.int64())
    return file_table(["a", "b"], rows=rows, stats={"ts": (low, low, pa.array([0, 0]))})


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "already clustered"),
        ({"files_asked": 0}, "no file matches the condition"),
        ({"files_asked": 0, "files_young": 7}, "all files are too young"),
        ({"files_before": 0, "files_asked": 0}, "the table has no files"),
        ({"files": files(rows=0), "groups_declined": 1}, "the table has no rows"),
        ({"files": files(rows=0)}, "the table has no rows"),
        ({"columns": ()}, NO_KEYS),
    ],
)
def test_a_plan_without_work_says_why(facts, reason):
    """Files that are too young are no files that a condition excludes; a table may be empty."""
    found = replace(PLAN, groups=0, rows=0, **facts).facts()

    assert found["nothing to do"] == reason
    assert ("too young" in found) == ("files_young" in facts)


def test_a_plan_can_be_drawn():
    """By its key columns, or, without keys, by the first columns that have bounds."""
    for columns in (("ts",), ()):
        figure = replace(PLAN, columns=columns, files=files()).plot()
        assert figure.axes[0].get_xlabel().startswith("ts")

    for unknown in (None, files(bounds=False)):
        with pytest.raises(UsageError, match=r"nothing to draw|no file has bounds"):
            replace(PLAN, columns=(), files=unknown).plot()


def test_a_list_of_columns_in_one_text_is_noticed():
    """As on the command line; the hint is the list that Python takes."""
    said = str(UnknownColumnError("`device, ts`", ["ts", "Device", "page"]))

    assert said.endswith("several columns are a list: ['device', 'ts']")
    assert "available" in str(UnknownColumnError("`device,nosuch`", ["ts", "Device"]))


def test_prices_are_added_up():
    """In the plan by what is estimated, in the report by what was measured, in JSON, too."""
    plan = replace(PLAN, prices=Prices(core_hour=0.5, put=0.01), object_store=S3)
    report = replace(REPORT, plan=plan, cost=replace(REPORT.cost, put_requests=3000))
    puts, hours = plan.cost.put_requests, plan.cost.core_seconds / 3600

    assert plan.price == pytest.approx(0.5 * hours + 0.01 * puts / 1000)
    assert f"price         {plan.price:.3g}, estimated" in str(plan)
    assert report.price == pytest.approx(0.5 * 2.5 + 0.03)
    assert "price          1.28" in str(report).splitlines()
    document = report.to_dict()
    assert document["price"] == report.price
    assert document["cost"]["put_requests"] == 3000
    assert document["plan"] == plan.to_dict()
    assert document["plan"]["price"] == plan.price
    assert document["plan"]["cost"]["core_seconds"] == plan.cost.core_seconds
    assert (PLAN.price, REPORT.price, PLAN.to_dict()["price"]) == (None, None, None)


def test_files_that_are_only_joined_are_not_shuffled():
    assert replace(PLAN, columns=()).cost.bytes_shuffled == 0


def test_a_table_without_work_costs_nothing():
    idle = replace(PLAN, groups=0, jobs=0, files_rewritten=0, files_written=0, bytes_rewritten=0)

    assert replace(idle, object_store=S3, prices=Prices(put=1, get=1, core_hour=1)).price == 0


def test_a_report_names_earlier_runs_that_did_not_end():
    """Also if there was nothing left to do."""
    line = "run 1 ended after 2 of 5 jobs"
    found = replace(REPORT, earlier_runs=(line,))
    done = replace(found, plan=replace(REPORT.plan, groups=0))

    assert f"earlier runs   {line}" in str(found)
    assert f"earlier runs   {line}" in str(done)
    assert line in found.to_dict()["earlier_runs"]


def test_a_report_says_that_the_rows_take_more_bytes():
    """Small row groups of a wide table compress less, which nobody should find out alone."""
    grown = replace(REPORT, bytes_added=REPORT.bytes_removed * 2)
    for text in (str(grown), grown.summary().outcome):
        assert "the rows take 2.0 x the bytes" in text
        assert "row_groups=" in text
    assert "x the bytes" not in str(REPORT)
    assert "x the bytes" not in REPORT.summary().outcome
    compacted = replace(grown, plan=replace(PLAN, columns=()))
    assert "x the bytes" not in str(compacted)
