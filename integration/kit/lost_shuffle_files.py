"""Run as a script: a rewrite whose shuffle files get lost, in a session of its own.

A local session that has lost shuffle files takes its own process for a lost executor, and ends the
process sixty heartbeats later: no other test may use it.
"""

import json
import sys

import zadapter
import zadapter.spark
from tests.spark.rewrite.repeated_stages import shuffle_files
from zadapter.backend import plugins

ROWS = 2_000
TABLES = {"delta": "lake/events", "iceberg": "iceberg.db.events", "parquet": "lake/events"}


def lost(rows):
    """Run the stage before the shuffle, and have its files be gone when they are to be read."""
    rows.count()
    for file in shuffle_files(rows.sparkSession.sparkContext):
        file.unlink()
    return rows


def main(name):
    """Print how a table of a format was verified, what filters read of it, and its live files."""
    spark = zadapter.spark.session({"spark.master": "local[2]"})
    backend, table = plugins.load(name), TABLES[name]

    class Losing(backend):
        def write(self, snapshot, rows, layout, encoding):
            return super().write(snapshot, lost(rows), layout, encoding)

    rows = spark.range(ROWS).selectExpr("id", "id * 7919 % 2003 AS a", "md5(string(id)) AS s")
    if name == "iceberg":
        spark.sql("CREATE NAMESPACE iceberg.db")
        rows.repartition(2).writeTo(table).using("iceberg").create()
    else:
        rows.repartition(2).write.format(name).save(table)
    report = zadapter.optimize(
        table, by="a", target_file_size="8KB", backend=Losing, verify="checksum", spark=spark
    )
    files = zadapter.files(table, backend=name, spark=spark)["path"].to_pylist()
    print(json.dumps([str(report.verification), report.share_after, files]))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
