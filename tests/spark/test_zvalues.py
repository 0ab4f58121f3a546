"""Spark makes the same z-values as Arrow, byte for byte."""

import random
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import cycle, islice

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from zadapter import zvalues
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.spark.zvalues import zvalue

WIDTHS = {"text": [1, 8, 13], "binary": [8]}
MIXED = [
    (["tiny", "big", "text"], {"width": 5, "nulls": "first"}),
    (["double", "decimal_38_10", "ntz", "flag"], {"nulls": "last"}),
    (["big", "small", "day", "timestamp"], {"nulls": None}),
    (["tiny", "flag", "small"] * 4, {"nulls": "last"}),
]
EPOCH = datetime.fromisoformat("1970-01-01")


def integers(bits, seeded):
    """Signed integers, the extremes among them."""
    edge = 1 << bits - 1
    return [-edge, -1, 0, 1, edge - 1, *(seeded.randrange(-edge, edge) for _ in range(40))]


def floats(type_, seeded):
    """Powers of two with their neighbours, every kind of special value, random bits."""
    info = np.finfo(type_)
    exponents = np.arange(int(info.minexp) - int(info.nmant), int(info.maxexp), 5)
    powers = np.exp2(exponents.astype(np.float64)).astype(type_)
    near = [np.nextafter(powers, type_(0)), powers, np.nextafter(powers, type_(np.inf))]
    unsigned = f"u{info.bits // 8}"
    drawn = [seeded.getrandbits(info.bits) for _ in range(500)]
    top = (1 << info.bits) - 1
    nans = [int(np.array(np.nan, type_).view(unsigned)), top, top >> 1]
    bits = np.array([*nans, *drawn], unsigned).view(type_)
    special = np.array([0.0, -0.0, np.inf, -np.inf, info.max, info.smallest_subnormal], type_)
    return np.concatenate([*near, -near[0], bits, special, -special])


