"""Patterns of a lake find its tables, and say why others are left out."""

from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zadapter.errors import UsageError
from zadapter.lake.discovery import discover
from zadapter.lake.limits import find_nested
from zadapter.lake.listing import qualify
from zadapter.lake.settings import Entry

HDFS = "hdfs://localhost:1"
"""Nothing listens there: a location is qualified without a call."""
DOWN = {
    "spark.sql.catalog.down": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.down.type": "rest",
    "spark.sql.catalog.down.uri": "http://localhost:1/",
}


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """Folders of several formats, a few of them in the catalogs, and views."""
    lake = tmp_path_factory.mktemp("lake") / "a lake"
    rows = pa.table({"id": [1, 2], "day": [0, 1]})
    deltalake.write_deltalake(f"{lake}/raw/orders", rows, partition_by=["day"])
    pq.write_to_dataset(rows, lake / "raw/plain", partition_cols=["day"])
    pq.write_to_dataset(rows.select(["id"]), lake / "own/plain")
    (lake / "raw/texts").mkdir()
    (lake / "raw/texts/part.csv").write_text("1,0\n")
    (lake / "raw/notes.md").touch()
    for statement in (
        "CREATE DATABASE sales",
        f"CREATE TABLE sales.orders USING delta LOCATION '{lake}/raw/orders'",
        f"CREATE TABLE sales.plain (id BIGINT) USING parquet LOCATION '{lake}/own/plain'",
        "CREATE TABLE sales.texts (id INT) USING csv",
        "CREATE VIEW sales.recent AS SELECT * FROM sales.texts",
        "CREATE TEMPORARY VIEW tmp_recent AS SELECT 1 AS id",
        "CREATE NAMESPACE iceberg.web",
        "CREATE NAMESPACE iceberg.web.eu",
        "CREATE TABLE iceberg.web.events (id INT) USING iceberg",
        "CREATE TABLE iceberg.web.eu.clicks (id INT) USING iceberg",
        "CREATE VIEW iceberg.web.recent AS SELECT 1 AS id",
    ):
        spark.sql(statement)
    yield lake
    for statement in (
        "DROP DATABASE sales CASCADE",
        "DROP VIEW tmp_recent",
        "DROP TABLE iceberg.web.eu.clicks",
        "DROP TABLE iceberg.web.events",
        "DROP VIEW iceberg.web.recent",
        "DROP NAMESPACE iceberg.web.eu",
        "DROP NAMESPACE iceberg.web",
    ):
        spark.sql(statement)


@pytest.fixture
def found(spark, lake):
    """Returns formats of the tables that patterns find, and the reasons why others are left out."""

    def find(*entries):
        entries = [Entry(match=each) if isinstance(each, str) else each for each in entries]
        tables, left_out = discover(spark, entries)
        named = {each.table.replace(str(lake), ""): each for each in tables}
        assert len(named) == len(tables)
        reasons = {each.table.replace(str(lake), ""): each.reason for each in left_out}
        assert len(reasons) == len(left_out)
        return named, reasons

    return find


def _formats(named):
    return {table: each.format for table, each in named.items()}


def test_names_are_found_in_all_catalogs(found):
    """Each table has its whole name, and what is no table the reason."""
    named, reasons = found("SALES.*", "iceberg.*.*", "*.web.*", "iceberg.web.e*.*")

    assert _formats(named) == {
        "spark_catalog.sales.orders": "delta",
        "spark_catalog.sales.plain": "parquet",
        "iceberg.web.events": "iceberg",
        "iceberg.web.eu.clicks": "iceberg",
    }
    assert "provider csv" in reasons.pop("spark_catalog.sales.texts")
    assert reasons.pop("*.web.*").startswith("no table matches; list the names by SHOW TABLES")
    assert {*reasons} == {"spark_catalog.sales.recent", "iceberg.web.recent"}
    assert all("is a view" in reason for reason in reasons.values())


def test_a_name_without_a_namespace_is_in_the_current_one(spark, found):
    """That is where views of the session are, too."""
    spark.sql("USE sales")
    try:
        named, reasons = found(
            Entry(match="[oprt]*", exclude=("tmp_r*", "sales.p?ain", "te*"), format="delta"),
            "tmp_?",
        )
    finally:
        spark.sql("USE default")

    assert _formats(named) == {"spark_catalog.sales.orders": "delta"}
    assert {*reasons} == {"spark_catalog.sales.recent", "tmp_?"}


def test_folders_are_found_by_path(found, lake):
    """Files and what tables have inside are no tables; a folder without a log is named by users."""
    named, reasons = found(f"{lake}/r*/*", f"{lake}/raw/*/*", f"{lake}/raw/orders/_delta_log")

    assert _formats(named) == {"/raw/orders": "delta"}
    assert "state format = 'parquet'" in reasons.pop("/raw/plain")
    assert "cannot be read as Parquet" in reasons.pop("/raw/texts")
    assert "is inside of" in reasons.pop("/raw/orders/_delta_log")
    assert reasons == {"/raw/*/*": "no table matches; list the folders that the path names"}


