"""How often a log reads each table, as Spark parses texts and as engines report scans."""

import json
from functools import partial

import pytest

from tests.kit.variants import slow
from tests.spark.inspection.querylog.test_files import REPORT, event_log
from zadapter.inspection.measure.table_access import opening
from zadapter.inspection.querylog.plans import is_in_catalog
from zadapter.inspection.querylog.spelling import spelling
from zadapter.inspection.querylog.table_reads import count_reads


@pytest.fixture
def count(spark, lake):
    """Counts what a log reads of the tables ``events`` and ``users``."""
    tables = {}
    for name, table_format in (("events", "delta"), ("users", "parquet")):
        with opening("advise", f"{lake}/{name}", table_format, spark) as opened:
            tables[name] = spelling(opened.snapshot, partial(is_in_catalog, spark))

    def count_(queries):
        return tuple(count_reads(queries, tables, spark).values())

    return count_


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM events WHERE id = 1", (1, 0)),
        ("SELECT * FROM lake.events e JOIN users u ON e.id = u.id, events", (2, 1)),
        ("WITH users AS (SELECT * FROM events) SELECT * FROM users", (1, 0)),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM users WHERE id IN (TABLE events))", (1, 1)),
        ("SELECT * FROM events VERSION AS OF 3 -- FROM users", (1, 0)),
        ("INSERT INTO users SELECT id, country FROM events", (1, 0)),
        ("DELETE FROM events WHERE id = 1;", (1, 0)),
        ("SELECT * FROM read_users WHERE id > 3", (0, 1)),
        ("SELECT * FROM nowhere.else", (0, 0)),
        ("SELECT 'FROM events' FROM", (0, 0)),
        ("id > 3", (0, 0)),
        ("DESCRIBE users", (0, 0)),
    ],
)
def test_a_text_reads_the_tables_that_it_names(spark, lake, view, count, text, expected):
    """Itself, or by a view of the session."""
    view(spark.read.parquet(f"{lake}/users"), "read_users")

    assert count([(text, 1.0)]) == expected


def test_recent_queries_count(count):
    """The newer half of the weight, as in ``advise``."""
    old, new = "SELECT * FROM events", "SELECT * FROM users"

    assert count([old] * 32 + [new] * 32) == (0, 32)
    assert count([(old, 2.0), (new, 3.0)] * 32) == (32, 48)


@pytest.mark.slow
def test_scans_in_an_event_log(spark, lake, count, tmp_path):
    """By the locations of their files, whatever the queries call them."""
    with event_log(spark, tmp_path, compress="false"):
        for _ in range(3):
            spark.read.format("delta").load(f"{lake}/events").where("id = 7").collect()
        spark.read.parquet(f"{lake}/users").where("id = 1").collect()

    events, users = count(tmp_path)
    assert events + users in {2, 3, 4}  # the newer half, in whole parts of the log
    assert events >= users > 0


@pytest.mark.parametrize("form", ["json", *slow("csv")])
def test_other_forms_of_logs(count, tmp_path, form):
    """Scan reports of Iceberg, and tables with weights."""
    names = ["nothing", "users", "users", "nothing", "events"]
    if form == "json":
        reports = [REPORT | {"table-name": f"x.lake.{name}", "filter": True} for name in names]
        text = "\n".join(map(json.dumps, reports))
    else:
        rows = [f"TABLE {name},1,{number}" for number, name in enumerate(names)]
        text = "\n".join(["query,weight,time", *rows])
    (tmp_path / f"log.{form}").write_text(text)

    events, users = count(tmp_path / f"log.{form}")

    assert (events, users) == (1, 1)  # of three reads, the older one does not count
