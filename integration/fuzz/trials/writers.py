"""Folders of Parquet files that Polars, pandas, DuckDB and pyarrow write and read back."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from integration.fuzz.trials.tally import Row

ROWS, SHIFT = 400, 1_000_000
START = datetime(2020, 1, 1)  # noqa: DTZ001 - without a zone, as most files have it


def hours(key: int) -> datetime:
    return START + timedelta(hours=key)


VALUES: Mapping[str, Callable[[int], Any]] = {
    "int": lambda key: key - 200,
    "small": lambda key: key % 120,
    "large": lambda key: 2**64 - 1 - key,
    "real": lambda key: float("nan") if key % 5 == 0 else key / 4,
    "decimal": lambda key: Decimal(key) / 100,
    "wide": lambda key: Decimal(10**35 + key),
    "day": lambda key: date(1900, 1, 1) + timedelta(key),
    "moment": hours,
    "time": lambda key: time(key % 24, key % 60, 3, 5),
    "duration": lambda key: timedelta(seconds=key),
    "text": lambda key: f"t{key}é" * 3,
    "letter": lambda key: "abc"[key % 3],
    "bytes": lambda key: b"\xff%d" % key,
    "uuid": lambda key: UUID(int=key).bytes,
    "flag": lambda key: key % 2 == 0,
    "nothing": lambda key: None,
    "list": lambda key: [key, None, key + 1][: key % 4],
    "pair": lambda key: [key, key],
    "struct": lambda key: {"x": key, "y": str(key)},
    "structs": lambda key: [{"x": key, "y": None}] * (key % 3),
    "map": lambda key: [(str(key), key)],
}
_PL, _PA = pl, pa
POLARS: Mapping[str, tuple[str, Any]] = {
    "i8": ("small", pl.Int8), "i64": ("int", pl.Int64), "u8": ("small", pl.UInt8),
    "u16": ("small", pl.UInt16), "u32": ("small", pl.UInt32), "u64": ("large", pl.UInt64),
    "f32": ("real", pl.Float32), "f64": ("real", pl.Float64), "dec": ("decimal", pl.Decimal(12, 2)),
    "dec38": ("wide", pl.Decimal(38, 0)), "date": ("day", pl.Date),
    "ms": ("moment", pl.Datetime("ms")), "us": ("moment", pl.Datetime("us")),
    "utc": ("moment", pl.Datetime("us", "UTC")), "string": ("text", pl.String),
    "binary": ("bytes", pl.Binary), "cat": ("letter", pl.Categorical),
    "enum": ("letter", pl.Enum(["c", "a", "b"])), "bool": ("flag", pl.Boolean),
    "null": ("nothing", pl.Null), "list": ("list", pl.List(pl.Int64)),
    "array": ("pair", pl.Array(pl.Int64, 2)),
    "struct": ("struct", pl.Struct({"x": pl.Int64, "y": pl.String})),
    "structs": ("structs", pl.List(pl.Struct({"x": pl.Int64, "y": pl.String}))),
}  # fmt: skip
POLARS_ODD: Mapping[str, tuple[str, Any]] = {
    "ns": ("moment", pl.Datetime("ns")), "time": ("time", pl.Time), "i128": ("int", pl.Int128),
    "dur_us": ("duration", pl.Duration("us")), "dur_ns": ("duration", pl.Duration("ns")),
}  # fmt: skip
ARROW: Mapping[str, tuple[str, Any]] = {
    "i8": ("small", pa.int8()), "u16": ("small", pa.uint16()), "u64": ("large", pa.uint64()),
    "f64": ("real", pa.float64()), "dec32": ("decimal", pa.decimal32(9, 2)),
    "dec": ("wide", pa.decimal128(38, 0)), "date32": ("day", pa.date32()),
    "date64": ("day", pa.date64()), "s": ("moment", pa.timestamp("s")),
    "tokyo": ("moment", pa.timestamp("us", "Asia/Tokyo")), "string": ("text", pa.large_string()),
    "view": ("text", pa.string_view()), "binary_view": ("bytes", pa.binary_view()),
    "dict": ("letter", pa.dictionary(pa.int32(), pa.string())), "fixed": ("uuid", pa.binary(16)),
    "large_list": ("list", pa.large_list(pa.int64())), "pair": ("pair", pa.list_(pa.int64(), 2)),
    "map": ("map", pa.map_(pa.string(), pa.int64())), "null": ("nothing", pa.null()),
    "struct": ("struct", pa.struct({"x": pa.int64(), "y": pa.string()})),
}  # fmt: skip
ARROW_ODD: Mapping[str, tuple[str, Any]] = {
    "ns": ("moment", pa.timestamp("ns")), "t32": ("time", pa.time32("ms")),
    "t64": ("time", pa.time64("us")), "duration": ("duration", pa.duration("us")),
    "uuid": ("uuid", pa.uuid()), "f16": ("small", pa.float16()),
    "dec256": ("wide", pa.decimal256(50, 2)),
    "durations": ("duration", pa.struct({"d": pa.duration("ms")})),
}  # fmt: skip
PANDAS: Mapping[str, tuple[str, Any]] = {
    "Int64": ("int", "Int64"), "UInt8": ("small", "UInt8"), "Float64": ("real", "Float64"),
    "string": ("text", "string"), "category": ("letter", "category"),
    "boolean": ("flag", "boolean"), "us": ("moment", "datetime64[us]"), "object": ("text", object),
    "lists": ("list", object), "days": ("day", object), "bytes": ("bytes", object),
    "decimals": ("decimal", object), "utc": ("moment", "datetime64[us, UTC]"),
}  # fmt: skip
PANDAS_ODD: Mapping[str, tuple[str, Any]] = {
    "ns": ("moment", "datetime64[ns]"), "timedelta": ("duration", "timedelta64[us]"),
}  # fmt: skip
_K = "TIMESTAMP '2020-01-01' + INTERVAL (k) HOUR"
DUCKDB: Mapping[str, str] = {
    "tiny": "(k % 100)::TINYINT", "utiny": "(k % 250)::UTINYINT", "uint": "k::UINTEGER",
    "ubig": "(18446744073709551615 - k)::UBIGINT", "huge": "k::HUGEINT", "float": "(k / 7)::FLOAT",
    "double": "CASE WHEN k % 5 = 0 THEN 'nan'::DOUBLE ELSE k / 7 END", "dec": "(k/7)::DECIMAL(9,2)",
    "dec38": "(k / 7)::DECIMAL(38, 10)", "date": "DATE '1900-01-01' + k::INT", "ts": _K,
    "ts_s": f"({_K})::TIMESTAMP_S", "ts_ms": f"({_K})::TIMESTAMP_MS", "blob": "('x' || k)::BLOB",
    "text": "'x' || k", "enum": "(['a','b','c'][1 + k % 3])::ENUM('c', 'a', 'b')",
    "bit": "(k % 8)::INT::BIT", "json": "('{\"a\":' || k || '}')::JSON", "bool": "k % 2 = 0",
    "list": "[k, NULL, k]", "struct": "{'x': k, 'y': 'z'}", "map": "MAP {'a': k}",
    "union": "union_value(n := k)", "null": "NULL",
}  # fmt: skip
DUCKDB_ODD: Mapping[str, str] = {
    "ns": f"({_K})::TIMESTAMP_NS", "time": "TIME '00:00' + INTERVAL (k) SECOND",
    "timetz": "(TIME '00:00' + INTERVAL (k) SECOND)::TIMETZ", "interval": "INTERVAL (k) SECOND",
    "uuid": "md5(k::VARCHAR)::UUID",
}  # fmt: skip


class Polars:
    """Polars with its native Parquet writer and reader."""

    kinds, odd = POLARS, POLARS_ODD
    codecs = ("zstd", "snappy", "lz4", "gzip", "uncompressed")

    def write(self, folder: Path, keys: list[int], kinds: Sequence[str], draw: Random) -> None:
        every = {**POLARS, **POLARS_ODD}
        columns = {
            kind: pl.Series(_values(keys, every[kind][0]), dtype=_bare(every[kind][1]))
            for kind in kinds
        }
        frame = pl.DataFrame({"k": keys, "p": [key % 3 for key in keys], **columns})
        zoned = [pl.col(kind).dt.replace_time_zone("UTC") for kind in kinds if kind == "utc"]
        frame = frame.with_columns(*zoned)
        options = {
            "compression": draw.choice(self.codecs),
            "row_group_size": draw.choice([30, 999]),
        }
        if draw.random() < 0.5:
            for (value,), part in frame.group_by("p"):
                place = folder / f"p={value}"
                place.mkdir()
                part.drop("p").write_parquet(place / "0.parquet", **options)
        else:
            for at in range(0, len(keys), 100):
                frame[at : at + 100].write_parquet(folder / f"{at}.parquet", **options)

    def read(self, paths: Sequence[str]) -> list[Row]:
        return pl.read_parquet(list(paths), hive_partitioning=True).to_dicts()


class Arrow:
    """pyarrow's writer and reader."""

    kinds, odd = ARROW, ARROW_ODD
    codecs = ("zstd", "snappy", "lz4", "gzip", "none")

    def write(self, folder: Path, keys: list[int], kinds: Sequence[str], draw: Random) -> None:
        every = {**ARROW, **ARROW_ODD}
        columns = {kind: _array(_values(keys, every[kind][0]), every[kind][1]) for kind in kinds}
        rows = pa.table({"k": keys, "p": [key % 3 for key in keys], **columns})
        views = {"view", "binary_view"} & set(kinds)  # pyarrow cannot partition by these types
        pq.write_to_dataset(
            rows, folder, partition_cols=["p"] if draw.random() < 0.5 and not views else None,
            compression=draw.choice(self.codecs), row_group_size=draw.choice([30, 90]),
            use_dictionary=draw.random() < 0.5, data_page_version=draw.choice(["1.0", "2.0"]),
            write_statistics=draw.random() < 0.8, max_rows_per_file=100,
        )  # fmt: skip

    def read(self, paths: Sequence[str]) -> list[Row]:
        return pq.read_table(list(paths), partitioning="hive").to_pylist()


