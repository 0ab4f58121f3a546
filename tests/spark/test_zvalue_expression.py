"""Spark makes the same z-values as Arrow, byte for byte."""

import re

import pytest
from pyspark.sql import functions as F

from tests.kit.variants import slow_but
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.layout import zvalue as arrow
from zadapter.spark.zvalue_expression import zvalue

WIDTHS = {"text": [1, 8, 13], "binary": [8]}
MIXED = [
    (["tiny", "big", "text"], {"width": 5, "nulls": "first"}),
    (["double", "decimal_38_10", "ntz", "flag"], {"nulls": "last"}),
    (["big", "small", "day", "timestamp"], {"nulls": None}),
    (["tiny", "flag", "small"] * 4, {"nulls": "last"}),
]


def cases(table):
    """What to interleave, and how: each column alone, then several."""
    for name in table.column_names:
        for width in WIDTHS.get(name, [None]):
            yield [name], {"width": width, "nulls": None}
    yield from MIXED


@pytest.mark.parametrize(
    ("ansi", "zone"),
    [("true", "America/Los_Angeles"), *slow_but(of=[("false", "Asia/Kathmandu")])],
)
def test_spark_and_arrow_agree(rows, table, conf, ansi, zone):
    """Every type, every special value, whatever the session's settings."""
    conf({"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": zone})
    every = list(cases(table))

    keys = [zvalue(rows, names, **how).alias(f"{i}") for i, (names, how) in enumerate(every)]
    found = rows.select("row", *keys).toArrow().sort_by("row")

    for i, (names, how) in enumerate(every):
        expected = arrow.zvalue([table[name] for name in names], **how).to_pylist()
        both = enumerate(zip(found[f"{i}"].to_pylist(), expected, strict=True))
        wrong = [row for row, (key, expected_key) in both if key != expected_key]
        assert not wrong, (names, how, table.select(names).take(wrong[:3]).to_pylist())


def test_fields_of_structs_are_found_as_spark_finds_them(rows, table):
    """By dots, with backticks, ignoring case."""
    keys = zvalue(rows, ["A.b.`odd.name`", "TINY"])

    found = rows.select("row", keys.alias("key")).toArrow().sort_by("row")

    expected = arrow.zvalue([table["big"], table["tiny"]])
    assert found["key"].to_pylist() == expected.to_pylist()


def test_generated_methods_stay_small_enough_for_the_jit(rows, capsys):
    """The JIT leaves methods of more than 8 000 bytecodes to the interpreter."""
    rows.select(zvalue(rows, ["big", "timestamp"] * 5)).explain("codegen")

    sizes = re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)
    assert sizes
    assert max(map(int, sizes)) < 8000


@pytest.mark.parametrize("column", ["nosuch", "a.nosuch", "text.b"])
def test_unknown_columns_are_refused(rows, column):
    """With the names there are."""
    with pytest.raises(UnknownColumnError):
        zvalue(rows, ["big", column])


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("array(big)", "array<bigint>"),
        ("map(big, big)", "map<bigint,bigint>"),
        ("struct(big)", "struct<big:bigint>"),
        ("null", "void"),
        ("interval '1' day", "interval day"),
        ("parse_json('1')", "variant"),
        ("text collate UNICODE_CI", "string collate UNICODE_CI"),
        ("text", "string"),
        ("binary", "binary"),
    ],
)
def test_types_without_an_order_are_refused_by_name(rows, expression, type_):
    """And strings without a width."""
    with pytest.raises(UsageError, match=re.escape(type_)):
        zvalue(rows.select(F.expr(expression).alias("x")), ["x"])


def test_wrong_calls_are_refused(rows):
    """No columns, an unheard-of place for nulls, two columns of one name."""
    with pytest.raises(UsageError):
        zvalue(rows, [])
    with pytest.raises(UsageError, match="middle"):
        zvalue(rows, ["big"], nulls="middle")
    with pytest.raises(UsageError, match="ambiguous"):
        zvalue(rows.select("big", F.col("int").alias("big")), ["big"])
