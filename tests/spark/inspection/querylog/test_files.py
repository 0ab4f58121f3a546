"""Logs in files and tables: event logs, scan reports, scripts, exports of engines."""

import json
from contextlib import contextmanager
from datetime import datetime, timezone

import pytest
from pyspark.sql import functions as F

from tests.kit.variants import slow
from zadapter.errors import UsageError
from zadapter.inspection.querylog.entries import NO_WEIGHT

REPORT = {
    "table-name": "lake.db.events",
    "snapshot-id": 23,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {},
}
"""A scan report as Iceberg's ``ScanReportParser`` writes it, but for the filter."""


@contextmanager
def event_log(spark, folder, **settings):
    """Have Spark write its own event log of what happens inside."""
    folder.mkdir(exist_ok=True)
    jvm, context = spark._jvm, spark.sparkContext._jsc.sc()  # noqa: SLF001 - no public door
    conf = context.conf().clone()
    for name, value in settings.items():
        conf.set(f"spark.eventLog.{name.replace('_', '.')}", value)
    none = jvm.scala.Option.apply(None)
    hadoop = context.hadoopConfiguration()
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "app", none, jvm.java.net.URI(folder.as_uri()), conf, hadoop
    )
    listener.start()
    context.addSparkListener(listener)
    try:
        yield
        context.listenerBus().waitUntilEmpty()
    finally:
        context.removeSparkListener(listener)
        listener.stop()


def sums(log):
    """The filters of a log, with their weights."""
    return {each.sql: each.weight for each in log.filters}


@pytest.fixture
def run(spark, lake):
    """Runs some queries on the table."""

    def run_():
        rows = spark.read.format("delta").load(f"{lake}/events")
        rows.where("id = 7 AND country IN ('de', 'at') AND day >= '2024-01-05'").collect()
        for _ in range(3):
            rows.where("id = 8 OR (at.x > 1.5 AND country LIKE 'it''s%')").collect()
        rows.where("ts < '2024-01-05 12:00' AND NOT amount <= 2.50").collect()
        rows.where("upper(country) = 'X'").collect()
        spark.read.parquet(f"{lake}/users").where("id = 1").collect()

    return run_


@pytest.mark.parametrize("codec", slow("zstd", "none", "lz4", "snappy"))
def test_plans_in_an_event_log(spark, read, run, tmp_path, codec):
    """A program's queries have no text there, but their plans have filters."""
    compress = "false" if codec == "none" else "true"
    with event_log(spark, tmp_path, compress=compress, compression_codec=codec):
        run()

    found = read(tmp_path)

    assert 0 < found.days < 1
    assert sums(found) == {
        "country IN ('at', 'de') AND day >= 2024-01-05 AND id = 7": 1,
        "(at.x > 1.5 AND country starts with 'it's') OR id = 8": 3,
        "amount > 2.50 AND ts < 2024-01-05 12:00:00.000000": 1,
    }
    assert found.unused["no filter on this table"] == 1
    assert found.unused["another table"] >= 1
    assert found.entries == 5 + sum(found.unused.values())


def test_texts_in_an_event_log(spark, lake, read, tmp_path):
    """Spark's shell and its server describe an execution by its text, which knows more."""
    with event_log(spark, tmp_path, compress="false"):
        for text in (
            "SELECT * FROM events WHERE id = 7",
            "SELECT * FROM sold WHERE id = 8",
            "SELECT * FROM events WHERE id = 9 ORDER BY ts DESC LIMIT 3",
        ):
            spark.sparkContext.setJobDescription(text)
            rows = spark.read.format("delta").load(f"{lake}/events")
            rows.where(text.partition("WHERE")[2].partition("ORDER")[0]).collect()
        spark.sparkContext.setJobDescription(None)

    # Spark reads all rows that match, whatever their order
    assert sums(read(tmp_path, dynamic=True)) == {"id = 7": 1, "id = 8": 1, "id = 9": 1}


def test_partition_filters_in_an_event_log(spark, read, tmp_path):
    """They are expressions, in another notation than the filters of columns in the files."""
    table = tmp_path / "events"
    rows = spark.range(9).selectExpr("id", "id % 3 AS part", "string(id % 2) AS `odd name`")
    rows.write.partitionBy("part", "odd name").parquet(str(table))
    with event_log(spark, tmp_path / "log", compress="false"):
        rows = spark.read.parquet(str(table))
        rows.where("part = 1 AND id > 3").collect()
        rows.where("part IN (1, 2) OR part IS NULL").collect()

    found = read(tmp_path / "log", table, "parquet")

    assert sums(found) == {"id > 3 AND part = 1": 1, "part IN (1, 2) OR part IS NULL": 1}


