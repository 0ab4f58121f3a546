"""Rows of tables that age: a base, the pieces that are appended, and the rows that are deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from integration.bench.tables import synthetic
from integration.bench.tables.workloads import WORKLOADS, Workload, seeded

SCALE = 0.1
"""Scale of the tables, unless the command line has one."""
BASE = 0.6
"""Share of the rows in the base, if there are few appends."""
FEW = 16
EACH = 0.02
"""Rows of one of many appends, as a share of the base's."""
SHUFFLED, AS_MADE = "shuffled", "as made"
"""Orders of arrival; other orders are names of columns."""
_ROW_GROUP = 50_000
"""Rows of the base that one task of Spark reads at least."""


@dataclass(frozen=True, kw_only=True)
class Ageing:
    """Kind of table that ages.

    Attributes:
        name: Name on the command line.
        workload: The rows and their keys.
        arrival: ``SHUFFLED``, ``AS_MADE``, or the column by which rows arrive.
        deleted: One of how many rows is deleted after each append; 0: none.
        row_id: Columns by which the deleted rows are drawn.
    """

    name: str
    workload: Workload
    arrival: str = SHUFFLED
    deleted: int = 0
    row_id: tuple[str, ...] = ()

    def condition(self, append: int) -> str:
        """Return the condition of the rows that are deleted after an append, counted from 1."""
        drawn = f"pmod(xxhash64({', '.join(self.row_id)}), {self.deleted})"
        return f"{drawn} = {append % self.deleted}"

    def pieces(self, folder: Path, scale: float, appends: int) -> list[Path]:
        """Return the base and the pieces as Parquet files, which the first call makes."""
        made = folder / "data" / f"{self.name}-{scale}-{appends}"
        paths = [made / f"{number:04}.parquet" for number in range(appends + 1)]
        if not (made / "_SUCCESS").exists():
            made.mkdir(parents=True, exist_ok=True)
            table = _ordered(_read(self.workload.data(folder, scale)), self.arrival)
            ends = _ends(len(table), appends)
            for path, start, end in zip(paths, [0, *ends[:-1]], ends, strict=True):
                pq.write_table(table.slice(start, end - start), path, row_group_size=_ROW_GROUP)
            (made / "_SUCCESS").touch()
        return paths

    def alive(self, spark: SparkSession, pieces: Sequence[Path]) -> DataFrame:
        """Return the rows of a table after the last of *pieces*, without the deleted ones."""
        if not self.deleted:
            return spark.read.parquet(*map(str, pieces))
        rows = spark.read.parquet(str(pieces[0]))
        for append, piece in enumerate(pieces[1:], 1):
            rows = rows.union(spark.read.parquet(str(piece)))
            rows = rows.where(f"NOT ({self.condition(append)})")
        return rows


def share_of_base(appends: int) -> float:
    """Return the share of the rows that are there before the first append."""
    return BASE if appends <= FEW else 1 / (1 + EACH * appends)


def _ends(rows: int, appends: int) -> list[int]:
    """Return where the base and each piece end."""
    base = share_of_base(appends)
    shares = base + (1 - base) * np.arange(appends + 1) / appends
    return [int(end) for end in np.round(shares * rows)]


def _read(data: Path) -> pa.Table:
    """Return the rows, without the types and options that Arrow alone knows."""
    parts = [pq.read_table(path) for path in sorted(data.glob("*.parquet"))]
    table = pa.concat_tables(parts)
    plain = [
        pa.field(each.name, pa.string() if pa.types.is_string_view(each.type) else each.type)
        for each in table.schema
    ]
    return table.cast(pa.schema([each.with_nullable(nullable=True) for each in plain]))


def _ordered(table: pa.Table, arrival: str) -> pa.Table:
    if arrival == AS_MADE:
        return table
    shuffled = table.take(pa.array(np.random.default_rng(23).permutation(len(table))))
    return shuffled if arrival == SHUFFLED else shuffled.sort_by(arrival)


_LINEITEM = WORKLOADS["lineitem"]
AGEING: Mapping[str, Ageing] = {
    each.name: each
    for each in (
        Ageing(name="appends", workload=_LINEITEM),
        Ageing(name="appends-time", workload=_LINEITEM, arrival=_LINEITEM.keys[0]),
        Ageing(name="appends-skew", workload=WORKLOADS["zipf"]),
        Ageing(
            name="appends-drift",
            workload=Workload(
                name="drift", keys=("amount", "customer", "store"), make=seeded(synthetic.drift)
            ),
            arrival=AS_MADE,
        ),
        Ageing(
            name="appends-deletes",
            workload=_LINEITEM,
            deleted=50,
            row_id=("l_orderkey", "l_linenumber"),
        ),
    )
}
"""Workloads of appends by name."""
