"""Formats and their contenders: each table starts from the same rows and files."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame, SparkSession

import zadapter
from integration.bench.contenders import CHECKED, COPY, DEFAULTS, NEW, OURS, ROW_GROUPS, SORT, TUNED
from integration.bench.tables.workloads import Workload
from zadapter import Report

Rewrite = Callable[[str], object]
CATALOG = "bench"
_MOST_LIQUID = 4
"""Highest number of CLUSTER BY columns."""
_WHOLE = str(1 << 40)
"""Bytes; with this split and open cost, each file is read by one task and written as one file."""


class Format(Protocol):
    """Tables of one format with the same rows."""

    reports: list[Report]
    target: int

    def fresh(self, name: str) -> str:
        """Make a contender's table in its state before the rewrite, and return its name."""

    def live(self, table: str) -> list[str]:
        """Return the paths of the live files."""

    def read(self, table: str) -> DataFrame:
        """Return the rows, as Spark reads them through the format's log."""

    def contenders(self) -> Mapping[str, Rewrite]:
        """Return the rewrites by contender; the first one is the baseline."""


@dataclass
class _Task:
    """Input of every format: rows, workload, folder and number of files."""

    spark: SparkSession
    source: DataFrame
    workload: Workload
    folder: Path
    files: int
    reports: list[Report] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keys = self.workload.keys
        self.folder.mkdir(parents=True, exist_ok=True)
        self.base = self.fresh("base")
        # rounded down, so that peers write the same number of files
        self.target = sum(_size(path) for path in self.live(self.base)) // self.files
        self.row_group = -(-self.read(self.base).count() // (self.files * ROW_GROUPS))

    def _plain(self) -> dict[str, Rewrite]:
        return {
            COPY: lambda table: self._written(self.read(self.base).repartition(self.files), table),
            OURS: self._optimize,
            CHECKED: lambda table: self._optimize(table, verify="checksum"),
            SORT: lambda table: self._written(self._sorted(self.read(self.base)), table),
            SORT + TUNED: lambda table: self._written(
                self._sorted(self.read(self.base)), table, self._row_groups()
            ),
        }

    def _sorted(self, rows: DataFrame) -> DataFrame:
        return rows.repartitionByRange(self.files, *self.keys).sortWithinPartitions(*self.keys)

    def _optimize(self, table: str, **others: object) -> None:
        # the backend is named, since a folder is not registered before the first run
        asked = {"by": self.workload.by(), "target_file_size": self.target, "spark": self.spark}
        self.reports.append(zadapter.optimize(table, backend=self.name, **asked, **others))


class _InFolder(_Task):
    """Table in a folder, which is copied as a whole."""

    def fresh(self, name: str) -> str:
        """Copy the table's folder, or make space for a new one."""
        path = _emptied(self.folder / _slug(name))
        if name == "base":
            self._written(self.source, str(path))
        elif not name.startswith(NEW):
            shutil.copytree(self.base, path)
        return str(path)

    def _written(self, rows: DataFrame, table: str, settings: Mapping[str, str] = {}) -> None:
        with _set(self.spark, settings):
            rows.write.format(self.name).save(table)

    def _row_groups(self) -> dict[str, str]:
        """Return the row group settings of Spark's Parquet writer."""
        return {"parquet.block.row.count.limit": str(self.row_group)}


class Delta(_InFolder):
    """Delta Lake."""

    name = "delta"

    def fresh(self, name: str) -> str:
        """Copy the table's folder, or create a clustered table for liquid clustering."""
        if not name.startswith("Delta liquid"):
            return super().fresh(name)
        path = _emptied(self.folder / _slug(name))
        columns = ", ".join(
            f"{field.name} {field.dataType.simpleString()}" for field in self.source.schema
        )
        keys = ", ".join(self.keys)
        self.spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta CLUSTER BY ({keys})")
        settings = (f"spark.sql.files.{key}" for key in ("maxPartitionBytes", "openCostInBytes"))
        with _set(self.spark, dict.fromkeys(settings, _WHOLE)):
            self.read(self.base).write.format("delta").mode("append").save(str(path))
        return str(path)

    def live(self, table: str) -> list[str]:
        """Return the live files, listed by delta-rs."""
        return [uri.removeprefix("file://") for uri in deltalake.DeltaTable(table).file_uris()]

    def read(self, table: str) -> DataFrame:
        """Return the rows."""
        return self.spark.read.format("delta").load(table)

    def contenders(self) -> Mapping[str, Rewrite]:
        """Return Delta's own rewrites, delta-rs, and plain Spark."""
        size = {"spark.databricks.delta.optimize.maxFileSize": str(self.target)}
        sorted_files = {"spark.databricks.io.skipping.mdc.sortWithinFiles": "true"}
        tuned = size | sorted_files | self._row_groups()
        zorder = f"ZORDER BY ({', '.join(self.keys)})"
        liquid = {
            "Delta liquid": lambda table: self._own(table, "FULL", size),
            "Delta liquid" + TUNED: lambda table: self._own(table, "FULL", tuned),
        }
        return {
            **self._plain(),
            "Delta ZORDER": lambda table: self._own(table, zorder, size),
            "Delta ZORDER" + TUNED: lambda table: self._own(table, zorder, tuned),
            "Delta ZORDER" + DEFAULTS: lambda table: self._own(table, zorder, {}),
            **(liquid if len(self.keys) <= _MOST_LIQUID else {}),
            "delta-rs z_order": self._native,
        }

    def _own(self, table: str, how: str, settings: Mapping[str, str]) -> None:
        with _set(self.spark, settings):
            self.spark.sql(f"OPTIMIZE delta.`{table}` {how}").collect()

    def _native(self, table: str) -> None:
        codec = deltalake.WriterProperties(compression="SNAPPY")
        asked = {"target_size": self.target, "max_concurrent_tasks": 2, "writer_properties": codec}
        deltalake.DeltaTable(table).optimize.z_order(list(self.keys), **asked)


class Iceberg(_Task):
    """Apache Iceberg with its own catalog."""

    name = "iceberg"

    def _catalog(self) -> SqlCatalog:
        return SqlCatalog(CATALOG, uri=f"sqlite:///{self.folder.parent.parent}/catalog.db")

    def fresh(self, name: str) -> str:
        """Rewrite the table from the same rows in the same order."""
        table = f"{CATALOG}.db.{_slug(name)}"
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.db")
        self.spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
        if not name.startswith(NEW):
            self._written(self.source if name == "base" else self._file_by_file(), table)
            for key, value in (self._row_groups() if name.endswith(TUNED) else {}).items():
                self.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{key}' = '{value}')")
        return table

    def _file_by_file(self) -> DataFrame:
        """Return the rows of the base table, with one task per file."""
        reader = self.spark.read.option("split-size", _WHOLE).option("file-open-cost", _WHOLE)
        return reader.table(self.base)

    def _written(self, rows: DataFrame, table: str, properties: Mapping[str, str] = {}) -> None:
        writer = rows.writeTo(table).using("iceberg")
        for key, value in properties.items():
            writer = writer.tableProperty(key, value)
        writer = writer.option("use-table-distribution-and-ordering", "false")
        writer.option("target-file-size-bytes", _WHOLE).create()

    def live(self, table: str) -> list[str]:
        """Return the live files, listed by pyiceberg."""
        tasks = self._catalog().load_table(table.removeprefix(f"{CATALOG}.")).scan().plan_files()
        return [task.file.file_path.removeprefix("file://").removeprefix("file:") for task in tasks]

    def read(self, table: str) -> DataFrame:
        """Return the rows."""
        return self.spark.table(table)

    def contenders(self) -> Mapping[str, Rewrite]:
        """Return Iceberg's own rewrites, and plain Spark."""
        keys = ",".join(self.keys)
        zorder, hilbert, size = f"zorder({keys})", f"hilbert({keys})", self._size()
        return {
            **self._plain(),
            "Iceberg sort": lambda table: self._own(table, keys, size),
            "Iceberg zorder": lambda table: self._own(table, zorder, size),
            "Iceberg zorder" + TUNED: lambda table: self._own(table, zorder, size),
            "Iceberg zorder" + DEFAULTS: lambda table: self._own(table, zorder, {}),
            "Iceberg hilbert": lambda table: self._own(table, hilbert, size),
            "Iceberg hilbert" + TUNED: lambda table: self._own(table, hilbert, size),
        }

    def _row_groups(self) -> dict[str, str]:
        """Return the settings that limit the rows of Iceberg's row groups."""
        rows = str(self.row_group)
        return {
            "write.parquet.row-group-size-bytes": "1",
            "write.parquet.row-group-check-min-record-count": rows,
            "write.parquet.row-group-check-max-record-count": rows,
        }

    def _size(self) -> dict[str, str]:
        return {
            "target-file-size-bytes": str(self.target),
            # Iceberg's writer starts a new file by uncompressed bytes
            "max-file-size-bytes": str(16 * self.target),
        }

    def _own(self, table: str, order: str, options: Mapping[str, str]) -> None:
        every = {"rewrite-all": "true", **options}
        listed = ", ".join(f"'{key}', '{value}'" for key, value in every.items())
        name = table.removeprefix(f"{CATALOG}.")
        call = f"table => '{name}', strategy => 'sort', options => map({listed})"
        statement = f"CALL {CATALOG}.system.rewrite_data_files({call}, sort_order => '{order}')"
        self.spark.sql(statement).collect()


class Folder(_InFolder):
    """Plain Parquet files."""

    name = "parquet"

    def live(self, table: str) -> list[str]:
        """Return the visible files, or those of the newest version."""
        if (Path(table) / "_zadapter").exists():
            return zadapter.files(table, spark=self.spark)["path"].to_pylist()
        return [str(found) for found in sorted(Path(table).glob("*.parquet"))]

    def read(self, table: str) -> DataFrame:
        """Return the rows of the live files."""
        return self.spark.read.parquet(*self.live(table))

    def contenders(self) -> Mapping[str, Rewrite]:
        """Return plain Spark; no other program clusters folders."""
        return self._plain()


FORMATS = {each.name: each for each in (Delta, Iceberg, Folder)}


def catalog(folder: Path) -> dict[str, str]:
    """Return the settings of the Iceberg catalog, with its files in *folder*."""
    values = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{folder}/catalog.db",
        ".jdbc.schema-version": "V1",
        ".warehouse": f"file://{folder}/iceberg",
    }
    return {f"spark.sql.catalog.{CATALOG}{key}": value for key, value in values.items()}


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def _slug(name: str) -> str:
    return re.sub(r"\W+", "_", name.lower())


def _emptied(path: Path) -> Path:
    if path.exists():
        shutil.rmtree(path)
    return path


def _size(path: str) -> int:
    return Path(path).stat().st_size
