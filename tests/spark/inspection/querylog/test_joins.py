"""Joins of a query: filtered tables whose keys the table is joined with."""

import pytest

from zadapter.inspection.querylog.joins import TOO_MANY

DATES = [(day, 2020 + day // 100, day % 100, f"n{day}") for day in range(300)]


@pytest.fixture
def dates(spark, tmp_path, view):
    """A table of 300 dates whose keys are in the order of time, as a view."""
    rows = spark.createDataFrame(DATES, "d_key bigint, d_year int, d_day int, d_name string")
    rows.write.parquet(str(tmp_path / "dates"))
    view(spark.read.parquet(str(tmp_path / "dates")), "dates")
    return tmp_path / "dates"


@pytest.fixture
def ranges(read):
    """Reads a query, and returns the ranges of keys of each scan of the table."""

    def ranges_(text):
        return [
            [
                ".".join(each.column) + f" {each.through}"
                + f" {each.low and each.low.as_py()}..{each.high and each.high.as_py()}"
                for each in found.ranges
            ]
            for found in read([text], dynamic=True).filters
        ]  # fmt: skip

    return ranges_


IN_2021 = "id dates.d_year 100..199"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM events, dates WHERE id = d_key AND d_year = 2021", [IN_2021]),
        ("SELECT * FROM dates JOIN events ON d_key = id WHERE d_year = 2021", [IN_2021]),
        ("SELECT * FROM events WHERE id IN (SELECT d_key FROM dates WHERE d_year = 2021)",
         [IN_2021]),
        ("SELECT * FROM events LEFT JOIN dates ON id = d_key WHERE d_year = 2021", [IN_2021]),
        (("WITH d AS (SELECT d_key AS k, d_year AS y FROM dates), e AS (SELECT id AS i FROM events)"
         " SELECT count(*) FROM e JOIN d ON i = k WHERE y = 2021"), [IN_2021]),
        ("SELECT * FROM events, dates WHERE id = d_key AND d_year = 2021 AND d_day < 10",
         ["id dates.d_day, d_year 100..109"]),
        ("SELECT * FROM events, dates WHERE id = d_key AND d_year = 2021 AND d_name LIKE '%7'",
         [IN_2021]),
        (("SELECT * FROM events, dates a, dates b WHERE id = a.d_key AND amount = b.d_day"
         " AND a.d_year = 2021 AND b.d_year = 2020"), [IN_2021]),
        ("SELECT * FROM events, dates WHERE id = d_key AND d_year = 1999",
         ["id dates.d_year None..None"]),
    ],
)  # fmt: skip
def test_the_keys_that_a_join_leaves(dates, ranges, text, expected):
    """However the join is written; equalities of expressions are none that readers pass on."""
    assert ranges(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM events, dates WHERE id = d_key AND country = 'de'",
        "SELECT * FROM events, dates WHERE id < d_key AND d_year = 2021 AND country = 'de'",
        (
            "SELECT * FROM events LEFT JOIN (SELECT * FROM dates WHERE d_year = 2021) ON id = d_key"
            " WHERE country = 'de'"
        ),
        (
            "SELECT * FROM events WHERE country = 'de' AND id NOT IN"
            " (SELECT d_key FROM dates WHERE d_year = 2021)"
        ),
        (
            "SELECT * FROM (SELECT id, count(*) FROM events WHERE country = 'de' GROUP BY id)"
            " JOIN dates ON id = d_key WHERE d_year = 2021"
        ),
        "SELECT * FROM events, dates WHERE id = d_key AND d_name LIKE '%7' AND country = 'de'",
        "SELECT * FROM events, dates WHERE id = d_day AND d_year = 2021 AND country = 'de'",
        "SELECT * FROM events, dates WHERE id <=> d_key AND d_year = 2021 AND country = 'de'",
        (
            "SELECT * FROM events FULL JOIN (SELECT * FROM dates WHERE d_year = 2021) ON id = d_key"
            " WHERE country = 'de'"
        ),
    ],
    ids=[
        "no filter",
        "no equality",
        "outer",
        "anti",
        "aggregated",
        "no range",
        "cast",
        "null-safe",
        "full",
    ],
)
def test_joins_that_leave_no_range(dates, ranges, text):
    """All rows of the table may be asked for, or readers do not know which."""
    assert ranges(text) == [[]]


