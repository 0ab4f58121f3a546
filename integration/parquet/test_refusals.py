"""What other programs do to a folder, and folders that are no table."""

import shutil
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zadapter
from integration.kit.lakes import settings
from zadapter import errors

AT_ONCE = timedelta(0)


def numbers(spark, rows=100):
    return spark.range(rows).selectExpr("id AS a", "id % 2 AS p")


def write(path, values):
    pq.write_table(pa.table({"a": pa.array(values, pa.int64())}), path)


@pytest.fixture
def table(lake, spark):
    """A table that was a folder of two files, one of them no longer live."""
    folder = lake.folder / "events"
    folder.mkdir()
    write(folder / "one.parquet", [1, 2])
    write(folder / "two.parquet", [10, 20])
    assert zadapter.delete(folder, "a = 1", backend="parquet", spark=spark).rows_deleted == 1
    return str(folder)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (
            lambda folder: write(folder / "three.parquet", [5]),
            "another program added .*three.parquet' outside",
        ),
        (
            lambda folder: write(folder / "two.parquet", range(100)),
            "another program changed .*two.parquet' outside",
        ),
        (
            lambda folder: write(folder / "one.parquet", range(100)),
            "another program changed .*one.parquet' outside",
        ),
        (
            lambda folder: (folder / "two.parquet").unlink(),
            "another program removed .*two.parquet' outside",
        ),
    ],
)
def test_a_foreign_change_is_named_before_anything_is_read(spark, table, what, says):
    """Be the file live or not, and whatever its stats say."""
    what(Path(table))

    for act in (
        lambda: zadapter.read(table, where="a = 99", spark=spark),
        lambda: zadapter.files(table, where="a = 99", spark=spark),
        lambda: zadapter.delete(table, "a = 99", spark=spark),
        lambda: zadapter.append(table, numbers(spark).select("a")),
    ):
        with pytest.raises(errors.ForeignChangeError, match=says):
            act()


def test_a_foreign_file_under_a_known_name_is_never_deleted(spark, table):
    """An export has written the file again that the table no longer needs."""
    write(Path(table, "one.parquet"), [7, 8])

    zadapter.vacuum(table, older_than=AT_ONCE, dry_run=False, spark=spark)

    assert pq.read_table(Path(table, "one.parquet"))["a"].to_pylist() == [7, 8]


def test_tables_within_one_another_are_refused(lake, spark):
    """Files of the inner one are not all live; the outer one's clean-up would not know."""
    outer = lake.make(numbers(spark), "p")
    zadapter.append(f"{outer}/p=1", numbers(spark).select("a"), backend="parquet")
    with pytest.raises(errors.UnsupportedError, match="of a table of zadapter"):
        zadapter.read(outer, backend="parquet", spark=spark)
    shutil.rmtree(f"{outer}/p=1/_zadapter")

    lake.optimize(outer)

    with pytest.raises(errors.UnsupportedError, match="is inside"):
        zadapter.read(f"{outer}/p=1", backend="parquet", spark=spark)


def test_days_of_another_calendar_are_found(lake, spark):
    """Their footers speak of other days than Spark reads."""
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}):
        table = lake.make(spark.sql("SELECT DATE'1500-01-01' AS d, 1 AS a"), files=1)

    found = zadapter.read(table, where="d = DATE'1500-01-01'", backend="parquet", spark=spark)

    assert found.count() == 1


