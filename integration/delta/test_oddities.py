"""Tables that others write in ways we would not, and settings that turn meanings around."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import zadapter
from integration.kit.lakes import settings
from tests.kit.variants import slow
from zadapter.errors import ConflictError, UnsupportedError, UsageError
from zadapter.spark.clone import scratch
from zadapter_delta import DeltaBackend
from zadapter_delta.commits.rewrites import sizes
from zadapter_delta.jvm import Jvm
from zadapter_delta.table.lookup import log_of


def test_an_empty_text_is_no_null(lake, tmp_path):
    """As a partition's value, Delta's writer would make it one: refused, before anything goes."""
    path = str(tmp_path / "rust")
    rows = pa.table({"a": range(9), "p": ["", None, "x"] * 3})
    deltalake.write_deltalake(path, rows, partition_by=["p"])

    with pytest.raises(UnsupportedError, match="partition column p has empty strings"):
        lake.optimize(path)


@pytest.mark.slow
def test_char_values_stay_as_they_are_stored(lake, spark, tmp_path):
    """Spark pads them when it reads; what is written back is not padded."""
    path = str(tmp_path / "char")
    lake.sql(f"CREATE TABLE delta.`{path}` (a bigint, c char(5), p char(3)) USING delta "
             "PARTITIONED BY (p)")  # fmt: skip
    lake.sql(f"INSERT INTO delta.`{path}` SELECT id, 'ab', 'x' FROM range(500)")
    stored = {value for file in deltalake.DeltaTable(path).file_uris()
              for value in pq.ParquetFile(file).read(["c"])["c"].to_pylist()}  # fmt: skip

    report = lake.optimize(path, where="c = 'ab' AND p = 'x  '")

    assert report.rows_added == 500
    assert {value for file in deltalake.DeltaTable(path).file_uris()
            for value in pq.ParquetFile(file).read(["c"])["c"].to_pylist()} == stored  # fmt: skip
    with pytest.raises(UsageError, match="cannot be a key"):
        lake.optimize(path, by="c")


@pytest.mark.slow
@pytest.mark.parametrize(
    "key",
    [
        "concat(lpad(id * 7919 % 4001, 5, '0'), repeat('é😀', 1500))",
        *slow("concat(repeat('https://www.example.com/', 4), lpad(id * 7919 % 4001, 5, '0'))"),
    ],
)
def test_long_texts_are_keys_like_others(lake, spark, key):
    """Whether they begin alike or are too long for a footer, what was predicted comes true."""
    table = lake.make(spark.range(4_000).selectExpr("id", f"{key} a"))
    before = lake.rows(table)

    report = lake.optimize(table, target_file_size="16KB")

    assert report.share_after < 0.5
    assert abs(report.share_after - report.plan.share_after) < 0.05
    assert before == lake.rows(table)
    one = lake.load(table).where("id = 77").first().a
    assert lake.load(table).where(f"a = '{one}'").count() == 1


def test_a_rivals_choice_of_stats_is_kept(lake, spark):
    """Widening starts from the list as it is, or not at all."""
    listed = {"dataSkippingStatsColumns": "b"}
    table = lake.make(spark.range(99).selectExpr("id a", "id b", "id c"), **listed)

    class Rival(DeltaBackend):
        def collect_stats(self, *arguments):
            lake.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES "
                     "('delta.dataSkippingStatsColumns' = 'b,c')")  # fmt: skip
            return super().collect_stats(*arguments)

    with pytest.raises(ConflictError):
        lake.optimize(table, backend=Rival, collect_stats=True)

    lake.optimize(table, collect_stats=True)
    said = lake.sql(f"SHOW TBLPROPERTIES delta.`{table}`").collect()
    assert dict(map(tuple, said))["delta.dataSkippingStatsColumns"] == "`b`,`c`,`a`"


@pytest.mark.slow
def test_any_name_can_be_widened(lake, spark):
    """Letters of every script, backslashes and quotes."""
    names = ["größe", "日本", "a\\b", "it's", "b"]
    rows = spark.range(99).toDF("b")
    for name in names[:4]:
        rows = rows.withColumn(name, rows["b"])
    table = lake.make(rows, **{"columnMapping.mode": "name", "dataSkippingStatsColumns": "`größe`"})

    report = lake.optimize(table, by=[f"`{name}`" for name in names], collect_stats=True)

    assert report.rows_added == 99


def test_a_float_that_became_a_double_is_found(lake, spark):
    """Its text in the log is another number as a double."""
    rows = spark.sql("SELECT CAST(-0.1 AS FLOAT) f, id a FROM range(50)")
    table = lake.make(rows, files=1, enableTypeWidening="true")
    lake.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN f TYPE double")

    report = lake.optimize(table, by="f", where="f < -0.1D", force=True)

    assert report.rows_added == 50


@pytest.mark.slow
def test_timestamps_are_cut_right_whatever_the_word_means(lake, spark):
    """``spark.sql.timestampType`` can have the bare word mean another type."""
    rows = spark.range(4_000).selectExpr("timestamp_seconds(1e9 + id * 7919 % 4001 * 60) a")
    table = lake.make(rows)
    there = {
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.session.timeZone": "America/Los_Angeles",
    }
    with settings(spark, there):
        report = lake.optimize(table)

    assert report.share_after < 0.5
    assert abs(report.share_after - report.plan.share_after) < 0.05


@pytest.mark.slow
def test_rows_are_of_the_session_that_is_named(lake, spark):
    """Delta takes the thread's session, whose zone may be another one."""
    moment = "timestamp'2024-01-01 00:00:00Z' + make_dt_interval(0, id)"
    table = lake.make(spark.range(48).selectExpr(f"{moment} a"), files=8)
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    where = "a <= '2024-01-01 12:00:00'"

    found = zadapter.read(table, where=where, backend="delta", spark=other)

    assert found.count() == other.read.format("delta").load(table).where(where).count() == 18
    assert spark.range(1).selectExpr("current_timezone()").first()[0] != "America/New_York"


