"""A session of the user's own: by Delta's function, or with the documented settings for Iceberg."""

import json

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from integration.journeys.settings import DELTA, ICEBERG, documented
from integration.kit.witnesses import delta_table, of_delta, of_files, rows, sorted_rows

ROWS = 40_000
BY_DELTA = """
import json, sys
import delta, zadapter
from pyspark.sql import SparkSession

builder = SparkSession.builder.config(map=json.loads(sys.argv[1]))
spark = delta.configure_spark_with_delta_pip(builder).getOrCreate()
spark.read.format("delta").load("lake/events").write.format("delta").saveAsTable("named")
for table in ("lake/events", "named"):
    report = zadapter.optimize(table, by="a", target_file_size="32KB")
    assert report.share_after < report.share_before / 2, report
print(spark.sql("DESCRIBE DETAIL named").first().location)
"""
BY_GUIDE = """
import json, sys
import zadapter
from pyspark.sql import SparkSession

SparkSession.builder.config(map=json.loads(sys.argv[1])).getOrCreate()
report = zadapter.optimize("db.events", by="a", target_file_size="32KB")
assert report.share_after < report.share_before / 2, report
print(zadapter.optimize("ice.db.events", by="a", target_file_size="32KB").nothing_to_do)
"""


@pytest.mark.slow
def test_delta_by_its_own_function(user):
    """As Delta's quick start has it, by path and by name; zadapter takes the active session."""
    path = str(user.folder / "lake" / "events")
    delta_table(path, ROWS)
    settings = documented(DELTA)
    del settings["spark.jars.packages"]  # the function's job

    location = user.python(BY_DELTA, json.dumps(settings)).split()[-1]

    assert of_delta(path) == of_delta(location.removeprefix("file:")) == sorted_rows(rows(ROWS))


@pytest.mark.slow
def test_a_table_of_pyiceberg(user):
    """Made and read by pyiceberg in its SQL catalog, which the documents give to Spark."""
    warehouse = user.folder / "iceberg"
    catalog = SqlCatalog(
        "ice", uri=f"sqlite:///{user.folder}/iceberg.db", warehouse=warehouse.as_uri()
    )
    catalog.create_namespace("db")
    every = rows(ROWS)
    table = catalog.create_table("db.events", every.schema)
    for start in range(0, ROWS, ROWS // 4):
        table.append(pa.table(every.slice(start, ROWS // 4)))

    done = user.python(BY_GUIDE, json.dumps(documented(ICEBERG, user.folder)))

    found = catalog.load_table("db.events")
    files = [task.file.file_path.removeprefix("file:") for task in found.scan().plan_files()]
    few = [*found.scan(row_filter="a < 5000").plan_files()]
    assert done.splitlines()[-1] == "True"
    assert sorted_rows(found.scan().to_arrow()) == of_files(files) == sorted_rows(every)
    assert len(few) < len(files) / 2
