"""The same rows give the same numbers, other rows give others."""

from decimal import Decimal

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from zadapter.spark.checksum import (
    RowTotals,
    add_totals,
    observe_totals,
    read_observation,
    sum_by_file,
)
from zadapter.spark.checksum import compute_totals as whole_of

NESTED = (
    "id int, a array<int>, s struct<x: int, y: int>, m map<string, int>, "
    "deep array<struct<m: map<int, struct<l: array<array<string>>, d: decimal(20,3)>>, b: binary>>"
)
DEEP = [
    ({1: ([["x", None], None, []], Decimal("1.500")), 2: None}, b"\x00"),
    (None, None),
    None,
]
ROWS = [
    (1, [1, None], (1, None), {"a": 1, "b": None}, DEEP),
    (2, [], None, {}, []),
    (None, None, (None, None), None, None),
]


def of(spark, rows, schema):
    return whole(spark.createDataFrame(rows, schema))


def whole(rows, conditions=()):
    return add_totals(list(sum_by_file(rows, conditions).values()), len(conditions))


def test_order_and_partitions_do_not_matter(spark, rows):
    """Of rows of every type, nested ones and nasty values among them."""
    found = whole(rows)

    assert found.rows == rows.count()
    assert whole(rows.repartition(5).orderBy(F.rand(1))) == found
    assert whole(rows.coalesce(1)) == found


def test_files_add_up_to_the_whole(spark, rows, tmp_path):
    """Whatever the files, and whoever has how many rows."""
    kept = rows.select(*(c for c, t in rows.dtypes if t != "interval"))
    conditions = [F.lit(True), F.lit(None).cast("boolean"), F.rand(1) < 0]  # noqa: FBT003
    for number in (1, 3):
        kept.repartition(number).write.mode("overwrite").parquet(str(tmp_path / str(number)))
    one, three = (spark.read.parquet(str(tmp_path / str(n))) for n in (1, 3))

    found = sum_by_file(three, conditions)

    assert len(found) == 3
    assert all(name.endswith(".parquet") for name in found)
    assert add_totals(list(found.values()), 3) == whole(one, conditions)
    assert whole(one, conditions).matches == (rows.count(), 0, 0)


def test_no_rows_add_up_to_nothing(spark):
    nothing = spark.createDataFrame([], "a int")

    assert whole(nothing, [F.lit(True)]) == RowTotals(0, "0" * 48, (0,))  # noqa: FBT003
    assert add_totals([], 2) == RowTotals(0, "0" * 48, (0, 0))


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_a_row_that_is_lost_or_doubled_is_noticed(spark, number):
    """Even if there are as many rows as before."""
    lost = ROWS[:number] + ROWS[number + 1 :]
    made = [of(spark, rows, NESTED) for rows in (ROWS, lost, [*ROWS, ROWS[number]])]
    swapped = of(spark, [*lost, ROWS[number - 1]], NESTED)

    assert len({each.checksum for each in [*made, swapped]}) == 4


def test_rows_that_come_in_pairs_are_noticed(spark):
    """They cancel out where bits are only flipped."""
    pairs = [[(1,), (1,)], [(2,), (2,)], [(1,), (2,)], [(None,), (None,)]]

    assert len({of(spark, rows, "a int").checksum for rows in pairs}) == 4


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ("a int, b int", [(None, 1), (1, None), (None, None), (1, 1), (0, 1)]),
        ("a array<int>", [([None, 1],), ([1, None],), ([1],), ([],), (None,), ([None],)]),
        ("a array<array<int>>", [([[1], []],), ([[], [1]],), ([[1]],), ([[1], None],), ([[]],)]),
        (
            "a struct<x: int, y: int>",
            [((None, 1),), ((1, None),), ((None, None),), (None,), ((1, 1),)],
        ),
        (
            "a map<int, int>",
            [({1: 2},), ({2: 1},), ({1: None},), ({},), (None,), ({1: 2, 2: 1},), ({1: 1, 2: 2},)],
        ),
        ("a array<struct<x: int, y: int>>", [([(None, 1)],), ([(1, None)],), ([None],), ([],)]),
        ("a array<int>, b array<int>", [([1], []), ([], [1]), ([1], None), (None, [1])]),
        ("a string", [("",), (None,), ("a",), ("a ",), ("A",), ("null",)]),
        ("a string, b string", [("ab", "c"), ("a", "bc"), ("", "abc"), (None, "abc")]),
        ("a binary", [(b"",), (None,), (b"\x00",), (b"\x00\x00",)]),
        ("a boolean", [(True,), (False,), (None,)]),
        ("a double", [(0.0,), (1e-300,), (float("nan"),), (None,), (float("inf"),)]),
        ("a decimal(38,2)", [(Decimal("1.00"),), (Decimal("-1.00"),), (Decimal("0.01"),)]),
        ("a byte, b byte", [(1, 0), (0, 1), (1, 1), (0, 0)]),
    ],
)
def test_each_value_has_its_own_checksum(spark, tmp_path, schema, values):
    """Wherever a null, an element or a field moves to; each is in a file of its own."""
    rows = spark.createDataFrame(
        [(n, *value) for n, value in enumerate(values)], f"n int, {schema}"
    )
    rows.repartition(1).write.partitionBy("n").parquet(str(tmp_path / "t"))

    found = sum_by_file(spark.read.parquet(str(tmp_path / "t")).drop("n"), [])

    assert len(found) == len({each.checksum for each in found.values()}) == len(values)