@pytest.mark.slow
def test_iceberg_in_an_event_log(spark, read, conf, view, tmp_path):
    """Iceberg describes its scans; dates are days there, and times are microseconds."""
    catalog = "spark.sql.catalog.logs"
    conf({catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.type": "hadoop",
          f"{catalog}.warehouse": str(tmp_path / "warehouse")})  # fmt: skip
    spark.sql("""CREATE TABLE logs.db.events (id bigint, day date, ts timestamp, name string)
        USING iceberg PARTITIONED BY (day)""")
    spark.sql("INSERT INTO logs.db.events VALUES (1, DATE'2024-01-05', NULL, 'it, is')")
    two_days = spark.table("logs.db.events").where("day IN ('2024-01-05', '2024-01-06')")
    view(two_days, "two_days")
    with event_log(spark, tmp_path / "log", compress="false"):
        two_days.where("id = 1 AND name = 'a, b'").collect()
        spark.table("logs.db.events").where("ts >= '2024-01-05 12:00'").collect()

    assert sums(read(tmp_path / "log", "logs.db.events", "iceberg")) == {
        "day IN (2024-01-05, 2024-01-06) AND id = 1 AND name = 'a, b'": 1,
        "ts >= 2024-01-05 12:00:00.000000": 1,
    }
    assert sums(read(["SELECT * FROM two_days WHERE id = 1"], "logs.db.events", "iceberg")) == {
        "day IN (2024-01-05, 2024-01-06) AND id = 1": 1
    }


def test_scan_reports_of_iceberg(read, tmp_path):
    """Lines of a log may begin with a time and a level."""
    filters = [
        {"type": "and",
         "left": {"type": "gt-eq", "term": "day", "value": "2024-01-05"},
         "right": {"type": "in", "term": "country", "values": ["de", "it's"]}},
        {"type": "not", "child": {"type": "starts-with", "term": "country", "value": "a"}},
        {"type": "eq", "term": "id", "value": "(1-digit-int)"},
        {"type": "or",
         "left": {"type": "is-null", "term": "amount"},
         "right": {"type": "lt", "term": "ts", "value": "2024-01-05T12:00:00+00:00"}},
        {"type": "eq", "term": {"type": "transform", "transform": "day", "term": "ts"}, "value": 1},
        True,
        {"type": "eq", "term": "gone", "value": 1},
        "nonsense",
    ]  # fmt: skip
    reports = [REPORT | {"filter": each} for each in filters]
    reports.append(reports[0] | {"table-name": "lake.db.users"})
    lines = [f"2024-01-05 INFO Reporter: {json.dumps(report)}" for report in reports]
    (tmp_path / "scans.log").write_text("\n".join([*lines, "2024-01-05 INFO Started {}"]))

    found = read(tmp_path / "scans.log")

    assert sums(found) == {
        "country IN ('de', 'it's') AND day >= 2024-01-05": 1,
        "NOT country starts with 'a'": 1,
        "amount IS NULL OR ts < 2024-01-05 12:00:00.000000": 1,
    }
    assert found.unused == {
        "no filter on this table": 2,
        "a scan report without an expression": 1,
        "another table": 1,
        "column that does not exist: gone": 1,
        "values that Iceberg's report hides": 1,
    }


def test_a_script(read, tmp_path):
    """Statements end with a semicolon, but not within a text or a comment."""
    (tmp_path / "queries.sql").write_text("""
        -- first; the ids
        SELECT * FROM events WHERE id = 1;
        SELECT * FROM events /* ; */ WHERE country = ';';;
        SELECT * FROM events WHERE id = 1
    """)

    found = read(tmp_path / "queries.sql")

    assert sums(found) == {"id = 1": 2, "country = ';'": 1}
    assert found.entries == 3


def test_an_export_as_csv(read, tmp_path):
    """Texts have commas, quotes and line ends; times order them, however the rows are ordered."""
    (tmp_path / "log.csv").write_text("""user,Query,seconds,created
ann,"SELECT id, day FROM events WHERE country = ""de"" AND
id = 1",2.5,2024-01-03
bob,SELECT * FROM events WHERE id = 2,1,2024-01-01
bob,SELECT * FROM events WHERE id = 2,lots,2024-01-02
eve,,3,2024-01-02
""")

    found = read(str(tmp_path / "log.csv"))
    older, newer = found.split(0.7)

    assert sums(older) == {"id = 2": 1}
    assert sums(newer) == {"country = 'de' AND id = 1": 2.5}
    assert found.unused == {"no text": 1, NO_WEIGHT: 1}


