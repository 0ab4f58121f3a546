"""How files, columns and long predicates are pruned; the ids are those of the catalogue."""

import math

import pyarrow as pa
import pytest

from tests.kit.file_tables import ANY, asked, bounds, outcomes, table_of
from zadapter.predicates.predicate import And, Comparison, In, Not, Or, StartsWith
from zadapter.table.file_stats import Bounds, column_type


def test_stats_are_found_by_the_columns_text():
    """Nested columns and odd names are looked up as the file table names them."""
    nested = pa.struct([("b c", pa.int32()), ("D", pa.int32())])
    columns = {"a": nested, "a.D": pa.int32(), "`": pa.int32()}
    stats = {"a.`b c`": bounds(1, 1), "a.D": bounds(2, 2), "`a.D`": bounds(3, 3)}
    table = table_of({**stats, "````": bounds(4, 4)}, **columns)

    assert outcomes(
        "(a['b c'] == 1) & (a.D == 2) & (table['a.D'] == 3) & (table['`'] == 4)", table, **columns
    ) == ["T"]
    assert outcomes("(a['b c'] == 2) | (a.D == 3) | (table['a.D'] == 4)", table, **columns) == ["F"]


@pytest.mark.parametrize("other", [pa.int64(), pa.string(), pa.float32(), pa.decimal128(9, 0)])
def test_stats_of_another_type_are_not_used(other):
    """The column may have been dropped and added again, or widened."""
    stale = table_of({"x": ANY}, {"x": bounds(None, None)}, x=other)
    value = pa.scalar(7, pa.int8()).cast(other)
    table = table_of({"x": bounds(value, value)}, x=other)

    assert outcomes("x == 5", table, x=pa.int32()) == ["TFN"]
    assert outcomes("x.isin(5, 6)", table, x=pa.int32()) == ["TFN"]
    assert outcomes("x.same(5)", stale, x=pa.int32()) == ["TF", "TF"]


def test_partitions_of_another_type_are_not_used():
    """What was written as text is no number to compare with."""
    table = table_of({"x": "7"}, partition=["x"], x=pa.string())

    assert outcomes("x == 5", table, x=pa.int32()) == ["TFN"]
    assert outcomes("x.isnull()", table, x=pa.int32()) == ["F"]


def test_wide_bounds_with_an_unknown_count_of_nulls():
    """Rows deleted later may have been the bounds, or all the nulls."""
    wide = bounds(1, 9, nulls=None, kind=Bounds.WIDENED)

    assert asked("x > 9", pa.int32(), wide) == ["FN"]
    assert asked("(x >= 1) & (x <= 9)", pa.int32(), wide) == ["TN"]
    assert asked("x.isnull()", pa.int32(), wide) == ["TF"]


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 100_000])
def test_in_skips_the_files_between_its_values(count):
    """Lists of any length are looked up value by value, not by their extremes."""
    values = tuple(pa.scalar(10 * n, pa.int32()) for n in reversed(range(count)))
    files = [bounds(0, 0), bounds(1, 9), bounds(5, 10 * count), bounds(10 * count - 9, None)]
    table = table_of(*({"x": stats} for stats in files), x=pa.int32())
    first, second = ("T" if count > 0 else "F"), ("TF" if count > 1 else "F")

    assert outcomes(In(("x",), values), table) == [first, "F", second, "F"]
    assert outcomes(Not(In(("x",), values)), table)[1] == "T"


def test_deep_trees_do_not_exhaust_the_stack():
    """Trees built by programs may be as deep as they are long."""
    table = table_of({"x": bounds(1, 1)}, {"x": bounds(2, 2)}, x=pa.int32())
    one = Comparison(("x",), "=", pa.scalar(1, pa.int32()))
    deep = one
    for _ in range(3_000):
        deep = Or((And((Not(Not(deep)), one)), one))

    assert outcomes(deep, table) == ["T", "F"]


def test_booleans_and_binaries():
    """False is below true; bytes are unsigned."""
    cut = bounds(b"\x7f", b"\x81", kind=Bounds.WIDENED)

    no, yes = False, True

    assert asked("x", pa.bool_(), bounds(no, no), bounds(yes, yes)) == ["F", "T"]
    assert asked("~x", pa.bool_(), bounds(no, yes)) == ["TF"]
    assert asked("x > b'\\x7e'", pa.binary(), cut) == ["T"]
    assert asked("x == b'\\x80'", pa.binary(), cut) == ["TF"]
    assert asked("x >= b'\\x82'", pa.binary(), cut) == ["F"]


