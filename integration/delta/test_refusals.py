"""Bad input: each a clear error before anything is written."""

import json
from pathlib import Path

import pytest

import zadapter
from zadapter import errors


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("bad") / "events")
    spark.range(100).selectExpr(
        "id a",
        "id % 2 p",
        "map('k', 1) m",
        "array(1) l",
        "named_struct('x', id) s",
        "'t' event_time",
    ).write.format("delta").partitionBy("p").save(path)
    return path


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"by": "event_tme"}, errors.UnknownColumnError, "event_time"),
        ({"by": []}, errors.UsageError, "no key columns"),
        ({"by": ["a", "A"]}, errors.UsageError, "duplicate"),
        ({"by": "p"}, errors.UsageError, "partition column"),
        ({"by": "m"}, errors.UsageError, "a map"),
        ({"by": "l"}, errors.UsageError, "an array"),
        ({"by": "s"}, errors.UsageError, "a struct"),
        ({"by": {"a": -1}}, errors.UsageError, "weight of a in by= is -1"),
        ({"by": "a", "where": "a >"}, errors.UsageError, "a >"),
        ({"by": "a", "where": "nope = 1"}, errors.UnknownColumnError, "nope"),
        ({"by": "a", "target_file_size": "many"}, errors.UsageError, "many"),
        ({"by": "a", "target_file_size": 0}, errors.UsageError, "too small"),
        ({"by": "a", "row_groups": 0}, errors.UsageError, "row_groups"),
        ({"by": "a", "curve": "peano"}, errors.UsageError, "peano"),
        ({"by": "a", "backend": "hudi"}, errors.MissingBackendError, "hudi"),
    ],
)
def test_a_wrong_argument_is_named(spark, table, arguments, error, says):
    """The message names what is wrong, and nothing is written."""
    with pytest.raises(error, match=says):
        zadapter.optimize(table, spark=spark, **arguments)

    assert len(list((Path(table) / "_delta_log").glob("*.json"))) == 1


def test_no_such_table_and_no_delta_table(spark, tmp_path):
    """A path without a log, and one that does not exist, are told apart."""
    (tmp_path / "plain").mkdir()

    with pytest.raises(errors.UnknownTableError, match="no delta, iceberg or parquet table"):
        zadapter.optimize(str(tmp_path / "plain"), by="a", spark=spark)
    with pytest.raises(errors.UnknownTableError, match="has no _delta_log"):
        zadapter.optimize(str(tmp_path / "plain"), by="a", backend="delta", spark=spark)
    with pytest.raises(errors.UnknownTableError, match="does not exist"):
        zadapter.optimize(str(tmp_path / "none"), by="a", backend="delta", spark=spark)


def test_an_empty_table_is_nothing_to_do(lake, spark):
    """A table without rows is said to be so, and not committed to."""
    path = str(lake.folder / "empty")
    spark.range(0).selectExpr("id a").write.format("delta").save(path)

    report = lake.optimize(path)

    assert report.plan.nothing_to_do
    assert report.versions == ()


def test_a_clustering_column_without_stats_is_refused(lake):
    """Files of a table with CLUSTER BY must have min and max, which CHAR columns would not get."""
    path = str(lake.folder / "padded")
    lake.sql(f"CREATE TABLE delta.`{path}` (a bigint, c char(3)) USING delta CLUSTER BY (c)")

    with pytest.raises(errors.UnsupportedError, match=r"min and max .* c, .*CLUSTER BY"):
        lake.optimize(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "writer", "features"),
    [
        (3, 7, ["catalogManaged"]),
        (3, 7, ["fromTheFuture"]),
        (1, 7, ["fromTheFuture"]),
        (1, 99, None),
    ],
)
def test_a_protocol_out_of_reach_is_refused(lake, spark, reader, writer, features):
    """Catalog-managed tables and unknown protocols are refused before anything is written."""
    path = lake.make(spark.range(10).selectExpr("id a"))
    entry = Path(path) / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    protocol = {"minReaderVersion": reader, "minWriterVersion": writer}
    if features:
        protocol["writerFeatures"] = [*features, "inCommitTimestamp", "vacuumProtocolCheck"]
    if reader == 3:
        protocol["readerFeatures"] = [*features, "vacuumProtocolCheck"]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = protocol
    copy = lake.folder / "copy" / "_delta_log"
    copy.mkdir(parents=True)
    (copy / entry.name).write_text("\n".join(json.dumps(line) for line in lines))

    with pytest.raises(errors.UnsupportedError):
        lake.optimize(str(copy.parent))


@pytest.mark.slow
def test_names_in_the_catalog(lake, spark):
    """A table can be named as the catalog knows it; views and other formats are told apart."""
    spark.sql("CREATE TABLE named (a bigint) USING delta")
    spark.sql("INSERT INTO named SELECT id FROM range(100)")
    spark.sql("CREATE TABLE plain (a bigint) USING parquet")
    spark.sql("CREATE VIEW seen AS SELECT * FROM named")

    report = lake.optimize("default.named")

    assert report.rows_added == 100
    assert lake.optimize("named").plan.nothing_to_do
    for name, says in (("plain", "parquet"), ("seen", "view")):
        with pytest.raises(errors.UnknownTableError, match=says):
            lake.optimize(name, backend="delta")