def test_a_session_that_reads_other_days_than_are_stored_is_refused(lake, spark):
    """A day that min and max say would be ten days earlier."""
    table = str(lake.folder / "days")
    Path(table).mkdir()
    pq.write_table(pa.table({"d": [date(1500, 1, 1)], "a": [1]}), f"{table}/one.parquet")
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}):
        with pytest.raises(errors.SessionError, match="LEGACY"):
            zadapter.read(table, where="d < DATE'1499-12-25'", backend="parquet", spark=spark)
        with pytest.raises(errors.SessionError, match="LEGACY"):
            lake.optimize(table)

    assert lake.optimize(table, force=True).rows_added == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        {"spark.sql.parquet.int96RebaseModeInRead": "LEGACY"},
        {"spark.sql.parquet.int96TimestampConversion": "True"},
    ],
)
def test_a_session_that_reads_other_moments_than_are_stored_is_refused(lake, spark, setting):
    table = str(lake.folder / "moments")
    Path(table).mkdir()
    old = pa.table({"ts": pa.array([-30_609_792_000_000_000], pa.timestamp("us")), "a": [1]})
    pq.write_table(old, f"{table}/one.parquet", use_deprecated_int96_timestamps=True)
    with settings(spark, setting):
        (name,) = setting
        with pytest.raises(errors.SessionError, match=name):
            zadapter.read(table, where="a = 1", backend="parquet", spark=spark)

    assert lake.optimize(table, by="a", force=True).rows_added == 1


def test_such_a_session_reads_what_has_no_days_or_moments(lake, spark):
    table = lake.make(spark.range(10).selectExpr("id AS a", "array(named_struct('b', id)) AS b"))
    dated = lake.make(spark.range(10).selectExpr("id AS a", "array(current_date()) AS b"), name="d")
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}):
        assert lake.optimize(table).rows_added == 10
        with pytest.raises(errors.SessionError, match="LEGACY"):
            lake.optimize(dated)


def test_a_file_that_is_being_copied_is_not_there_yet(lake, spark):
    """Hadoop's shell names it so, and Spark does not read it."""
    folder = lake.folder / "copied"
    folder.mkdir()
    write(folder / "one.parquet", [1])
    write(folder / "0.parquet._COPYING_", [2])

    assert zadapter.files(folder, backend="parquet", spark=spark)["rows"].to_pylist() == [1]
    assert lake.optimize(str(folder), force=True).rows_added == 1


def test_a_dot_in_a_name_and_a_field(lake, spark):
    """One file's a.b is a column, the other's a field of a."""
    table = lake.make(spark.sql("SELECT 1 AS `a.b`"), files=1)
    spark.sql("SELECT named_struct('b', 2) AS a").write.mode("append").parquet(table)

    for column in ("a.b", "`a.b`"):
        where = f"{column} IS NULL"
        assert zadapter.read(table, where=where, backend="parquet", spark=spark).count() == 1


def test_files_of_every_name_are_there(lake, spark):
    folder = lake.folder / "odd"
    folder.mkdir()
    for number, name in enumerate(["part#1", "a b.parquet", "c%20d", "[e]", "f#2.parquet"]):
        write(folder / name, [number])

    assert lake.optimize(str(folder)).rows_added == 5
    assert zadapter.read(folder, spark=spark).count() == 5
    assert zadapter.read(folder.as_uri(), spark=spark).count() == 5


def test_texts_that_are_not_ordered_by_their_bytes(lake, spark):
    """Their stats choose no files, and they are no keys."""
    rows = spark.sql("SELECT col1 COLLATE UTF8_LCASE AS s FROM VALUES ('ABC'), ('abd')")
    table = lake.make(rows, files=2)

    assert zadapter.read(table, where="s = 'abc'", backend="parquet", spark=spark).count() == 1
    with pytest.raises(errors.UsageError, match="cannot be a key"):
        lake.optimize(table, by="s")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [("x.parquet", b"PAR1 no more", "cannot be read"), ("README.md", b"# hello", "cannot be read")],
)
def test_a_file_that_is_not_parquet_is_named(lake, spark, name, content, says):
    table = lake.make(numbers(spark))
    Path(table, name).write_bytes(content)

    with pytest.raises(errors.UnsupportedError, match=f"{name} {says}"):
        lake.optimize(table)


