"""A standalone cluster, whose executors have neither zadapter nor any Python."""

import json

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from integration.journeys.settings import on_cluster
from integration.kit.standalone import cluster
from integration.kit.witnesses import of_delta, of_files, rows, sorted_rows

ROWS = 40_000
CODE = """
import json, sys
import zadapter, zadapter.spark

spark = zadapter.spark.session(json.loads(sys.argv[1]), formats=["delta", "iceberg", "parquet"])
rows = spark.range(0, 40_000, 1, 4).selectExpr("id * 7919 % 200003 AS a", "id AS b")
rows.write.format("delta").save("lake/delta")
rows.write.parquet("lake/parquet")
spark.sql("CREATE NAMESPACE ice.db")
rows.writeTo("ice.db.events").create()

read = {}
for table, backend in (("lake/delta", None), ("ice.db.events", None), ("lake/parquet", "parquet")):
    arguments = {"backend": backend, "spark": spark}
    report = zadapter.optimize(table, by="a", target_file_size="32KB", **arguments)
    few = zadapter.files(table, where="a < 5000", **arguments)["path"].to_pylist()
    every = zadapter.files(table, **arguments)["path"].to_pylist()
    read[table] = [report.share_before, report.share_after, few, every]
executors = spark._jsc.sc().getExecutorMemoryStatus().size() - 1
print(json.dumps([spark.sparkContext.master, executors, read]))
spark.stop()
"""


@pytest.fixture
def master(user, tmp_path_factory):
    """The address of a cluster, which knows nothing of the user's folder and of Python."""
    folder = tmp_path_factory.mktemp("cluster")
    bare = user.environment()
    del bare["PYTHONPATH"]
    with cluster(folder, bare) as (url, _):
        yield url


@pytest.mark.slow
def test_tables_of_every_format_are_optimized(user, master):
    """By relative paths: executors have another working folder. Others read the same rows."""
    answered = user.python(
        CODE, json.dumps(on_cluster(user.folder, master)), PYSPARK_PYTHON="/no/python"
    )

    used, executors, read = json.loads(answered.splitlines()[-1])
    catalog = SqlCatalog("ice", uri=f"sqlite:///{user.folder}/iceberg.db")
    parquet = [file.removeprefix("file:") for file in read["lake/parquet"][3]]
    wanted = sorted_rows(rows(ROWS))
    assert (used, executors) == (master, 1)
    assert of_delta(str(user.folder / "lake" / "delta")) == wanted
    assert sorted_rows(catalog.load_table("db.events").scan().to_arrow()) == wanted
    assert of_files(parquet) == wanted
    for before, after, few, every in read.values():
        assert after < before / 2
        assert len(few) < len(every) / 2