@pytest.mark.parametrize("name", ["log.jsonl", "folder/part-0.json"])
def test_an_export_as_lines_of_json(read, tmp_path, name):
    """Keys are the columns of the same log as CSV; lines that are broken off are counted."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    entries = [
        {"ts": "2024-01-03T00:00:00Z", "user": "ann", "SQL": "SELECT * FROM events WHERE id = 1",
         "seconds": 2.5, "tags": {"a": [1]}},
        {"ts": "2024-01-01", "user": None, "SQL": "SELECT * FROM events WHERE id = 2"}
        | {"seconds": 1},
        {"ts": "2024-01-02", "SQL": "SELECT * FROM events WHERE id = 3", "seconds": "lots"},
        {"ts": "2024-01-02", "seconds": 1},
    ]  # fmt: skip
    lines = [*map(json.dumps, entries), "", '{"ts": "2024-01-02", "SQL": "SELE']
    path.write_text("\n".join(lines))

    found = read(tmp_path / name.partition("/")[0])
    older, newer = found.split(0.7)

    assert sums(older) == {"id = 2": 1}
    assert sums(newer) == {"id = 1": 2.5}
    assert sum(found.unused.values()) == 3
    assert found.unused[NO_WEIGHT] == 2
    assert found.unused["no text"] == 1


def test_an_export_as_parquet_and_a_dataframe(spark, read, tmp_path):
    """The only column of texts need not have a name that zadapter knows."""
    when = datetime(2024, 1, 5, tzinfo=timezone.utc)
    rows = spark.createDataFrame(
        [("id = 1", 3, when), ("id = 2", 5, when)], "q string, count int, t timestamp"
    )
    rows.write.parquet(str(tmp_path / "log"))

    assert sums(read(tmp_path / "log")) == sums(read(rows)) == {"id = 2": 5, "id = 1": 3}


def test_many_distinct_queries_are_sampled_by_weight(spark, read, monkeypatch):
    """The heaviest are planned; the others are counted, not forgotten."""
    monkeypatch.setattr("zadapter.inspection.querylog.entries.MOST", 20)
    rows = spark.range(1000).select(
        F.concat(F.lit("id = "), "id").alias("sql"),
        F.when(F.col("id") == 7, 5).otherwise(1).alias("weight"),
    )
    texts = [(row["sql"], row["weight"]) for row in rows.collect()]

    for found in (read(rows), read(texts)):
        assert found.filters[0].sql == "id = 7"
        assert len(found.filters) == 20
        assert list(found.unused.values()) == [980]
        assert found.entries == 1000
        older, newer = found.split(0.5)
        assert older.filters
        assert newer.filters


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.csv", "a,b\nx,y\n", "has no column of texts among a, b"),
        ("log.csv", "query\n", "empty log"),
        ("log.csv", '"SELECT 1 FROM t WHERE a = 1"\nx\n', "no header: its first line has 'SEL"),
        ("log.sql", "-- nothing;\n", "empty log"),
        ("log.jsonl", '{"a": 1}\n', "lines of JSON without a query: their keys are a; name the"),
        ("log.jsonl", '{"Event": "SparkListenerLogStart"}\n', "empty log"),
        ("log.jsonl", "\n", "empty log"),
        ("log.parquet", "no Parquet", "cannot be read: .*is not a Parquet file"),
    ],
)
def test_files_that_are_no_logs(read, tmp_path, name, text, message):
    """The message says what is wrong with which log."""
    (tmp_path / name).write_text(text)

    with pytest.raises(UsageError, match=message) as raised:
        read(tmp_path / name)
    assert name in str(raised.value)


def test_a_folder_without_files(read, tmp_path):
    """It may be the wrong one."""
    with pytest.raises(UsageError, match="has no files"):
        read(tmp_path)


def test_a_folder_with_logs_of_several_forms_is_refused(read, tmp_path):
    """One of them would be left out without a word."""
    (tmp_path / "a.csv").write_text("query\nid = 1\n")
    (tmp_path / "b.sql").write_text("SELECT * FROM events WHERE id = 2;")

    with pytest.raises(UsageError, match=r"several forms, such as .*a\.csv and .*b\.sql"):
        read(tmp_path)


def test_one_text_is_a_query_and_a_path_among_texts_is_refused(read):
    assert sums(read("id = 7")) == {"id = 7": 1}
    with pytest.raises(UsageError, match=r"queries\[1\] is the path 'logs/b\.sql'"):
        read(["id = 7", "logs/b.sql"])
