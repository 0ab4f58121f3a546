"""What a footer says counts only where it holds for the whole file."""

import math
from contextlib import closing
from dataclasses import astuple
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.builders import snapshot
from zadapter.errors import VerificationError
from zadapter.rewrite.verify import check_files
from zadapter.spark import footer_reader
from zadapter.table import file_stats
from zadapter.table.footers import ColumnFooter, Footer, file_table
from zadapter.table.snapshot import Staged


def footer(tmp_path, spark, table, **options):
    """Write *table* and read its footer back."""
    path = tmp_path / "file.parquet"
    pq.write_table(table, path, **options)
    (found,) = footer_reader.read(spark, [path.as_uri()])
    assert found.size == path.stat().st_size
    return found


def test_row_groups_are_taken_together(tmp_path, spark):
    """Bounds span all row groups, nulls add up, a row group of nulls says nothing."""
    numbers = pa.array([5, 7, None, None, -3, None], pa.int64())

    found = footer(tmp_path, spark, pa.table({"a": numbers}), row_group_size=2)

    assert found.rows == 6
    assert found.row_groups == (2, 2, 2)
    assert found.columns["a"] == ColumnFooter(-3, 7, 3)


def test_one_row_group_without_bounds_makes_the_files_unknown(tmp_path, spark):
    """Whatever the other row groups say."""
    known, unknown = pa.table({"a": ["x", "y"]}), pa.table({"a": ["x" * 5_000, "y" * 5_000]})
    path = str(tmp_path / "file.parquet")
    rows = spark.createDataFrame(pa.concat_tables([known, unknown])).coalesce(1)
    rows.write.option("parquet.block.row.count.limit", 2).parquet(path)

    (found,) = footer_reader.read(spark, [f"{path}/{p.name}" for p in Path(path).glob("*.parquet")])

    assert found.row_groups == (2, 2)
    assert found.columns["a"] == ColumnFooter(None, None, None)


def test_nan_makes_bounds_unknown(tmp_path, spark):
    """Writers differ in what they do with it."""
    found = footer(tmp_path, spark, pa.table({"a": [1.0, math.nan]}), row_group_size=1)

    assert found.columns["a"].max is None


@pytest.mark.parametrize("type_", ["double", "float"])
@pytest.mark.parametrize("at", range(4))
def test_spark_takes_nan_for_the_largest_value(tmp_path, spark, type_, at):
    """First, amid or last, it is the upper bound; a number there says that there is none."""
    path = str(tmp_path / "file.parquet")
    texts = ["'1.5'", "'-2'", "NULL", "'7'"]
    for values in (texts, [*texts[:at], "'NaN'", *texts[at:]]):
        rows = spark.sql(f"SELECT CAST(a AS {type_}) a FROM VALUES ({'), ('.join(values)}) t(a)")
        rows.coalesce(1).write.mode("overwrite").parquet(path)
        (found,) = footer_reader.read(
            spark, [f"{path}/{p.name}" for p in Path(path).glob("*.parquet")]
        )
        if "'NaN'" in values:
            low, high, nulls, nans = astuple(found.columns["a"])
            assert (low, math.isnan(high), nulls, nans) == (-2, True, 1, None)
        else:
            assert found.columns["a"] == ColumnFooter(-2, 7, 1, nans=0)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("1, 2, NaN, NaN, NULL, NaN", ColumnFooter(1, 2, 1, nans=3)),
        ("NaN, NaN, 1, 2", ColumnFooter(1, 2, 0, nans=2)),
        ("NaN, NaN, NULL, NULL", ColumnFooter(None, None, 2, nans=2)),
        ("NULL, NULL", ColumnFooter(None, None, 2, nans=0)),
    ],
)
@pytest.mark.parametrize("type_", ["double", "float"])
def test_row_groups_of_nan_alone_are_counted(tmp_path, spark, numbers, expected, type_):
    """And leave the bounds to the others; two rows each."""
    path = str(tmp_path / "file.parquet")
    values = ", ".join(f"(TRY_CAST('{each}' AS {type_}))" for each in numbers.split(", "))
    rows = spark.sql(f"SELECT a FROM VALUES {values} t(a)").coalesce(1)
    rows.write.option("parquet.block.row.count.limit", 2).parquet(path)

    (found,) = footer_reader.read(spark, [f"{path}/{p.name}" for p in Path(path).glob("*.parquet")])

    assert set(found.row_groups) == {2}
    assert found.columns["a"] == expected


