"""Each type has a translation, or is refused by the name of its column."""

import decimal
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, LongType, NestedField, TimeType, UUIDType

from integration.migration.tables import FORMATS, settings
from zadapter.errors import UnsupportedError

TO = ["delta", "parquet"]
KEY = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


def of_pyiceberg(lakes, name, type_, values, arrow):
    """An Iceberg table with a column that Spark would not make."""
    table = lakes.name("iceberg")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, name, type_))
    made = lakes.catalog.create_table(table.removeprefix("ice."), schema)
    if values is not None:
        ids = pa.array(range(len(values)), pa.int64())
        made.append(pa.table({"id": ids, name: pa.array(values, arrow)}))
    return table


@pytest.mark.slow
@pytest.mark.parametrize("to", TO)
def test_a_uuid_becomes_a_text(lakes, to):
    """As Spark reads it."""
    table = of_pyiceberg(lakes, "u", UUIDType(), [KEY.bytes, None], pa.uuid())

    report = lakes.migrate("iceberg", table, to)

    assert lakes.read(to, report.target) == [
        f"[('id', '0'), ('u', \"'{KEY}'\")]", "[('id', '1'), ('u', 'None')]",
    ]  # fmt: skip
    assert any("uuid becomes string" in item.how for item in report.items)


@pytest.mark.slow
@pytest.mark.parametrize("to", TO)
def test_fixed_bytes_become_bytes(lakes, to):
    table = of_pyiceberg(lakes, "f", FixedType(3), [b"abc", None], pa.binary(3))

    report = lakes.migrate("iceberg", table, to)

    assert lakes.read(to, report.target) == [
        "[('f', \"b'abc'\"), ('id', '0')]", "[('f', 'None'), ('id', '1')]",
    ]  # fmt: skip
    assert any("becomes binary" in item.how for item in report.items)


@pytest.mark.parametrize(
    ("type_", "value", "arrow"),
    [(UUIDType(), KEY.bytes, pa.uuid()), (FixedType(3), b"abc", pa.binary(3))],
)
def test_other_bytes_are_not_shared(lakes, type_, value, arrow):
    """Files have them in a way that the other format does not know."""
    table = of_pyiceberg(lakes, "x", type_, [value], arrow)

    with pytest.raises(UnsupportedError, match="mode='copy'"):
        lakes.migrate("iceberg", table, "delta", mode="in_place")


@pytest.mark.parametrize("to", TO)
def test_a_time_of_day_is_refused(lakes, to):
    """Spark cannot read it; the column is named."""
    table = of_pyiceberg(lakes, "clock", TimeType(), None, None)

    with pytest.raises(UnsupportedError, match="clock"):
        lakes.migrate("iceberg", table, to)


@pytest.mark.parametrize(
    ("format_", "to", "column", "word"),
    [
        ("delta", "parquet", "parse_json('{\"a\":1}')", "variant"),
        ("delta", "parquet", "NULL", "void"),
        ("parquet", "delta", "INTERVAL '1' DAY", "interval"),
    ],
)
def test_types_without_a_match_are_refused(lakes, spark, format_, to, column, word):
    """Each by the name of its column, in a dry run as an item."""
    table, target = lakes.name(format_), lakes.name(to)
    spark.sql(f"SELECT 1 AS id, {column} AS odd").write.format(format_).save(table)

    with pytest.raises(UnsupportedError, match=rf"odd.*{word}"):
        lakes.migrate(format_, table, to, target)

    assert not Path(target).exists()
    assert lakes.migrate(format_, table, to, target, dry_run=True).refused


@pytest.mark.slow
@pytest.mark.parametrize("to", FORMATS[1:])
def test_padded_texts_become_texts(lakes, to):
    """CHAR and VARCHAR as they are stored; whoever reads them sees no other values."""
    table = lakes.name("delta")
    lakes.sql(f"CREATE TABLE delta.`{table}` (id int, c char(4), v varchar(4)) USING delta")
    lakes.sql(
        f"INSERT INTO delta.`{table}` VALUES (1, 'a', 'b'), (2, 'abcd', ''), (3, NULL, ' x ')"
    )

    report = lakes.migrate("delta", table, to)

    assert lakes.read(to, report.target) == lakes.read("delta", table)
    said = "; ".join(f"{item.what}: {item.how}" for item in report.items)
    assert "column c" in said
    assert "column v" in said


@pytest.fixture(scope="module")
def old_times(lakes, spark):
    """Timestamps of 96 bits, as Spark writes them unless told otherwise."""
    table = lakes.name("parquet")
    with settings(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        rows = spark.range(9).selectExpr("id", "timestamp_micros(1795291493080758 - id) AS t")
        rows.write.parquet(table)
    footer = pq.read_metadata(next(Path(table).glob("*.parquet")))
    assert footer.schema.column(1).physical_type == "INT96"
    return table


@pytest.fixture(scope="module")
def unsigned(lakes):
    """Whole numbers without a sign, as pyarrow writes them."""
    table = Path(lakes.name("parquet"))
    table.mkdir()
    columns = {
        "a": pa.array([0, 255, None], pa.uint8()),
        "b": pa.array([0, 65_535, None], pa.uint16()),
        "c": pa.array([0, 4_294_967_295, None], pa.uint32()),
        "d": pa.array([0, 18_446_744_073_709_551_615, None], pa.uint64()),
    }
    pq.write_table(pa.table(columns), table / "x.parquet")
    return str(table)


@pytest.mark.slow
@pytest.mark.parametrize("to", FORMATS[:2])
def test_times_of_96_bits_are_copied_and_not_shared(lakes, spark, old_times, to):
    """Other formats have them as whole microseconds."""
    report = lakes.migrate("parquet", old_times, to)

    found = sorted(map(tuple, lakes.load(to, report.target).collect()))
    assert found == sorted(map(tuple, spark.read.parquet(old_times).collect()))
    with pytest.raises(UnsupportedError, match=r"INT96.*mode='copy'"):
        lakes.migrate("parquet", old_times, to, mode="in_place")
    assert lakes.migrate("parquet", old_times, to, mode="auto").mode.value == "copy"


@pytest.mark.parametrize("to", FORMATS[:2])
def test_unsigned_numbers_are_copied_and_not_shared(lakes, unsigned, to):
    """As the next wider type that Spark reads them as; the largest need decimals."""
    report = lakes.migrate("parquet", unsigned, to)

    found = sorted(map(tuple, lakes.load(to, report.target).collect()), key=str)
    largest = decimal.Decimal(18_446_744_073_709_551_615)
    assert found == [
        (0, 0, 0, decimal.Decimal(0)), (255, 65_535, 4_294_967_295, largest), (None,) * 4,
    ]  # fmt: skip
    with pytest.raises(UnsupportedError, match="mode='copy'"):
        lakes.migrate("parquet", unsigned, to, mode="in_place")