def decimals(precision, scale, seeded):
    """Of all lengths, at the edges of 32, 64 and 128 bits, both signs."""
    limit = 10**precision
    edges = [0, 1, limit // 2, limit - 1, *(1 << bits for bits in (31, 63, 64, 65, 126))]
    drawn = [seeded.randrange(10 ** seeded.randint(1, precision)) for _ in range(60)]
    digits = [d for d in (*edges, *(e - 1 for e in edges), *drawn) if 0 <= d < limit]
    every = [(sign, tuple(map(int, str(d))), -scale) for d in digits for sign in (0, 1)]
    return pa.array([Decimal(value) for value in every], pa.decimal128(precision, scale))


def moments(seeded):
    """Before the Gregorian calendar, in gaps and overlaps of time zones, to the microsecond."""
    edges = [
        "0001-01-01",
        "1500-02-28T23:59:59.999999",
        "1582-10-10T12:00:00.000001",
        "1969-12-31T23:59:59.999999",
        "1970-01-01",
        "2024-03-10T02:30:00.000005",
        "2024-11-03T01:30:00",
        "9999-12-31T23:59:59.999999",
    ]
    drawn = [EPOCH + timedelta(microseconds=seeded.randrange(-(10**16), 10**17)) for _ in range(60)]
    return [*map(datetime.fromisoformat, edges), *drawn]


def texts(seeded):
    """Empty, one the start of another, padded, of one to four bytes a character."""
    edges = [
        "",
        "\0",
        "a",
        "a\0",
        "ab",
        "abcdefg",
        "abcdefgh",
        "abcdefghi",
        "é",
        "日本語の文字",
        "😀",
        "\x7f",
    ]
    drawn = [
        "".join(map(chr, seeded.choices(range(1, 0xD800), k=seeded.randrange(12))))
        for _ in range(40)
    ]
    return edges + drawn


def columns():
    """Arrow arrays of every type, each with a few values that may go wrong."""
    seeded = random.Random(7)
    times = moments(seeded)
    aware = [time.replace(tzinfo=timezone.utc) for time in times]
    yield "tiny", pa.array(integers(8, seeded), pa.int8())
    yield "small", pa.array(integers(16, seeded), pa.int16())
    yield "int", pa.array(integers(32, seeded), pa.int32())
    yield "big", pa.array(integers(64, seeded), pa.int64())
    yield "float", pa.array(floats(np.float32, seeded))
    yield "double", pa.array(floats(np.float64, seeded))
    for precision, scale in [(1, 0), (9, 2), (18, 18), (19, 0), (38, 0), (38, 10), (38, 38)]:
        yield f"decimal_{precision}_{scale}", decimals(precision, scale, seeded)
    yield "day", pa.array([*(time.date() for time in times), date.max])
    yield "timestamp", pa.array(aware, pa.timestamp("us", "UTC"))
    yield "ntz", pa.array(times, pa.timestamp("us"))
    yield "flag", pa.array([False, True])
    yield "text", pa.array(texts(seeded))
    yield "binary", pa.array([b"", b"\xff" * 20, b"\x80\0", *(t.encode() for t in texts(seeded))])


@pytest.fixture(scope="module")
def table():
    """One row number and one column a type, all of the same length, all with nulls."""
    arrays = {name: pa.concat_arrays([array, pa.nulls(1, array.type)]) for name, array in columns()}
    length = max(map(len, arrays.values()))
    # lengths without a common divisor pair every value of a column with many of the others
    places = {name: pa.array(islice(cycle(range(len(a))), length)) for name, a in arrays.items()}
    cycled = {name: array.take(places[name]) for name, array in arrays.items()}
    return pa.table({"row": pa.array(range(length)), **cycled})


@pytest.fixture(scope="module")
def rows(spark, table):
    """The same table in Spark; one more column holds others as fields."""
    schema = ", ".join(f"{field.name} {spark_type(field.type)}" for field in table.schema)
    nested = F.struct(F.struct(F.col("big").alias("odd.name")).alias("b"))
    # by checkpoint no longer local rows, over which a plan is never compiled
    return spark.createDataFrame(table, schema).withColumn("a", nested).localCheckpoint()


def spark_type(type_):
    """A type as Spark SQL writes it."""
    names = {
        "int8": "tinyint",
        "int16": "smallint",
        "int32": "int",
        "int64": "bigint",
        "date32[day]": "date",
        "timestamp[us, tz=UTC]": "timestamp",
        "timestamp[us]": "timestamp_ntz",
        "bool": "boolean",
    }
    return names.get(str(type_), str(type_).replace("decimal128", "decimal"))


@pytest.fixture
def conf(spark):
    """Sets session options, and takes them back."""
    before = {}

    def set_(options):
        for name, value in options.items():
            before.setdefault(name, spark.conf.get(name, None))
            spark.conf.set(name, value)

    yield set_
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def cases(table):
    """What to interleave, and how: each column alone, then several."""
    for name in table.column_names:
        for width in WIDTHS.get(name, [None]):
            yield [name], {"width": width, "nulls": None}
    yield from MIXED


@pytest.mark.parametrize(
    ("ansi", "zone"), [("true", "America/Los_Angeles"), ("false", "Asia/Kathmandu")]
)
def test_spark_and_arrow_agree(rows, table, conf, ansi, zone):
    """Every type, every special value, whatever the session's settings."""
    conf({"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": zone})
    every = list(cases(table))

    keys = [zvalue(rows, names, **how).alias(f"{i}") for i, (names, how) in enumerate(every)]
    found = rows.select("row", *keys).toArrow().sort_by("row")

    for i, (names, how) in enumerate(every):
        expected = zvalues.zvalue([table[name] for name in names], **how).to_pylist()
        both = enumerate(zip(found[f"{i}"].to_pylist(), expected, strict=True))
        wrong = [row for row, (key, expected_key) in both if key != expected_key]
        assert not wrong, (names, how, table.select(names).take(wrong[:3]).to_pylist())


def test_fields_of_structs_are_found_as_spark_finds_them(rows, table):
    """By dots, with backticks, ignoring case."""
    keys = zvalue(rows, ["A.b.`odd.name`", "TINY"])

    found = rows.select("row", keys.alias("key")).toArrow().sort_by("row")

    expected = zvalues.zvalue([table["big"], table["tiny"]])
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