@pytest.mark.parametrize("type_", ["boolean", "byte", "int", "long", "float", "double", "string"])
def test_values_are_not_swapped_between_rows(spark, type_):
    rows = spark.createDataFrame([(1, 0), (0, 1)], "a int, b int")
    same = spark.createDataFrame([(1, 1), (0, 0)], "a int, b int")
    columns = [F.col(name).cast(type_) for name in ("a", "b")]

    assert whole(rows.select(*columns)).checksum != whole(same.select(*columns)).checksum


def test_names_do_not_matter(spark):
    """Odd ones neither."""
    plain = T.StructType.fromDDL("a struct<x: int>, b int")
    odd = T.StructType.fromDDL("`a.``b` struct<`x.y`: int>, `1 ä` int")

    assert of(spark, [((1,), 2)], plain) == of(spark, [((1,), 2)], odd)


def test_conditions_count_what_is_true(spark):
    """A null is not; each condition by itself."""
    rows = spark.createDataFrame([(1,), (2,), (None,)], "a int")
    conditions = [F.col("a") > 1, F.col("a") <= 2, F.col("a").isNull(), ~(F.col("a") > 1)]

    assert whole(rows, conditions).matches == (1, 2, 1, 1)
    assert whole(rows, conditions).checksum == whole(rows).checksum


def test_texts_that_a_collation_takes_for_equal_are_not_the_same(spark):
    """Spark's hash of them is, so a rewrite could change them unseen."""
    rows = spark.createDataFrame([("a",)], "a string")
    lower, upper = (
        rows.selectExpr(f"{text} COLLATE UTF8_LCASE AS a") for text in ("a", "upper(a)")
    )

    assert lower.join(upper, "a").count() == 1
    assert whole_of(lower) != whole_of(upper)


def test_variants_have_checksums(spark):
    """Spark hashes none; what is in them counts, nested ones too."""
    rows = [
        spark.sql(f"SELECT {variant} AS v, array({variant}) AS w")
        for variant in ("parse_json('{\"a\": 1}')", "parse_json('{\"a\": 2}')", "parse_json(NULL)")
    ]

    assert len({whole_of(each).checksum for each in rows}) == 3
    assert whole_of(spark.sql("SELECT NULL AS void")).rows == 1


def test_what_passes_by_is_what_a_look_finds(rows):
    """Nobody need read rows twice to add them up; columns that are not asked for do not count."""
    columns = [name for name in rows.columns if name != "row"]
    watching, name = observe_totals(rows, columns)
    nothing, other = observe_totals(rows.where("row < 0"), columns)

    assert watching.toArrow().num_rows == rows.count()
    assert nothing.toArrow().num_rows == 0
    assert watching.columns == rows.columns
    assert (
        read_observation(watching, name)
        == whole(rows.select(columns))
        == whole_of(rows.drop("row"))
    )
    assert read_observation(nothing, other) == RowTotals(0, "0" * 48, ())
    assert read_observation(rows, name) is None


def test_sums_do_not_overflow(spark):
    """A hash has 64 bits; a whole number of Spark, too."""
    rows = spark.range(100_000)
    parts = [whole(rows.where(F.col("id") % 3 == n)) for n in range(3)]

    assert add_totals(parts, 0) == whole(rows)
    assert int(whole(rows).checksum[:32], 16) > 1 << 64


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0D", "-0D"),
        ("0F", "-0F"),
        ("array(named_struct('x', 0D))", "array(named_struct('x', -0D))"),
        ("cast(1.5D AS variant)", "cast(1.5BD AS variant)"),
        ("cast('2020-01-01' AS variant)", "cast(date'2020-01-01' AS variant)"),
    ],
)
def test_values_that_spark_takes_for_equal_differ(spark, one, other):
    """The signs of zeros, and the types within variants."""
    found = [whole_of(spark.sql(f"SELECT {value} AS v")) for value in (one, other)]

    assert found[0] != found[1]