@pytest.mark.parametrize("condition", ["p == ''", "p == '01'", "p == '__HIVE_DEFAULT_PARTITION__'"])
def test_partition_values_are_taken_literally(condition):
    """An empty string is not null, and text is no number."""
    values = ["", None, "__HIVE_DEFAULT_PARTITION__", "01", "1"]
    table = table_of(*({"p": value} for value in values), partition=["p"], p=pa.string())

    found = outcomes(condition, table, p=pa.string())

    assert found == ["N" if v is None else "T" if f"'{v}'" in condition else "F" for v in values]
    assert outcomes("p.isnull()", table, p=pa.string()) == ["F", "T", "F", "F", "F"]


def test_partitions_of_every_value_of_a_double():
    """NaN is a partition of its own, above all others; -0.0 is 0.0."""
    values = [-0.0, 1.0, math.nan, None]
    table = table_of(*({"p": value} for value in values), partition=["p"], p=pa.float64())

    assert outcomes("p > 0", table, p=pa.float64()) == ["F", "T", "T", "N"]
    assert outcomes("p.isin(0, nan)", table, p=pa.float64()) == ["T", "F", "T", "N"]


@pytest.mark.parametrize("condition", ["x == 1", "x.isnull()", "true", "unknown", "~(x == 1)"])
def test_a_file_without_rows_is_never_read(condition):
    """No row has any truth value, whatever the stats say."""
    assert asked(condition, pa.int32(), ANY, bounds(1, 1), rows=0) == ["", ""]


@pytest.mark.parametrize(
    "impossible",
    [
        bounds(1.0, 1.0, nulls=11),
        bounds(1.0, 1.0, nulls=6, nans=6),
        bounds(1.0, 1.0, nulls=None, nans=11),
        bounds(1.0, 1.0, nulls=0, nans=11),
    ],
)
def test_impossible_stats_are_distrusted(impossible):
    """Stats that count more values than there are rows are of some other file."""
    assert asked("x == 5", pa.float64(), impossible) == ["TFN"]


def test_bounds_the_wrong_way_round_are_distrusted():
    """What lies between them is everything, not nothing."""
    assert asked("x == 5", pa.int32(), bounds(9, 1)) == ["TF"]


def test_the_partition_wins_over_stats():
    """The data file may hold the column too; Spark reads the partition's value."""
    table = table_of({"p": 1}, partition=["p"], p=pa.int32())
    stats = pa.array([{"p": bounds(5, 5)}], pa.struct({"p": column_type(pa.int32())}))
    table = table.set_column(table.column_names.index("stats"), "stats", stats)

    assert outcomes("p == 1", table, p=pa.int32()) == ["T"]
    assert outcomes("p == 5", table, p=pa.int32()) == ["F"]


def test_prefixes_of_any_string_type():
    """Every string begins with the empty one; only strings have prefixes."""
    for type_ in (pa.string(), pa.large_string()):
        table = table_of({"x": bounds("ab", "ac")}, x=type_)

        assert outcomes(StartsWith(("x",), "a"), table) == ["T"]
        assert outcomes(StartsWith(("x",), "b"), table) == ["F"]
        assert outcomes(StartsWith(("x",), ""), table) == ["T"]
    table = table_of({"x": bounds(b"ab", b"ac")}, x=pa.binary())

    assert outcomes(StartsWith(("x",), "b"), table) == ["TFN"]


def test_a_table_in_many_chunks_is_read_as_one():
    """How Arrow stores the table makes no difference, nor does having no files."""
    one = table_of({"x": bounds(1, 1)}, x=pa.int32())
    two = table_of({"x": bounds(2, 2)}, x=pa.int32())

    assert outcomes("x == 1", pa.concat_tables([one, two, one]), x=pa.int32()) == ["T", "F", "T"]
    assert outcomes("x == 1", one.slice(0, 0), x=pa.int32()) == []
    assert outcomes("x == 1", pa.concat_tables([one, two]).slice(1), x=pa.int32()) == ["F"]
