"""The files of a large table: partitions of two runs, and a few raw files with rows.

Only the raw files exist. They are links to one small file, and are what one call of ``optimize``
with ``max_files`` takes, so that plans can sample rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zadapter.base.ranks import Ints
from zadapter.layout.layout import Request

KEYS = ("k", "t")
TARGET = 128 << 20
"""Target file size, in bytes."""
A_PARTITION = 1_000
"""Files of a partition."""
OLD = 700
"""Files of its older run; the others are of its newer one."""
RAW = 64
"""Raw files, all in the first partition."""
ROWS = 1_000
"""Rows of a raw file."""
REQUEST = Request(columns=(("k",), ("t",)), weights=(1.0, 1.0), target_file_size=TARGET)
FILE_SCHEMA = pa.schema(
    [("k", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("s", pa.string()), ("x", pa.float64())]
)
_MONTH = 30 * 86_400 * 1_000_000
_START = 1_700_000_000_000_000
_A_JOB = 100
"""Partitions that one job has clustered."""
_LARGEST = 1 << 40


@dataclass(frozen=True)
class Chunk:
    """Facts of consecutive files of one or several partitions, all of one length as text."""

    number: Ints
    partition: Ints
    size: Ints
    rows: Ints
    names: pa.Array
    layouts: pa.Array
    low: dict[str, pa.Array]
    high: dict[str, pa.Array]

    def __len__(self) -> int:
        return len(self.number)


def chunks(files: int, length: int) -> Iterator[Chunk]:
    """Yield the facts of the files that do not exist, at most *length* at a time."""
    for start in range(0, files, length):
        yield _chunk(np.arange(start, min(files, start + length)))


def _chunk(number: Ints) -> Chunk:
    partition, at = number // A_PARTITION, number % A_PARTITION
    new = at >= OLD
    at = np.where(new, at - OLD, at)
    columns, rows = np.where(new, 20, 28), np.where(new, 15, 25)
    key, month = at % columns, np.where(new, _MONTH, 0)
    width, span = _LARGEST // columns, _MONTH // rows
    k = key * width
    t = _START + month + (at // columns) * span
    mixed = (number * 2_654_435_761) & 0xFFFF_FFFF
    x = mixed / 0xFFFF_FFFF
    text = [_padded(each, 12) for each in (mixed, mixed + (1 << 33))]
    low = {"k": pa.array(k), "t": _time(t), "s": _prefixed("a-", text[0]), "x": pa.array(x)}
    high = {
        "k": pa.array(k + width - 1),
        "t": _time(t + span - 1_000),
        "s": _prefixed("b-", text[1]),
        "x": pa.array(x + 1),
    }
    return Chunk(
        number=number,
        partition=partition,
        size=TARGET + (mixed & 0xFF_FFFF),
        rows=(1 << 20) + (mixed & 0xFFFF),
        names=pc.binary_join_element_wise(
            "part-", _padded(number, 10), "-", _padded(mixed, 20), ".c000.snappy.parquet", ""
        ),
        layouts=_layouts(partition // _A_JOB, new),
        low=low,
        high=high,
    )


def _layouts(job: Ints, new: np.ndarray) -> pa.Array:
    codes = 2 * job + new
    distinct, indices = np.unique(codes, return_inverse=True)
    ids = [f"{REQUEST.id}{(code + 1) * 0x1234567:016x}" for code in distinct.tolist()]
    return pa.array(ids, pa.string()).take(pa.array(indices))


def _padded(numbers: Ints, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _prefixed(prefix: str, texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(prefix, texts, "")


def _time(ticks: Ints) -> pa.Array:
    return pa.array(ticks).cast(pa.timestamp("us", "UTC"))


@dataclass(frozen=True)
class Raw:
    """The raw files, which exist."""

    names: list[str]
    size: int
    low: dict[str, object]
    high: dict[str, object]


def raw(folder: Path, schema: pa.Schema = FILE_SCHEMA) -> Raw:
    """Write the raw files into *folder*."""
    random = np.random.default_rng(1)
    ticks = _START + 2 * _MONTH + random.integers(0, _MONTH // 1_000, ROWS) * 1_000
    rows = pa.table(
        [
            pa.array(random.integers(0, _LARGEST, ROWS)),
            _time(ticks),
            _prefixed("a-", _padded(random.integers(0, 1 << 32, ROWS), 12)),
            pa.array(random.random(ROWS)),
        ],
        schema=schema,
    )
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"part-{at:010d}-raw.c000.snappy.parquet" for at in range(RAW)]
    pq.write_table(rows, folder / names[0])
    for name in names[1:]:
        (folder / name).hardlink_to(folder / names[0])
    bounds = [pc.min_max(rows[name]).as_py() for name in rows.column_names]
    low = dict(zip(rows.column_names, (each["min"] for each in bounds), strict=True))
    high = dict(zip(rows.column_names, (each["max"] for each in bounds), strict=True))
    return Raw(names, (folder / names[0]).stat().st_size, low, high)