def test_a_join_is_shown_and_counts_for_an_advice_alone(dates, read):
    """An analysis reports files that the conditions open."""
    text = "SELECT * FROM events, dates WHERE id = d_key AND d_year = 2021"

    [found] = read([text], dynamic=True).filters

    assert found.sql == "id IN (dates WHERE d_year = 2021)"
    assert read([text]).unused == {"no filter on this table": 1}


def test_a_table_is_read_once_for_all_filters_and_only_for_an_advice(spark, dates, read):
    """Also by several columns and keys; a log without joins is planned without a job."""
    texts = [
        "SELECT * FROM events, dates WHERE id = d_key AND d_year = 2021",
        "SELECT * FROM events, dates WHERE id = d_key AND d_name = 'n7'",
        "SELECT * FROM events, dates WHERE country = d_name AND d_day = 3",
    ]

    def counted(group, queries, **asked):
        spark.sparkContext.setJobGroup(group, group)
        found = read(queries, **asked)
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(group)
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        return found, len(jobs)

    one, jobs_of_one = counted("one", texts[:1], dynamic=True)
    found, jobs = counted("all", texts, dynamic=True)

    assert {str(each.ranges[0].low) for each in found.filters} == {"100", "7", "n103"}
    assert len(one.filters) == 1
    assert jobs == jobs_of_one > 0
    assert counted("own", ["SELECT * FROM events WHERE id = 1"], dynamic=True)[1] == 0
    assert counted("none", texts)[1] == 0


def test_a_table_of_more_bytes_than_the_limit_is_not_read(dates, ranges, monkeypatch):
    """Spark's estimate decides, without a read."""
    monkeypatch.setattr("zadapter.inspection.querylog.joins.MOST_BYTES", 10)
    text = "SELECT * FROM events, dates WHERE id = d_key AND d_year = 2021"

    assert ranges(text) == [["id dates.d_year None..None"]]


def test_a_table_of_too_many_values_is_not_counted(dates, ranges, monkeypatch):
    """Its join is known, and its keys are not."""
    monkeypatch.setattr("zadapter.inspection.querylog.joins.MOST_VALUES", 2)
    text = "SELECT * FROM events, dates WHERE id = d_key AND d_year = 2021"

    assert ranges(text) == [["id dates.d_year None..None"]]


def test_joins_count_by_themselves_if_all_their_values_are_too_many(dates, read, monkeypatch):
    """100 days and 3 years are 300 dates; 300 names are too many for the join by them alone."""
    monkeypatch.setattr("zadapter.inspection.querylog.joins.MOST_VALUES", 250)
    conditions = ("d_day = 7", "d_year = 2021", "d_year = 2020", "d_name = 'n7'")
    join = "SELECT * FROM events, dates WHERE id = d_key AND {}"

    found = read([join.format(each) for each in conditions], dynamic=True).filters

    known = {each.through: (each.low and each.low.as_py(), each.unread)
             for logged in found for each in logged.ranges if "2020" not in logged.sql}  # fmt: skip
    assert known == {
        "dates.d_day": (7, ""), "dates.d_year": (100, ""), "dates.d_name": (None, TOO_MANY)
    }  # fmt: skip


def test_a_table_whose_files_are_gone_is_not_read(dates, ranges):
    """The advice does without it."""
    text = "SELECT * FROM events, dates WHERE id = d_key AND d_year = 2021"
    for file in dates.iterdir():
        file.unlink()

    assert ranges(text) == [["id dates.d_year None..None"]]
