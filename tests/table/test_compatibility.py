"""Files of others may stay where they are only if they hold what would have been written."""

import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zadapter.table.compatibility import find_mismatch, has_ids

MICROS, MOMENT = pa.timestamp("us"), pa.timestamp("us", "UTC")
FITTING = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": MOMENT,
    "timestamp_ntz": MICROS,
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(18,0)": pa.decimal128(18, 0),
    "decimal(38,10)": pa.decimal128(38, 10),
}
ARRAY = {"type": "array", "elementType": "long", "containsNull": True}
STRUCT = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True}]}


def column(name, type_, *, nullable=True):
    return {"name": name, "type": type_, "nullable": nullable, "metadata": {}}


def footer(table, **options):
    """What a file says of itself."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


def of(*types, **options):
    """The footer of a file with nothing but columns c0, c1, … of these types."""
    schema = pa.schema([(f"c{number}", type_) for number, type_ in enumerate(types)])
    return footer(schema.empty_table(), **options)


def reason(type_, arrow, **options):
    return find_mismatch(of(arrow, **options), [column("c0", type_)], set())


@pytest.mark.parametrize("type_", FITTING)
def test_every_type_fits_as_it_is_written(type_):
    assert reason(type_, FITTING[type_]) is None


@pytest.mark.parametrize("type_", FITTING)
def test_no_type_fits_as_another(type_):
    """A reader that goes by names would take the one's bytes for the other's values."""
    others = {
        said for said, arrow in FITTING.items() if said != type_ and reason(type_, arrow) is None
    }

    assert others == set()


@pytest.mark.parametrize("type_", [type_ for type_ in FITTING if type_.startswith("decimal")])
def test_decimals_fit_whatever_holds_them(type_):
    """Whole numbers or bytes: the precision tells readers which."""
    options = {"store_decimal_as_integer": True}

    assert reason(type_, FITTING[type_], **options) is None


@pytest.mark.parametrize(
    ("type_", "arrow", "options"),
    [
        ("integer", pa.uint32(), {}),
        ("long", pa.uint64(), {}),
        ("byte", pa.uint8(), {}),
        ("long", pa.int32(), {}),
        ("integer", pa.int64(), {}),
        ("short", pa.int32(), {}),
        ("double", pa.float32(), {}),
        ("timestamp", pa.timestamp("ms", "UTC"), {}),
        ("timestamp", pa.timestamp("ns", "UTC"), {}),
        ("timestamp_ntz", pa.timestamp("ms"), {}),
        ("timestamp_ntz", pa.timestamp("ns"), {}),
        ("timestamp", MOMENT, {"use_deprecated_int96_timestamps": True}),
        ("timestamp", MICROS, {}),
        ("timestamp_ntz", MOMENT, {}),
        ("decimal(9,2)", pa.decimal128(9, 3), {}),
        ("decimal(9,2)", pa.decimal128(10, 2), {}),
        ("long", pa.time64("us"), {}),
        ("string", pa.binary(), {}),
        ("binary", pa.string(), {}),
        ("binary", pa.binary(16), {}),
        ("string", pa.uuid(), {}),
        ("binary", pa.float16(), {}),
    ],
)
def test_what_others_write_differently_does_not_fit(type_, arrow, options):
    """The reason names the column, and both types."""
    said = reason(type_, arrow, **options)

    assert said.startswith("its column c0 has type ")
    assert said.endswith(f", not {type_}")


def test_the_reason_shows_what_is_there():
    int96 = reason("timestamp", MOMENT, use_deprecated_int96_timestamps=True)

    assert int96 == "its column c0 has type INT96, not timestamp"
    assert reason("long", pa.uint64()) == (
        "its column c0 has type INT64 Int(bitWidth=64, isSigned=false), not long"
    )


NESTED = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.struct([("x", pa.int64())])))]))
SAID = {
    "type": "array",
    "elementType": {
        "type": "struct",
        "fields": [
            column("m", {"type": "map", "keyType": "string", "valueType": STRUCT}),
        ],
    },
}


def test_nested_types_fit_as_they_are_written():
    assert reason(SAID, NESTED) is None


def test_nested_types_are_looked_into():
    deep = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.struct([("x", pa.int32())])))]))

    assert reason(SAID, deep) == (
        "its column c0.list.element.m.key_value.value.x has type INT32, not long"
    )


def test_a_missing_field_is_named():
    """It may have been added since, or be called otherwise in the file."""
    wider = STRUCT | {"fields": [*STRUCT["fields"], column("y", "long")]}

    assert reason(wider, pa.struct([("x", pa.int64())])) == "it lacks column c0.y"


def test_lists_of_old_writers_do_not_fit():
    """The spec has a name for what is between a list and its elements."""
    items = pa.list_(pa.field("item", pa.int64()))
    found = reason(ARRAY, items, use_compliant_nested_type=False)

    assert found == "it lacks column c0.list.element"
    assert reason(ARRAY, items, use_compliant_nested_type=True) is None


def test_a_column_that_is_not_there_is_null():
    """Unless it never is; values of partitions are in no file."""
    missing = column("d", "date", nullable=False)
    there = of(pa.int64())

    assert find_mismatch(there, [column("c0", "long"), column("d", "date")], set()) is None
    assert find_mismatch(there, [missing], set()) == "it lacks the non-nullable column 'd'"
    assert find_mismatch(there, [missing], {"d"}) is None


def test_a_column_may_be_there_under_another_name():
    """In other case, or as a writer has changed it; the values of partitions are elsewhere."""
    wanted = [column("a-b", "long")]

    assert find_mismatch(footer(pa.table({"a_x2Db": [1]})), wanted, set()) == (
        "it lacks column 'a-b', but has an unknown column 'a_x2Db'"
    )
    assert find_mismatch(footer(pa.table({"A-b": [1]})), wanted, set()) is not None
    assert find_mismatch(footer(pa.table({"A-b": [1]})), wanted, {"a-b"}) is None


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: pa.field("s", pa.struct([f]))])
def test_ids_of_columns_are_found_however_deep(wrap):
    numbered = pa.field("x", pa.int64(), metadata={b"PARQUET:field_id": b"7"})

    assert has_ids(footer(pa.schema([wrap(numbered)]).empty_table()))
    assert not has_ids(footer(pa.schema([wrap(pa.field("x", pa.int64()))]).empty_table()))


def test_more_columns_than_are_asked_for_do_no_harm():
    assert find_mismatch(of(pa.int64(), pa.uint64()), [column("c0", "long")], set()) is None


@pytest.mark.parametrize("calendar", ["legacyDateTime", "legacyINT96"])
def test_days_of_the_julian_calendar_do_not_fit(calendar):
    """Spark says so beside the schema, and no other reader looks for it."""
    noted = pa.schema([("c0", pa.date32())], {f"org.apache.spark.{calendar}": ""})

    assert "Julian" in find_mismatch(footer(noted.empty_table()), [column("c0", "date")], set())


def test_names_may_have_dots():
    """Of a column a.b, a footer says the same as of the field b of a column a."""
    odd = pa.schema([("a.b", pa.int32())])
    found = find_mismatch(footer(odd.empty_table()), [column("a.b", "long", nullable=False)], set())

    assert found == "its column a.b has type INT32, not long"
    assert find_mismatch(footer(odd.empty_table()), [column("a.b", "integer")], set()) is None


def test_columns_that_a_footer_cannot_tell_apart_do_not_fit():
    both = pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])

    assert "have the same path" in find_mismatch(
        footer(both.empty_table()), [column("a.b", "long")], set()
    )


def test_values_do_not_matter(tmp_path):
    """A real file, as pyarrow writes it."""
    path = tmp_path / "file.parquet"
    rows = {"c0": pa.array([Decimal("1.20"), None]), "c1": pa.array([uuid.uuid4().hex] * 2)}
    pq.write_table(pa.table(rows), path)
    columns = [column("c0", "decimal(3,2)"), column("c1", "string", nullable=False)]

    assert find_mismatch(pq.read_metadata(path), columns, set()) is None