def test_other_writers_do_not_tell_whether_there_is_nan(tmp_path, spark):
    """They leave it out of their bounds."""
    found = footer(tmp_path, spark, pa.table({"a": [1.0, 2.0]}))

    assert found.columns["a"] == ColumnFooter(1.0, 2.0, 0)


def test_names_with_dots_are_not_mixed_up(tmp_path, spark):
    """Two columns whose paths read the same are both unknown."""
    table = pa.table({"a.b": [1], "a": pa.array([{"b": 2}])})

    assert footer(tmp_path, spark, table).columns["a.b"] == ColumnFooter(None, None, None)


def test_a_missing_and_a_broken_file_are_told(tmp_path, spark):
    """By errors that the verification knows."""
    (tmp_path / "text.parquet").write_text("no Parquet")

    with pytest.raises(pa.ArrowInvalid):
        footer_reader.read(spark, [(tmp_path / "text.parquet").as_uri()])
    with pytest.raises(FileNotFoundError):
        footer_reader.read(spark, [(tmp_path / "none.parquet").as_uri()])


def test_files_elsewhere_are_read_through_hadoop(tmp_path, spark):
    """The same footer comes through Hadoop's FileSystem, which every object store has."""
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"a": range(100)}), path)

    with closing(footer_reader._open_file(spark, path.as_uri())) as stream:  # noqa: SLF001
        metadata = pq.read_metadata(pa.PythonFile(stream, mode="r"))

    assert metadata.num_rows == 100


MOMENT = datetime(2024, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("name", "lie"),
    [("rows", 3), ("size", 1), ("min", 6), ("max", 6)],
)
def test_a_log_that_would_lie_is_not_written(tmp_path, spark, name, lie):
    """Sizes, rows and bounds are held against the footer; the message names the file."""
    path = tmp_path / "file.parquet"
    table = pa.table({"a": [5, 7]})
    pq.write_table(table, path)
    read = dict(zip(["file.parquet"], footer_reader.read(spark, [path.as_uri()]), strict=True))
    files = file_table(snapshot(table.schema), read)
    check_files(snapshot(table.schema), Staged(files=files, paths={}), read)

    if name in files.column_names:
        at = files.schema.get_field_index(name)
        wrong = files.set_column(at, files.schema.field(name), pa.array([lie], pa.int64()))
    else:
        stats = files["stats"].to_pylist()
        stats[0]["a"][name] = lie
        at = files.schema.get_field_index("stats")
        field = files.schema.field("stats")
        wrong = files.set_column(at, field, pa.array(stats, field.type))

    with pytest.raises(VerificationError, match=r"file\.parquet"):
        check_files(snapshot(table.schema), Staged(files=wrong, paths={}), read)


def test_a_log_may_leave_nan_out_of_its_bounds():
    """As Iceberg's does: a footer's upper bound that is NaN holds nothing against it."""
    table = snapshot(pa.schema({"a": pa.float64()}))
    regular, with_nan, lower = (
        {"file.parquet": Footer(9, 3, (3,), {"a": ColumnFooter(low, high, 0)})}
        for low, high in ((-2.0, 7.0), (-2.0, math.nan), (-3.0, math.nan))
    )
    made = Staged(files=file_table(table, regular), paths={})

    check_files(table, made, with_nan)

    with pytest.raises(VerificationError, match="exceeds"):
        check_files(table, made, lower)


def test_stats_have_the_columns_own_types(tmp_path, spark):
    """Every type comes back as it is in the table, and lists have no stats."""
    table = pa.table(
        {
            "day": pa.array([1], pa.date32()),
            "when": pa.array([MOMENT], pa.timestamp("us", "UTC")),
            "price": pa.array([1], pa.decimal128(38, 10)),
            "text": ["x"],
            "flag": [True],
            "raw": [b"\xff"],
            "list": pa.array([[1]]),
        }
    )
    path = tmp_path / "file.parquet"
    pq.write_table(table, path)
    read = {"p": footer_reader.read(spark, [path.as_uri()])[0]}

    files = file_table(snapshot(table.schema), read)

    for name in table.column_names:
        stats = file_stats.column(files, (name,))
        if name == "list":
            assert stats is None
            continue
        low, high = stats.flatten()[:2]
        assert low.equals(table[name].combine_chunks()), name
        assert high.equals(table[name].combine_chunks()), name