class Pandas:
    """pandas, including indices and nullable types."""

    kinds, odd = PANDAS, PANDAS_ODD
    codecs = ("zstd", "snappy", "lz4", "gzip", None)

    def write(self, folder: Path, keys: list[int], kinds: Sequence[str], draw: Random) -> None:
        every = {**PANDAS, **PANDAS_ODD}
        columns = {kind: _series(_values(keys, every[kind][0]), every[kind][1]) for kind in kinds}
        frame = pd.DataFrame({"k": keys, "p": [key % 3 for key in keys], **columns})
        if draw.random() < 0.5:
            frame.index = pd.Index([f"i{key}" for key in keys])
        parts = ["p"] if draw.random() < 0.5 else None
        options = {"compression": draw.choice(self.codecs), "row_group_size": 60}
        frame.to_parquet(folder if parts else folder / "0.parquet", partition_cols=parts, **options)

    def read(self, paths: Sequence[str]) -> list[Row]:
        rows = pd.read_parquet(list(paths), dtype_backend="pyarrow")
        named = rows.index.name or "__index_level_0__"
        rows = (
            rows if isinstance(rows.index, pd.RangeIndex) else rows.rename_axis(named).reset_index()
        )
        return rows.to_dict("records")


class DuckDB:
    """DuckDB's COPY and read_parquet."""

    kinds, odd = DUCKDB, DUCKDB_ODD
    codecs = ("zstd", "snappy", "lz4_raw", "gzip", "uncompressed")

    def write(self, folder: Path, keys: list[int], kinds: Sequence[str], draw: Random) -> None:
        every = {**DUCKDB, **DUCKDB_ODD}
        listed = "".join(
            f", CASE WHEN k % 11 > 0 THEN {every[kind]} END AS {kind}" for kind in kinds
        )
        rows = f"SELECT k, (k % 3)::INT AS p{listed} FROM (SELECT unnest({keys}) AS k)"
        # version 2 splits floats into byte streams, which Spark cannot read
        version = draw.choice(["V1", "V2"]) if not {"float", "double"} & set(kinds) else "V1"
        options = f"FORMAT parquet, CODEC '{draw.choice(self.codecs)}', PARQUET_VERSION {version}"
        if draw.random() < 0.5:
            duckdb.sql(f"COPY ({rows}) TO '{folder}' ({options}, PARTITION_BY (p), OVERWRITE)")
        else:
            duckdb.sql(f"COPY ({rows}) TO '{folder}/0.parquet' ({options}, ROW_GROUP_SIZE 2048)")

    def read(self, paths: Sequence[str]) -> list[Row]:
        found = duckdb.sql(f"FROM read_parquet({list(paths)}, hive_partitioning = true)")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


WRITERS = {"polars": Polars(), "pyarrow": Arrow(), "pandas": Pandas(), "duckdb": DuckDB()}


def _values(keys: list[int], name: str) -> list[Any]:
    return [None if key % 11 == 0 else VALUES[name](key) for key in keys]


def _bare(type_: Any) -> Any:
    """Return a type from which Polars can build a series of Python values."""
    return pl.Datetime("us") if isinstance(type_, pl.Datetime) and type_.time_zone else type_


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if isinstance(type_, pa.DictionaryType):
        return pa.array(values).dictionary_encode()
    if isinstance(type_, pa.UuidType):
        return pa.ExtensionArray.from_storage(type_, pa.array(values, pa.binary(16)))
    return pa.array(values, type_)


def _series(values: list[Any], type_: Any) -> pd.Series:
    if str(type_).startswith("datetime64"):
        unit, _, zone = str(type_)[11:-1].partition(", ")
        moments = pd.Series(values, dtype=f"datetime64[{unit}]")
        return moments.dt.tz_localize(zone) if zone else moments
    return pd.Series(values, dtype=type_)