@pytest.mark.slow
def test_a_partition_may_be_called_like_a_file(lake, spark):
    """The number of a file is in the last part of its path."""
    table = lake.make(spark.range(99).selectExpr("id a", "'part-00008-x' p"), partition_by=["p"])

    assert lake.optimize(table).rows_added == 99
    assert lake.optimize(table).nothing_to_do


@pytest.mark.slow
def test_a_key_that_comes_back_as_another_type(lake, spark):
    """The cuts that were kept are of no use, and new ones are fitted."""
    rows = spark.range(2_000).selectExpr("concat('k', id) a", "id b")
    table = lake.make(rows, **{"columnMapping.mode": "name"})
    lake.optimize(table)
    lake.sql(f"ALTER TABLE delta.`{table}` DROP COLUMN a")
    lake.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN a bigint")
    spark.range(20).selectExpr("id b", "id a").write.format("delta").mode("append").save(table)
    before = lake.rows(table)

    lake.optimize(table)

    assert before == lake.rows(table)


def test_texts_that_are_no_unicode_are_keys(lake, spark, tmp_path):
    """Some writers do not look."""
    path = str(tmp_path / "raw")
    texts = pa.array([b"ok", b"\xff\xfe", b"\xc3", None] * 50, pa.binary()).view(pa.string())
    spark.range(0).selectExpr("'' a", "id b").write.format("delta").save(path)
    folder = tmp_path / "parquet"
    folder.mkdir()
    pq.write_table(pa.table({"a": texts, "b": range(200)}), folder / "x.parquet")
    spark.read.parquet(str(folder)).write.format("delta").mode("append").save(path)
    hashed = "SELECT bit_xor(xxhash64(cast(a AS binary), b)), count(*) FROM delta.`{}`"
    before = lake.sql(hashed.format(path)).collect()

    lake.optimize(path)

    assert before == lake.sql(hashed.format(path)).collect()


@pytest.mark.parametrize("where", ["a > array(1)", *slow("a", "nofunc(a) > 3", "a = map('k', 1)")])
def test_a_condition_that_spark_refuses_is_refused(lake, spark, where):
    """Else it would be taken for one that nothing is known of, and everything be rewritten."""
    table = lake.make(spark.range(99).toDF("a"))

    with pytest.raises(UsageError, match="condition"):
        lake.optimize(table, where=where)


def test_nothing_that_matches_is_no_clustered_table(lake, spark):
    """The reason given is the true one."""
    table = lake.make(spark.range(99).toDF("a"))

    assert "no file matches the condition" in str(lake.optimize(table, where="a > 1000"))


def test_plan_and_optimize_refuse_the_same_keys(lake, spark):
    """What Delta keeps no bounds of stays no key, however stats are widened."""
    table = lake.make(spark.range(99).selectExpr("id % 2 = 0 a"))

    for call in (zadapter.plan, zadapter.optimize):
        with pytest.raises(UsageError, match="stores no min and max"):
            call(table, by="a", collect_stats=True, spark=spark)


def test_other_threads_never_see_our_session(lake, spark):
    """Whatever ends first, the user's session is the process's active one all along."""
    table = lake.make(spark.range(99).toDF("a"))
    seen = []

    class Watched(DeltaBackend):
        def commit(self, rewrite):
            thread = threading.Thread(target=lambda: seen.append(SparkSession._activeSession))  # noqa: SLF001
            thread.start()
            thread.join()
            return super().commit(rewrite)

    lake.optimize(table, backend=Watched)

    assert seen == [spark]
    assert SparkSession.getActiveSession() is spark


@pytest.mark.slow
def test_a_path_with_a_backtick_is_found(lake, spark):
    """Doubled within backticks, as in SQL."""
    table = lake.make(spark.range(99).toDF("a"), name="ba`ck")

    assert lake.optimize("delta.`" + table.replace("`", "``") + "`").rows_added == 99
    assert lake.optimize(Path(table)).nothing_to_do


def test_new_files_are_looked_for_by_the_settings_of_the_callers_session(spark, lake):
    """Stores are asked in other threads, where Delta goes by the default session's settings."""
    path = lake.make(spark.range(1))
    other = spark.newSession()
    other.conf.set("fs.mine.impl", "org.apache.hadoop.fs.RawLocalFileSystem")

    with scratch(other) as own, ThreadPoolExecutor(1) as pool:
        jvm = Jvm(own)
        look = sizes(jvm, log_of(jvm, path))
        # it is found, and only then complains
        with pytest.raises(Exception, match="Wrong FS: mine:/x"):
            pool.submit(look, "mine:/x").result()
