"""Texts of queries: what reaches the table counts, what does not is counted by reason."""

import pyarrow as pa
import pytest

from tests.kit.leaves import is_
from zadapter.errors import UsageError
from zadapter.inspection.measure.table_access import opening
from zadapter.inspection.querylog.log_reader import read_log

NO_ORDER = "a function whose results bounds do not limit"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("country = 'de'", ["country = 'de'"]),
        ("(id = 1 OR id = 2) -- ids;", ["id = 1 OR id = 2"]),
        ("(country)=('de')", ["country = 'de'"]),
        ("at.x > 0.5D", ["at.x > 0.5"]),
        ("SELECT max(id) FROM events WHERE DAY >= '2024-01-05'", ["day >= 2024-01-05"]),
        ("FROM events SELECT id WHERE id = 3", ["id = 3"]),
        ("SELECT * FROM EVENTS e WHERE e.id = 3;", ["id = 3"]),
        ("SELECT * FROM prod.sales.events WHERE sales.events.id = 3 AND country = 'db.events'",
         ["country = 'db.events' AND id = 3"]),
        ("SELECT * FROM `sales` . `events` WHERE id = 3", ["id = 3"]),
        ("SELECT * FROM events VERSION AS OF 3 WHERE id = 3", ["id = 3"]),
        ("SELECT * FROM events TIMESTAMP AS OF '2024-01-01' AS e WHERE id = 3", ["id = 3"]),
        ("WITH a AS (SELECT id AS n, day FROM events) SELECT * FROM a WHERE n = 3", ["id = 3"]),
        ("WITH events AS (SELECT * FROM db.events WHERE id > 1) SELECT * FROM events", ["id > 1"]),
        ("SELECT (SELECT max(id) FROM events WHERE country = 'de')", ["country = 'de'"]),
        ("INSERT INTO copy SELECT * FROM events WHERE id = 3", ["id = 3"]),
        ("CREATE TABLE copy AS SELECT * FROM events WHERE id = 3", ["id = 3"]),
        ("DELETE FROM events WHERE day < '2020-01-01'", ["day < 2020-01-01"]),
        ("UPDATE events SET country = 'at' WHERE id = 3", ["id = 3"]),
        ("SELECT id FROM events GROUP BY id HAVING id > 7 AND count(*) > 1", ["id > 7"]),
    ],
)  # fmt: skip
def test_the_filter_of_a_query(filters, text, expected):
    """However the query names the table, and wherever its condition stands."""
    assert filters(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM events ORDER BY ts DESC LIMIT 10", ["ORDER BY ts DESC LIMIT 10"]),
        ("SELECT id, ts AS t FROM events ORDER BY t, id LIMIT 5", ["ORDER BY ts LIMIT 5"]),
        ("SELECT id FROM events WHERE country = 'de' ORDER BY ts DESC LIMIT 10 OFFSET 20",
         ["country = 'de' ORDER BY ts DESC LIMIT 30"]),
        ("SELECT * FROM events WHERE id IN (SELECT id FROM events ORDER BY day LIMIT 3)",
         ["ORDER BY day LIMIT 3"]),
        # how many rows they read is unknown, so they count by their other conditions
        ("SELECT * FROM events WHERE id = 1 AND country LIKE '%x' ORDER BY ts LIMIT 3",
         ["country IS NOT NULL AND endswith(events.country, 'x') AND id = 1"]),
        ("SELECT max(id) FROM events WHERE id = 1 GROUP BY day ORDER BY day LIMIT 3", ["id = 1"]),
        ("SELECT * FROM events WHERE id = 1 ORDER BY upper(country) LIMIT 3", ["id = 1"]),
        ("SELECT * FROM events WHERE id = 1 ORDER BY ts", ["id = 1"]),
        ("SELECT * FROM events WHERE id = 1 LIMIT 3", ["id = 1"]),
    ],
)  # fmt: skip
def test_the_first_rows_in_the_order_of_a_column(read, text, expected):
    """Readers skip files without a row among the first; where it counts, the order is shown."""
    found = read([text], dynamic=True)

    assert [each.sql for each in found.filters] == expected
    assert [each.top is not None for each in found.filters] == ["ORDER" in e for e in expected]


def test_an_order_is_no_filter_of_an_analysis(read):
    """An analysis reports files that the conditions open."""
    texts = ["SELECT * FROM events ORDER BY ts LIMIT 9", "SELECT id FROM events WHERE id = 1"]

    found = read(texts)

    assert found.unused == {"no filter on this table": 1}
    assert [each.sql for each in found.filters] == ["id = 1"]


def test_filters_are_predicates_on_the_tables_columns(read):
    """Names are those of the schema, and values have the column's type."""
    (found,) = read(["SELECT 1 FROM events WHERE ID = 5"]).filters

    assert found.predicate == is_("id", "=", 5, pa.int64())


def test_each_scan_of_a_join_has_its_filter(filters):
    """A condition on one side reaches the other by the key, too."""
    text = """SELECT * FROM events a JOIN events b ON a.id = b.id AND a.country <> b.country
    WHERE a.id > 10 AND b.day = '2024-01-05'"""

    assert sorted(filters(text)) == [
        *(
            "country IS NOT NULL AND day = 2024-01-05 AND id > 10",
            "country IS NOT NULL AND id > 10",
        ),
    ]


