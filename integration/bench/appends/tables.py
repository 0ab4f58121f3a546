"""Tables that age: the benchmark's formats with appends, deletes and maintenance calls."""

from collections.abc import Mapping
from pathlib import Path

import deltalake
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import zadapter
from integration.bench.contenders import COPY, KEEPERS, NOTHING, OURS, WHOLE
from integration.bench.formats import CATALOG, Delta, Folder, Iceberg, Rewrite


class _Ageing:
    """What the three formats share; a base of those classes."""

    sorts: tuple[str, ...] = ()
    """Prefixes of contenders that cluster a table themselves; zadapter does it for the others."""

    def start(self, contender: str) -> str:
        """Make a contender's table of the base, cluster it, and return its name."""
        table = self.fresh(contender)
        own = contender.startswith(self.sorts) if self.sorts else False
        self.contenders()[contender if own else OURS](table)
        return table

    def fitted(self, rows: DataFrame) -> str:
        """Make a table of *rows*, cluster it by zadapter, and return its name."""
        table = self.fresh(COPY)
        self._written(rows, table)
        self._optimize(table, force=True)
        return table

    def contenders(self) -> Mapping[str, Rewrite]:
        """Return the maintenance calls by contender."""
        calls = {
            **super().contenders(),
            NOTHING: lambda _: None,
            WHOLE: lambda table: self._optimize(table, force=True),
        }
        return {name: calls[name] for name in KEEPERS if name in calls}

    def mark_deleted(self, table: str) -> None:
        """Have deletes mark rows instead of rewriting files, if the format can."""

    def delete(self, table: str, where: str) -> None:
        """Delete rows by Spark."""
        name = f"delta.`{table}`" if self.name == "delta" else table
        self.spark.sql(f"DELETE FROM {name} WHERE {where}").collect()


class AgeingDelta(_Ageing, Delta):
    """Delta Lake."""

    sorts = ("Delta", "delta-rs")

    def append(self, table: str, piece: Path) -> None:
        """Append by delta-rs, or by Spark to a table with CLUSTER BY, which delta-rs refuses."""
        if "liquid" in Path(table).name:
            rows = self.spark.read.parquet(str(piece))
            rows.write.format("delta").mode("append").save(table)
        else:
            deltalake.write_deltalake(table, pq.read_table(piece), mode="append")

    def mark_deleted(self, table: str) -> None:
        """Turn deletion vectors on."""
        properties = "'delta.enableDeletionVectors' = 'true'"
        self.spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({properties})")

    def _own(self, table: str, how: str, settings: Mapping[str, str]) -> None:
        # a liquid table's OPTIMIZE chooses the files itself
        super()._own(table, how.removeprefix("FULL"), settings)


class AgeingIceberg(_Ageing, Iceberg):
    """Apache Iceberg."""

    sorts = ("Iceberg zorder",)

    def append(self, table: str, piece: Path) -> None:
        """Append by Spark, as one file."""
        rows = self.spark.read.parquet(str(piece)).coalesce(1)
        rows.writeTo(table).option("use-table-distribution-and-ordering", "false").append()

    def mark_deleted(self, table: str) -> None:
        """Turn merge-on-read on."""
        properties = "'write.delete.mode' = 'merge-on-read'"
        self.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties})")

    def contenders(self) -> Mapping[str, Rewrite]:
        """Return the calls, with the compaction that sorts nothing."""
        return {**super().contenders(), "Iceberg binpack": self._packed}

    def _packed(self, table: str) -> None:
        size = ", ".join(f"'{key}', '{value}'" for key, value in self._size().items())
        call = f"table => '{table.removeprefix(f'{CATALOG}.')}', options => map({size})"
        statement = f"CALL {CATALOG}.system.rewrite_data_files({call}, strategy => 'binpack')"
        self.spark.sql(statement).collect()


class AgeingFolder(_Ageing, Folder):
    """Plain Parquet files, which zadapter appends to and deletes from."""

    def append(self, table: str, piece: Path) -> None:
        """Append a version."""
        rows = self.spark.read.parquet(str(piece))
        # the backend is named, since a folder is not registered before the first call
        zadapter.append(table, rows, backend=self.name, spark=self.spark)

    def delete(self, table: str, where: str) -> None:
        """Rewrite the files with such rows."""
        zadapter.delete(table, where, spark=self.spark)


FORMATS = {each.name: each for each in (AgeingDelta, AgeingIceberg, AgeingFolder)}