def test_inner_folders_of_iceberg_tables_hold_parquet_files_but_no_tables(found, spark):
    """To take them for plain Parquet would break the table."""
    properties = spark.sql("DESCRIBE TABLE EXTENDED iceberg.web.events").collect()
    location = next(row.data_type for row in properties if row.col_name == "Location")
    data = Path(location.removeprefix("file:"), "data")
    pq.write_to_dataset(pa.table({"id": [1]}), data)

    named, reasons = found(
        Entry(match=f"{data.parent}/*", format="parquet"),
        Entry(match=f"{data.parent.parent}/*/d*", format="parquet"),
        Entry(match=str(data), format="parquet"),
    )

    assert named == {}
    unmatched = "no parquet table matches; list the folders that the path names"
    assert list(reasons.values())[:2] == [unmatched] * 2
    assert "is inside of" in reasons[str(data)]


def test_a_table_belongs_to_the_first_entry_under_any_spelling(found, lake):
    by_name, by_format = Entry(match="sales.orders"), Entry(match=f"{lake}/raw/*", format="parquet")

    named, reasons = found(
        by_name, by_format, f"file:{lake}/r*/orders", "spark_catalog.sales.o*", f"{lake}/raw/pl*/"
    )

    assert {table: each.entry for table, each in named.items()} == {
        "spark_catalog.sales.orders": by_name,
        "/raw/plain": by_format,
    }
    assert {*reasons} == {"/raw/texts"}
    assert {*found(f"{lake}/raw/orders", "sales.o*")[0]} == {"/raw/orders"}


def test_folders_of_similar_names_are_different_tables(found, lake):
    """Names are neither patterns nor escaped, once they are listed."""
    rows = pa.table({"id": [1]})
    for name in ("a b", "a%20b", "a[1]"):
        deltalake.write_deltalake(f"{lake}/odd/new", rows)
        (lake / "odd/new").rename(lake / "odd" / name)

    named, _ = found(f"{lake}/odd/*", f"{lake}/odd/*/_delta_log")

    assert {*named} == {"/odd/a b", "/odd/a%20b", "/odd/a[1]"}


def test_an_entry_leaves_other_formats_to_the_next_one_unless_it_names_the_table(found, lake):
    named, reasons = found(
        Entry(match="sales.*", format="iceberg"),
        Entry(match="sales.pl[a]in", format="delta"),
        Entry(match="sales.plain", format="delta"),
        Entry(match=f"{lake}/raw/*", format="delta"),
    )

    assert _formats(named) == {"/raw/orders": "delta"}
    assert "not a Delta table" in reasons.pop("spark_catalog.sales.plain")
    assert "is a view" in reasons.pop("spark_catalog.sales.recent")
    (reason,) = reasons.values()
    assert reason.startswith("no delta table matches; list the names by SHOW TABLES")


def test_what_is_excluded_may_be_matched_by_a_later_entry(found, lake):
    first = Entry(match=f"{lake}/r*/*", exclude=(f"file:{lake}/r?w", f"{lake}/none"))
    second = Entry(match="iceberg.web.*", exclude=("iceberg.*.rec*", "iceberg.web.EVENTS"))

    assert found(first, second) == ({}, {})
    assert _formats(found(first, f"{lake}/raw/orders")[0]) == {"/raw/orders": "delta"}


@pytest.mark.parametrize(
    ("match", "exclude"),
    [
        ("sales.*", "tmp_*"),
        ("sales.*", "iceberg.sales.*"),
        ("sales.*", "/lake/tmp"),
        ("/lake/*", "tmp"),
        ("sales..*", "sales.tmp"),
    ],
)
def test_what_would_exclude_nothing_is_refused(spark, match, exclude):
    """A table would be rewritten that its owner wanted to keep."""
    with pytest.raises(UsageError, match=r"excludes? |no pattern"):
        discover(spark, [Entry(match=match, exclude=(exclude,))])


@pytest.mark.parametrize("stated", ["/warehouse/db/t", "hdfs:///warehouse/db/t"])
def test_a_location_without_host_is_no_table_of_another(spark, conf, stated):
    """Hadoop lists the table's files with the host of its file system."""
    conf({"fs.defaultFS": HDFS})
    own, listed = qualify(spark, stated), f"{HDFS}/warehouse/db/t"

    assert own == listed
    assert find_nested(own, {listed}) is None
    assert find_nested(own, {listed, f"{listed}/inner"}) is not None
    assert find_nested(own, {f"{HDFS}/warehouse"}) is not None


def test_a_catalog_that_is_down_concerns_its_pattern_alone(found, conf, lake):
    conf(DOWN)

    named, reasons = found("down.*.*", f"{lake}/[a", "sales.orders", "spark_catalog.*")

    assert _formats(named) == {"spark_catalog.sales.orders": "delta"}
    assert "Connection refused" in reasons["down.*.*"]
    assert "Unclosed character class" in reasons["/[a"]
    assert "spark_catalog.*.* matches" in reasons["spark_catalog.*"]