def test_a_file_that_spark_cannot_read_is_named(lake, spark):
    folder = lake.folder / "nanoseconds"
    folder.mkdir()
    pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("ns"))}), folder / "x.parquet")

    with pytest.raises(errors.UnsupportedError, match=r"Spark cannot read .*x\.parquet"):
        lake.optimize(str(folder), by="at")


def test_files_that_do_not_fit_together_are_named(lake, spark):
    table = lake.make(numbers(spark))
    spark.range(3).selectExpr("string(id) AS a").write.mode("append").parquet(table)

    with pytest.raises(errors.UnsupportedError, match="has type"):
        lake.optimize(table)


def test_a_table_of_another_format(lake, spark):
    table = f"{lake.folder}/delta"
    numbers(spark).write.format("delta").save(table)

    with pytest.raises(errors.UnsupportedError, match="of a table of Delta"):
        lake.optimize(table)
    with pytest.raises(errors.UnsupportedError, match="writes rows to plain Parquet tables only"):
        zadapter.append(table, numbers(spark), backend="delta")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__", "DOM\\\\user", "a/../b"])
def test_a_partition_value_that_no_folder_can_hold(lake, spark, text):
    """It would come back as another one."""
    table = lake.make(spark.sql("SELECT 1 AS a, 'x' AS k"), "k", files=1)

    with pytest.raises(Exception, match="a folder name cannot represent this value"):
        zadapter.append(table, spark.sql(f"SELECT 1 AS a, '{text}' AS k"), backend="parquet")

    assert zadapter.read(table, backend="parquet", spark=spark).count() == 1


@pytest.mark.parametrize("version", [True, "1", 1.5])
def test_what_is_no_version(spark, table, version):
    with pytest.raises(errors.UsageError, match="an integer or a datetime"):
        zadapter.read(table, version=version, spark=spark)


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array([1, 2], pa.duration("us")), "'a' contains durations"),
        (pa.array([{"d": 1}], pa.struct({"d": pa.duration("ms")})), "'a' contains durations"),
        (
            pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8())),
            r"'a' is of type arrow\.bool8",
        ),
    ],
)
def test_values_that_only_a_note_of_arrow_explains_are_refused(lake, spark, column, says):
    """Polars and pandas write durations: after a rewrite without the note they would be numbers."""
    folder = lake.folder / "events"
    folder.mkdir()
    pq.write_table(pa.table({"a": [5]}), folder / "plain.parquet")
    pq.write_table(pa.table({"a": column}), folder / "x.parquet")

    with pytest.raises(errors.UnsupportedError, match=rf"x\.parquet: column {says}"):
        lake.optimize(str(folder))

    assert not (folder / "_zadapter").exists()


def test_decimals_of_more_digits_than_spark_has_are_refused(lake, spark):
    """DuckDB and pyarrow know decimals of 76 digits."""
    folder = lake.folder / "events"
    folder.mkdir()
    pq.write_table(pa.table({"a": pa.array([1], pa.decimal256(50, 2))}), folder / "x.parquet")

    with pytest.raises(errors.UnsupportedError, match=r"Spark cannot read .*x\.parquet: .*50"):
        lake.optimize(str(folder))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"use_byte_stream_split": ["d"], "use_dictionary": False}, "encoded as BYTE_STREAM_SPLIT"),
        ({"compression": "brotli"}, "compressed with BROTLI"),
    ],
)
def test_encodings_that_spark_does_not_read_are_refused(lake, spark, options, says):
    """DuckDB writes the one for floats where PARQUET_VERSION is V2, Polars and pandas the other."""
    folder = lake.folder / "events"
    folder.mkdir()
    rows = pa.table({"a": range(50), "d": [n / 7 for n in range(50)]})
    pq.write_table(rows, folder / "x.parquet", **options)

    with pytest.raises(errors.UnsupportedError, match=rf"x\.parquet: column '[ad]' is {says}"):
        lake.optimize(str(folder))

    assert not (folder / "_zadapter").exists()
