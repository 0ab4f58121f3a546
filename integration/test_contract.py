"""Every format keeps the contract."""

from contextlib import closing

import pytest
from pyspark.sql import functions as F

import zadapter
from integration.parquet.lake import live
from zadapter.testing import BackendContract
from zadapter_delta import DeltaBackend
from zadapter_iceberg import IcebergBackend
from zadapter_parquet import ParquetBackend


def in_order(rows):
    return sorted((tuple(row) for row in rows), key=lambda r: tuple((v is None, v) for v in r))


class TestDelta(BackendContract):
    """Delta keeps the contract."""

    @pytest.fixture
    def backend(self, spark):
        return DeltaBackend(spark)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def make(self, spark, name, rows):
        rows.write.format("delta").save(f"{self.folder}/{name}")
        return f"{self.folder}/{name}"

    def append(self, spark, table, rows):
        rows.write.format("delta").mode("append").save(table)

    def rows_behind(self, spark, table):
        return in_order(
            spark.read.format("delta").load(table).select(F.col("a"), F.col("b")).collect()
        )


class TestParquet(BackendContract):
    """Parquet keeps the contract."""

    @pytest.fixture
    def backend(self, spark):
        return ParquetBackend(spark)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def make(self, spark, name, rows):
        rows.write.parquet(f"{self.folder}/{name}")
        return f"{self.folder}/{name}"

    def append(self, spark, table, rows):
        zadapter.append(table, rows, backend="parquet")

    def rows_behind(self, spark, table):
        return in_order(row.values() for row in live(table).to_pylist())


class TestIceberg(BackendContract):
    """Iceberg keeps the contract."""

    @pytest.fixture
    def backend(self, spark):
        with closing(IcebergBackend(spark)) as made:
            yield made

    @pytest.fixture(autouse=True)
    def _catalog(self, catalog):
        self.catalog = catalog

    def make(self, spark, name, rows):
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.contract")
        writer = rows.writeTo(f"ice.contract.{name}")
        writer.option("use-table-distribution-and-ordering", "false").create()
        return f"ice.contract.{name}"

    def append(self, spark, table, rows):
        rows.writeTo(table).append()

    def rows_behind(self, spark, table):
        rows = self.catalog.load_table(table.removeprefix("ice.")).scan().to_arrow().to_pylist()
        return in_order(row.values() for row in rows)