def test_other_tables_and_views_are_looked_up(spark, lake, view, filters):
    """A temporary view of the session may filter, rename, or read the table's own files."""
    view(spark.read.parquet(f"{lake}/users"), "users")
    recent = spark.read.format("delta").load(f"{lake}/events").where("day > '2024-01-01'")
    view(recent.selectExpr("id AS number"), "recent")

    assert filters("SELECT * FROM events e JOIN users u ON e.id = u.id WHERE u.id = 7") == [
        "id = 7"
    ]
    assert filters("SELECT * FROM recent WHERE number = 1") == ["day > 2024-01-01 AND id = 1"]
    assert filters(f"SELECT * FROM delta.`{lake}/events` WHERE id = 1") == ["id = 1"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELEC id FROM events", "a text that Spark cannot parse"),
        ("SELECT nr FROM events WHERE id = 1", "column that does not exist: nr"),
        ("gone = 1", "column that does not exist: gone"),
        ("gone", "column that does not exist: gone"),
        ("SELECT * FROM hr.people WHERE id = 1", "table not found: hr.people"),
        ("SELECT * FROM range(5) WHERE id = 1", "another table"),
        ("SELECT * FROM events JOIN range(5) USING (id)", "no filter on this table"),
        ("country LIKE '%x'",
         f"a filter without bounds: endswith(events.country, 'x'), {NO_ORDER}"),
        ("upper(country) = 'DE' OR id = 3",
         f"a filter without bounds: upper(events.country), {NO_ORDER}"),
        ("id = 1 AND id = 2", "a filter that no row can match"),
        ("DROP TABLE events", "a statement that reads no rows"),
        ("SET a.b = c", "a statement that reads no rows"),
        ("nothing_like_it(id) = 1", "function not found: nothing_like_it"),
        ("day = '2024-13-77'", "a query that Spark cannot plan: CAST_INVALID_INPUT"),
        ("SELECT * FROM events WHERE id = :id",
         "a query that Spark cannot plan: UNBOUND_SQL_PARAMETER"),
        (" -- nothing", "no text"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_counted(read, text, reason):
    """A log from production has all of it; none of it stops the advice."""
    found = read([text, "id = 1"])

    assert found.unused == {reason: 1}
    assert found.entries == 2
    assert [each.sql for each in found.filters] == ["id = 1"]


def test_nothing_is_executed(spark, view, lake):
    """Texts of a log would drop, write, fail, or skip files by their stats, if they ran."""
    view(spark.range(3), "kept")
    view(spark.read.format("delta").load(f"{lake}/events"), "copied")
    texts = [
        *("DROP VIEW kept", "SET zadapter.test = 1", "SELECT raise_error('ran') FROM kept"),
        f"INSERT OVERWRITE DIRECTORY '{lake}/out' USING parquet SELECT * FROM kept",
        *("SELECT * FROM copied WHERE id = 1", "SELECT count(*), max(id) FROM copied"),
    ]
    jobs = spark.sparkContext._jsc.sc().dagScheduler()  # noqa: SLF001 - no public door
    with opening("advise", f"{lake}/events", "delta", spark) as opened:
        rows = opened.rows
        before = jobs.numTotalJobs()
        found = read_log(texts, opened.snapshot, rows)
        after = jobs.numTotalJobs()

    assert after == before
    assert [each.sql for each in found.filters] == ["id = 1"]
    assert spark.table("kept").count() == 3
    assert spark.conf.get("zadapter.test", None) is None
    assert not (lake / "out").exists()


def test_the_users_session_stays_as_it_is(spark, view, read):
    """The view that stands for the table would shadow a table of that name."""
    view(spark.range(3), "events")

    read(["id = 1"])

    assert spark.table("events").columns == ["id"]


def test_equal_filters_are_one_with_all_weights(read):
    """By text, and by what the texts mean; the heaviest comes first."""
    found = read(
        [("id = 1", 2), ("id = 2", 9), (" id = 1", 3), ("SELECT 1 FROM events WHERE 1 = id", 5)]
    )

    assert [(f.sql, f.weight, f.entries) for f in found.filters] == [
        ("id = 1", 10, 3),
        ("id = 2", 9, 1),
    ]
    assert [at for at, w in enumerate(found.filters[0].weights) if w] == [0, 8, 12]


def test_filters_of_one_query_are_known_as_such(read):
    """So that none judges a layout that others of its query have asked for: limits, and scans."""
    last = "SELECT * FROM events ORDER BY ts DESC LIMIT {}"
    twice = """SELECT * FROM events a JOIN events b ON a.id = b.id AND a.country <> b.country
    WHERE a.id > 10 AND b.day = '2024-01-05'"""

    found = read([last.format(3), last.format(9), twice, "id = 8"], dynamic=True)

    of = {each.sql: each.query for each in found.filters}
    limits = {query for sql, query in of.items() if "LIMIT" in sql}
    scans = {query for sql, query in of.items() if "id > 10" in sql}
    assert len(limits) == len(scans) == 1
    assert (len(of), len({*of.values()})) == (5, 3)


def test_one_query_a_million_times(read):
    """It is planned once, and is in all parts of the log."""
    found = read(["id = 1"] * 1_000_000)

    (only,) = found.filters
    assert (only.entries, only.weights) == (1_000_000, (62_500.0,) * 16)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([], "empty log"),
        (["id = 1", 5], r"queries\[1\]"),
        ([("id = 1", 0)], "number above 0"),
        ([("id = 1", float("nan"))], "number above 0"),
        ([("id = 1", True)], "number above 0"),
        (["id = 1", ("id = 2", 1e307)], r"queries\[1\] is a text with the weight 1e\+307"),
        ([("id = 1", 10**400)], r"queries\[0\] is a text with the weight 1000.*up to 1e\+15"),
        (7, "must be a list of texts, a path or a DataFrame"),
        ("/no/such/log", "no such file or folder"),
    ],
)
def test_what_is_no_log_is_refused(read, queries, message):
    """The message names the entry, and what to pass instead."""
    with pytest.raises(UsageError, match=message):
        read(queries)
