"""Whether readers skip pages of a row group: what they read for a thousandth of a sorted column."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.writer import WriterProperties
from pyspark.sql import functions as F

import zadapter.spark
from integration.bench.readers.files import PAGE, bytes_read, connect, read, write

FIRST = "SELECT sum(b) FROM {} WHERE a BETWEEN 5000 AND 5999"
EVERY = "SELECT sum(b) FROM {} WHERE a >= 0"


def by_arrow(folder):
    """Return the bytes that PyArrow reads for the range, and for all rows."""
    found = []
    for low, high in ((5_000, 5_999), (0, 1 << 60)):
        before = bytes_read()
        asked = (ds.field("a") >= low) & (ds.field("a") <= high)
        rows = ds.dataset(folder).to_table(["b"], filter=asked)
        pc.sum(rows["b"])
        found.append(bytes_read() - before)
    return found


def by_datafusion(table, folder):
    """Return the bytes that DataFusion reads of a Delta table for the range, and for all rows."""
    sized = WriterProperties(data_page_size_limit=PAGE, max_row_group_size=len(table))
    write_deltalake(folder, table, writer_properties=sized)
    query = QueryBuilder().register("t", DeltaTable(folder))
    found = []
    for text in (FIRST, EVERY):
        plan = pa.table(query.execute(f"EXPLAIN ANALYZE {text.format('t')}"))["plan"][0].as_py()
        found.append(re.search(r"bytes_scanned=([\d.]+ ?[KM]?)", plan)[1])
    return found


def by_spark(folder):
    """Return the rows of Spark's scan: for the range, for all rows, the last ten, and a join."""
    spark = zadapter.spark.session()
    rows = spark.read.parquet(str(folder))
    asked = (
        rows.where("a BETWEEN 5000 AND 5999").agg(F.max("b")),
        rows.where("a >= 0").agg(F.max("b")),
        rows.orderBy(F.desc("a")).limit(10),
        rows.join(F.broadcast(spark.range(5_000, 6_000)), F.col("a") == F.col("id")).agg(
            F.max("b")
        ),
    )
    return [_scanned(each) for each in asked]


def _scanned(rows):
    rows.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")
    rows.collect()
    plan = rows._jdf.queryExecution().executedPlan()  # noqa: SLF001 - no public door
    leaves = plan.collectLeaves()
    [scan] = [
        leaf
        for leaf in (leaves.apply(at) for at in range(leaves.size()))
        if leaf.nodeName().startswith("Scan parquet")
    ]
    return scan.metrics().apply("numOutputRows").value()


def main(folder, rows):
    """Print what each reader reads."""
    draw = np.random.default_rng(3)
    table = pa.table({"a": np.arange(rows), "b": draw.integers(0, 1 << 60, rows)})
    made = write(table, folder / "one", 1, 1)
    without = write(table, folder / "without", 1, 1, page_index=False)
    connection = connect()
    print("\nA row group, sorted: for 1 000 rows / for all rows\n")
    for name, files in (("", made), (" without an index of pages", without)):
        found = [read(connection, text, files).bytes for text in (FIRST, EVERY)]
        print(f"DuckDB{name}, bytes:", *found)
    print("PyArrow, bytes:", *by_arrow(made))
    print("DataFusion on Delta, bytes:", *by_datafusion(table, str(folder / "delta")), flush=True)
    print("Spark, rows of the scan (also for the last ten rows, and for a join with 1 000 keys):",
          *by_spark(made))  # fmt: skip
