"""What a folder's table of stats says of its files."""

from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import zadapter


@contextmanager
def timestamps_as(spark, kind):
    """Have Spark write timestamps in one of its ways."""
    setting = "spark.sql.parquet.outputTimestampType"
    spark.conf.set(setting, kind)
    yield
    spark.conf.unset(setting)


TYPES = {
    "truth": "id % 2 = 0",
    "tiny": "CAST(id % 100 AS tinyint)",
    "small": "CAST(id AS smallint)",
    "whole": "CAST(id AS int)",
    "large": "id * 1000000007",
    "single": "CAST(id / 3 AS float)",
    "double": "id / 3 - 500",
    "price": "CAST(id / 7 AS decimal(9, 3))",
    "precise": "CAST(id AS decimal(38, 10)) / 3",
    "text": "concat('ä', id % 977)",
    "raw": "unhex(hex(id * 65537))",
    "day": "date_add(DATE'1969-06-01', CAST(id AS int))",
    "moment": "timestamp_micros(id * 86400000001 - 1000000000000)",
    "local": "CAST(timestamp_micros(id * 86400000001) AS timestamp_ntz)",
    "inner": "named_struct('at', id, 'of', named_struct('text', CAST(id AS string)))",
    "nothing": "CAST(NULL AS bigint)",
}


def test_values_tell_what_footers_would(lake, spark):
    """Of files with stats in their footers and of the same files without the table is the same."""
    columns = [f"IF(id % 10 = 3, NULL, {text}) AS {name}" for name, text in TYPES.items()]
    rows = spark.range(2_000).selectExpr("id", *columns)
    with timestamps_as(spark, "TIMESTAMP_MICROS"):
        told = lake.make(rows.repartitionByRange(4, "id"), name="told")
    untold = lake.folder / "untold"
    untold.mkdir()
    for path in lake.files(told):
        pq.write_table(pq.read_table(path), untold / Path(path).name, write_statistics=False)
    for folder in (told, str(untold)):
        zadapter.append(folder, rows.limit(0), backend="parquet")

    first, second = (lake.stats(folder) for folder in (told, str(untold)))

    assert first.num_columns == second.num_columns
    for name in first.column_names:
        # NaN is known to be absent of Spark's files only; the others' were looked through
        if not name.endswith(("size", "bounds", "_num_nans")):
            assert first[name].equals(second[name]), name
    assert second["double_num_nans"].to_pylist() == [0, 0, 0, 0]


def test_files_are_found_by_what_footers_do_not_tell(lake, spark):
    """INT96 has no stats, NaN has no place among them; what is long stays unknown."""
    long = "repeat(cast(id as string), 5000)"
    nan = "CASE WHEN id % 100 = 7 THEN double('NaN') ELSE id / 2 END"
    rows = spark.range(1_000).selectExpr("timestamp_seconds(id) at", f"{nan} x", f"{long} s")
    table = f"{lake.folder}/old"
    with timestamps_as(spark, "INT96"):
        rows.repartitionByRange(10, "at").write.parquet(table)
    zadapter.append(table, rows.limit(0), backend="parquet")

    def matching(where):
        return zadapter.files(table, where=where, spark=spark).num_rows

    assert matching("at < TIMESTAMP'1970-01-01T00:00:50Z'") == 1
    assert matching("x < 20") == 1
    assert matching("x > 480") == 10  # NaN is larger
    assert matching("x = 485") == 1
    assert matching("s = '111'") == 10
    assert zadapter.read(table, where="x < 20", spark=spark).count() == 39


def test_nan_costs_no_more_than_was_predicted(lake, spark):
    """It lies in the last file, whose lower bound holds nevertheless."""
    x = "CASE WHEN id = 500 THEN double('NaN') ELSE double(pmod(xxhash64(id), 100000)) END AS x"
    table = lake.make(spark.range(20_000).selectExpr("id", x).repartition(4))

    report = lake.optimize(table, by=["x"], target_file_size="10KB")

    assert report.share_after == pytest.approx(report.plan.share_after, abs=0.02)
    assert zadapter.files(table, where="x < 100", spark=spark).num_rows == 1
    assert zadapter.read(table, where="x < 100", spark=spark).count() == (
        spark.range(20_000).selectExpr(x).where("x < 100").count()
    )
