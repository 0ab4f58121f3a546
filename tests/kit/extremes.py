"""Arrow values of every type, including extreme ones."""

import random
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import cycle, islice

import numpy as np
import pyarrow as pa

from zadapter.spark.compat.spark_api import from_arrow

EPOCH = datetime.fromisoformat("1970-01-01")


def integers(bits, seeded):
    """Draw signed integers, including the extremes."""
    edge = 1 << bits - 1
    return [-edge, -1, 0, 1, edge - 1, *(seeded.randrange(-edge, edge) for _ in range(40))]


def floats(type_, seeded):
    """Return powers of two with their neighbors, special values of every kind, and random bits."""
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
    """Draw decimals of all lengths, near the limits of 32, 64 and 128 bits, with both signs."""
    limit = 10**precision
    edges = [0, 1, limit // 2, limit - 1, *(1 << bits for bits in (31, 63, 64, 65, 126))]
    drawn = [seeded.randrange(10 ** seeded.randint(1, precision)) for _ in range(60)]
    digits = [d for d in (*edges, *(e - 1 for e in edges), *drawn) if 0 <= d < limit]
    every = [(sign, tuple(map(int, str(d))), -scale) for d in digits for sign in (0, 1)]
    return pa.array([Decimal(value) for value in every], pa.decimal128(precision, scale))


def moments(seeded):
    """Return timestamps of old calendars, in gaps and overlaps of time zones, and random ones."""
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
    """Return strings: empty, prefixes of others, padded, with one to four bytes per character."""
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
    """Return Arrow arrays of every type, each with a few extreme values."""
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


def table():
    """Return a table with a row number and one column per type, all with nulls."""
    arrays = {name: pa.concat_arrays([array, pa.nulls(1, array.type)]) for name, array in columns()}
    length = max(map(len, arrays.values()))
    # lengths without a common divisor pair every value of a column with many of the others
    places = {name: pa.array(islice(cycle(range(len(a))), length)) for name, a in arrays.items()}
    cycled = {name: array.take(places[name]) for name, array in arrays.items()}
    return pa.table({"row": pa.array(range(length)), **cycled})


def ddl(schema):
    """Return a schema as Spark SQL's DDL."""
    return ", ".join(f"{name} {type_}" for name, type_ in _types(schema))


def _types(schema):
    """Return each column with the name that Spark SQL has for its type."""
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
    texts = [str(field.type).replace("decimal128", "decimal") for field in schema]
    pairs = zip(schema.names, texts, strict=True)
    return [(name, names.get(text, text)) for name, text in pairs]


def in_spark(spark, table):
    """Return the table in Spark, whose zone is UTC; PySpark 3.5 takes no Arrow table itself."""
    casts = [f"CAST({column} AS {type_}) {column}" for column, type_ in _types(table.schema)]
    return from_arrow(spark, table).selectExpr(*casts)
