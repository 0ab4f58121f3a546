"""Stories on Iceberg tables."""

from functools import partial
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from integration.kit.hostile import sql
from integration.kit.lakes import Lake, interrupted
from zadapter_iceberg import IcebergBackend

_numbers = count()


class Tables(Lake):
    """Tables of the catalog ``ice``, looked at without zadapter."""

    def __init__(self, spark, catalog):
        super().__init__(spark)
        self.catalog = catalog
        self.jvm, self.session = spark._jvm, spark._jsparkSession  # noqa: SLF001
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")

    def make(self, rows, partition_by="", files=4, **properties):
        """Write *rows* as a table of so many files a partition and return its name."""
        name = f"ice.db.t{next(_numbers)}"
        said = {"format-version": "2"} | {key.replace("_", "-"): v for key, v in properties.items()}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in said.items())
        columns = ", ".join(f"{sql(f.name)} {f.dataType.simpleString()}" for f in rows.schema)
        clause = f"PARTITIONED BY ({partition_by})" if partition_by else ""
        self.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {clause} TBLPROPERTIES ({listed})")
        self.append(name, rows.repartition(files))
        return name

    def append(self, name, rows):
        rows.writeTo(name).option("use-table-distribution-and-ordering", "false").append()

    def load(self, name):
        return self.spark.table(name)

    def table(self, name):
        """The table, as pyiceberg sees it."""
        return self.catalog.load_table(name.removeprefix("ice."))

    def read(self, name):
        """All rows by pyiceberg, as sorted text."""
        return sorted(map(str, self.table(name).scan().to_arrow().to_pylist()))

    def files(self, name):
        """The live data files by pyiceberg, each with what it says of itself."""
        return [task.file for task in self.table(name).scan().plan_files()]

    def folder(self, name):
        """Where the table lies on disk."""
        return self.table(name).location().removeprefix("file://")

    def footers(self, name):
        """Parquet footers of the live data files."""
        return [pq.read_metadata(f.file_path.removeprefix("file:")) for f in self.files(name)]

    def history(self, name):
        """Operation and summary of each snapshot, oldest first."""
        return [
            (each.summary.operation.value, each.summary) for each in self.table(name).snapshots()
        ]

    def java(self, name):
        """Iceberg's own table."""
        found = self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.session, name)
        found.refresh()
        return found

    def delete_equal(self, name, *values, spec=None, partition=None):
        """Commit an equality delete of ``a IN values``, as Flink does."""
        table, path = self.java(name), f"{self.folder(name)}/data/eq-{values[0]}.parquet"
        number = table.schema().findField("a").fieldId()
        field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": str(number)})
        pq.write_table(pa.table([values], schema=pa.schema([field])), path)
        ids = self.spark.sparkContext._gateway.new_array(self.jvm.int, 1)  # noqa: SLF001
        ids[0] = number
        builder = (
            self.jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(
                table.spec() if spec is None else table.specs()[spec]
            )
            .ofEqualityDeletes(ids).withPath(f"file:{path}").withFormat("parquet")
            .withFileSizeInBytes(Path(path).stat().st_size).withRecordCount(len(values))
        )  # fmt: skip
        if partition is not None:
            builder.withPartitionPath(partition)
        table.newRowDelta().addDeletes(builder.build()).commit()
        self.sql(f"REFRESH TABLE {name}")


@pytest.fixture
def lake(spark, catalog):
    return Tables(spark, catalog)


@pytest.fixture
def between():
    """Make an Iceberg backend that runs an action after staging and before the first commit."""
    return partial(interrupted, IcebergBackend)
