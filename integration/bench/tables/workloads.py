"""Workloads: tables, the columns they are clustered by, and filters.

Everything is seeded. A filter is a condition in Spark SQL; one word of it differs for DuckDB.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from integration.bench.tables import hits, ssb, synthetic, tpc
from zadapter.base.ranks import rank
from zadapter.layout import predict

ROWS = 6_000_000
"""Rows of a table at scale 1, about as many as in TPC-H's lineitem."""
PARTS = 12
SAMPLE = 100_000
RANGES = 150


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Table, the columns it is clustered by, and its filters.

    Attributes:
        name: Name on the command line.
        keys: Key columns.
        weights: Frequency of each key in the filters, if known; only zadapter uses it.
        make: Writes the table's Parquet files, given a folder and a scale.
        filters: Returns the conditions; None: ranges over the keys, drawn from the table.
        files: Number of files to write; None: the number of the run.
    """

    name: str
    keys: tuple[str, ...]
    weights: tuple[float, ...] | None = None
    make: Callable[[Path, float], None]
    filters: Callable[[], Sequence[str]] | None = None
    files: int | None = None

    def data(self, folder: Path, scale: float) -> Path:
        """Return the folder with the table's files, which the first call makes."""
        made = folder / "data" / f"{self.make.__name__}-{scale}"
        if not (made / "_SUCCESS").exists():
            made.mkdir(parents=True, exist_ok=True)
            self.make(made, scale)
            (made / "_SUCCESS").touch()
        return made

    def by(self) -> list[str] | dict[str, float]:
        """Return the argument ``by`` for zadapter."""
        if self.weights is None:
            return list(self.keys)
        return dict(zip(self.keys, self.weights, strict=True))

    def conditions(self, data: Path) -> list[str]:
        """Return the filters."""
        if self.filters is not None:
            return list(self.filters())
        return ranges(sorted(data.glob("*.parquet")), self.keys)


def ranges(paths: Sequence[Path], keys: Sequence[str], seed: int = predict.SEED) -> list[str]:
    """Draw ranges over one, two and more keys from the values of files, by rank."""
    table = pq.ParquetDataset(paths).read(columns=list(keys))
    picked = np.random.default_rng(1).choice(len(table), min(SAMPLE, len(table)), replace=False)
    ranked = [rank(table[key].take(pa.array(picked)).combine_chunks()) for key in keys]
    drawn = predict.queries(np.stack([column.ranks for column in ranked], axis=1), RANGES, seed)
    return [
        " AND ".join(
            f"{key} BETWEEN {literal(values.value_of(between)[0])}"
            f" AND {literal(values.value_of(between)[1])}"
            for key, values, between in zip(keys, ranked, query, strict=True)
            if between[0] >= 0
        )
        for query in drawn
    ]


def literal(value: pa.Scalar) -> str:
    """Return a value as a literal of Spark and DuckDB."""
    if pa.types.is_string(value.type):
        return "'" + value.as_py().replace("'", "''") + "'"
    if pa.types.is_date(value.type):
        return f"DATE '{value}'"
    if pa.types.is_timestamp(value.type):
        return f"TIMESTAMP_NTZ '{value.as_py()}'"
    if pa.types.is_floating(value.type):
        return f"{value.as_py():e}".upper()
    return str(value)


def seeded(make: Callable[[np.random.Generator, int, int], pa.Table]) -> Callable[..., None]:
    """Return a function that writes a synthetic table in parts, each with its own seed."""

    def written(folder: Path, scale: float) -> None:
        rows = int(ROWS * scale) // PARTS
        for part in range(PARTS):
            table = make(np.random.default_rng([7, part]), rows, part * rows)
            pq.write_table(table, folder / f"{part:02}.parquet", coerce_timestamps="us")

    written.__name__ = make.__name__
    return written


def _uniform(columns: int) -> Workload:
    return Workload(
        name=f"uniform{columns}",
        keys=tuple(f"c{number}" for number in range(columns)),
        make=seeded(synthetic.uniform),
        filters=lambda: synthetic.boxes(columns),
        files=64,
    )


WORKLOADS = {
    each.name: each
    for each in (
        # used in all earlier versions' figures: three independent columns
        Workload(name="lineitem", keys=("l_shipdate", "l_partkey", "l_suppkey"), make=tpc.lineitem),
        Workload(name="lineitem2", keys=("l_shipdate", "l_partkey"), make=tpc.lineitem),
        Workload(
            name="lineitem4",
            keys=("l_shipdate", "l_partkey", "l_suppkey", "l_orderkey"),
            make=tpc.lineitem,
        ),
        Workload(
            name="tpch",
            keys=("l_shipdate", "l_shipmode"),
            weights=(3, 1),
            make=tpc.lineitem,
            filters=tpc.lineitem_filters,
        ),
        Workload(
            name="tpcds",
            keys=("ss_sold_date_sk", "ss_item_sk", "ss_quantity"),
            make=tpc.store_sales,
            filters=tpc.store_sales_filters,
        ),
        Workload(
            name="ssb",
            keys=("lo_orderdate", "s_region", "p_brand"),
            make=seeded(ssb.lineorder),
            filters=ssb.lineorder_filters,
        ),
        Workload(
            name="hits",
            # the primary key that ClickBench has for ClickHouse
            keys=("CounterID", "EventDate", "UserID"),
            make=seeded(hits.hits),
            filters=hits.hits_filters,
        ),
        Workload(
            name="connections",
            keys=("src_ip", "src_port", "dst_ip", "dst_port"),
            make=seeded(synthetic.connections),
            filters=synthetic.connection_filters,
        ),
        Workload(
            name="zipf",
            keys=("customer", "product", "amount"),
            make=seeded(synthetic.skew),
            files=64,
        ),
        Workload(
            name="hot",
            keys=("tenant", "sold_at", "coupon"),
            make=seeded(synthetic.skew),
            filters=synthetic.hot_filters,
            files=64,
        ),
        Workload(
            name="selective",
            keys=("sold_at", "customer", "id"),
            make=seeded(synthetic.skew),
            filters=synthetic.selective_filters,
            files=64,
        ),
        Workload(
            name="texts",
            keys=("url", "id", "sold_at"),
            make=seeded(synthetic.skew),
        ),
        Workload(
            name="taxi",
            keys=("pickup_at", "pickup_lon", "pickup_lat"),
            make=seeded(synthetic.taxi),
            filters=synthetic.taxi_filters,
        ),
        *(_uniform(columns) for columns in range(2, 7)),
    )
}
