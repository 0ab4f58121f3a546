"""Every format keeps the contract."""

from contextlib import closing

import pytest
from pyspark.sql import functions as F

import zadapter
from integration.parquet.lake import live
from tests.contract import BackendContract, MigrationContract, VersionsContract, sort_rows
from zadapter_delta import DeltaBackend
from zadapter_iceberg import IcebergBackend
from zadapter_parquet import ParquetBackend

pytestmark = pytest.mark.every_format


class TestDelta(BackendContract, MigrationContract):
    """Delta keeps the contract."""

    @pytest.fixture
    def backend(self, spark):
        return DeltaBackend(spark)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def target(self, name):
        return f"{self.folder}/{name}"

    def make(self, spark, name, rows):
        rows.write.format("delta").save(self.target(name))
        return self.target(name)

    def append(self, spark, table, rows):
        rows.write.format("delta").mode("append").save(table)

    def rows_behind(self, spark, table):
        return sort_rows(
            spark.read.format("delta").load(table).select(F.col("a"), F.col("b")).collect()
        )


class TestParquet(BackendContract, MigrationContract, VersionsContract):
    """Parquet keeps the contract."""

    @pytest.fixture
    def backend(self, spark):
        return ParquetBackend(spark)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def target(self, name):
        return f"{self.folder}/{name}"

    def make(self, spark, name, rows):
        rows.write.parquet(self.target(name))
        return self.target(name)

    def append(self, spark, table, rows):
        zadapter.append(table, rows, backend="parquet")

    def rows_behind(self, spark, table):
        return sort_rows(row.values() for row in live(table).to_pylist())


class TestIceberg(BackendContract, MigrationContract):
    """Iceberg keeps the contract."""

    @pytest.fixture
    def backend(self, spark):
        with closing(IcebergBackend(spark)) as made:
            yield made

    @pytest.fixture(autouse=True)
    def _catalog(self, catalog):
        self.catalog = catalog

    def target(self, name):
        return f"ice.contract.{name}"

    def make(self, spark, name, rows):
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.contract")
        writer = rows.writeTo(self.target(name))
        writer.option("use-table-distribution-and-ordering", "false").create()
        return self.target(name)

    def append(self, spark, table, rows):
        rows.writeTo(table).append()

    def rows_behind(self, spark, table):
        rows = self.catalog.load_table(table.removeprefix("ice.")).scan().to_arrow().to_pylist()
        return sort_rows(row.values() for row in rows)
