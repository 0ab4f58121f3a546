"""What users do, with the releases of one cell."""

import json
import os
import subprocess
import sys
from collections import Counter
from urllib.request import Request, urlopen

import pytest
from pyspark.sql import functions as F

import zadapter
from integration.kit.lakes import interrupted
from integration.kit.network import HOST
from integration.kit.servers import answers, free_port, wait_for
from zadapter.backend.builds import minor
from zadapter.backend.plugins import formats, load
from zadapter.errors import SessionError
from zadapter.rewrite import self_test
from zadapter.spark.compat.spark_api import keys_of_partitions
from zadapter.spark.library_builds import describe_untested
from zadapter.spark.settings import CATALOG, EXTENSIONS

OWN_SESSION = """
import json, sys
import zadapter
from pyspark.sql import SparkSession

spark = SparkSession.builder.config(map=json.loads(sys.argv[1])).getOrCreate()
spark.range(2000).repartition(4).selectExpr("id a", "id % 7 b").write.format("delta").save("events")
report = zadapter.optimize("events", by="a", target_file_size="4KB")
assert report.share_after < report.share_before, report
print(spark.read.format("delta").load("events").selectExpr("sum(a)").first()[0])
"""


ON_S3 = """
import json, sys
import zadapter, zadapter.spark

conf, formats = map(json.loads, sys.argv[1:])
spark = zadapter.spark.session(conf, formats=formats, stores=["s3"])
rows = spark.range(2000).selectExpr("id a", "id % 2 p", "md5(string(id)) t").repartition(4)
for name in [*formats, "parquet"]:
    table = f"s3://lake/db/{name}"
    if name == "iceberg":
        rows.writeTo("lake.db.iceberg").using(name).partitionedBy("p").create()
    else:
        rows.write.format(name).partitionBy("p").save(table)
    options = {"by": "a", "target_file_size": "4KB", "backend": name, "spark": spark}
    report = zadapter.optimize(table, **options)
    assert report.share_after < report.share_before, report
    assert zadapter.optimize(table, **options).nothing_to_do
    print(zadapter.read(table, backend=name, spark=spark).selectExpr("sum(a)").first()[0])
"""


def rows_of(spark, start, end):
    """Rows with a key, a partition and a text."""
    return spark.range(start, end).selectExpr("id a", "id % 3 p", "concat('v', id % 11) t")


def counted(rows):
    """The rows of a DataFrame, regardless of their order."""
    return Counter(map(tuple, rows.select("a", "p", "t").collect()))


def read(spark, table):
    """The rows of a table, read without zadapter."""
    by_path = spark.read.format("delta").load if "/" in table else spark.table
    return counted(by_path(table))


@pytest.fixture(params=["delta", "iceberg"])
def table(request, spark, cell, tmp_path):
    """An empty name for a table of each format."""
    if request.param not in cell.versions:
        pytest.skip(f"no library of {request.param}")
    if request.param == "delta":
        return str(tmp_path / "events")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.stories")
    return f"ice.stories.{tmp_path.name.replace('-', '_')}"


def create(spark, table, rows):
    """Create a table that is partitioned by p and has deletion vectors; return its name in SQL."""
    if "/" in table:
        writer = rows.write.format("delta").option("delta.enableDeletionVectors", "true")
        writer.partitionBy("p").save(table)
        return f"delta.`{table}`"
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    writer = rows.writeTo(table).using("iceberg").partitionedBy(F.col("p"))
    for key, value in properties.items():
        writer = writer.tableProperty(key, value)
    writer.create()
    return table


def append(table, rows):
    """Append rows without zadapter."""
    if "/" in table:
        rows.write.format("delta").mode("append").save(table)
    else:
        rows.writeTo(table).append()


def test_partitions_and_deletion_vectors(spark, table):
    """Deleted rows stay deleted, and filters read fewer files."""
    name = create(spark, table, rows_of(spark, 0, 12_000).repartition(4))
    spark.sql(f"DELETE FROM {name} WHERE a % 10 = 1")
    before = read(spark, table)
    options = {"by": "a", "target_file_size": "4KB", "spark": spark}

    report = zadapter.optimize(table, verify="checksum", **options)

    assert report.rows_added == 10_800
    assert report.verification.untested is None
    assert report.share_after < report.share_before
    assert read(spark, table) == before
    assert zadapter.files(table, where="a = 5", spark=spark).num_rows <= report.files_added / 2
    assert zadapter.plan(table, where="abs(a) = 5", force=True, **options).jobs == 1
    assert zadapter.optimize(table, **options).nothing_to_do


@pytest.mark.parametrize("copies", [False, True])
def test_rows_deleted_during_a_rewrite_stay_deleted(spark, table, copies):
    """A rival's rows are marked in the new files, or these are written again without them."""
    name = create(spark, table, rows_of(spark, 0, 1_500).coalesce(1))
    for start in range(1_500, 6_000, 1_500):
        append(table, rows_of(spark, start, start + 1_500).coalesce(1))
    if copies and "/" in table:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES (delta.enableDeletionVectors = false)")
    elif copies:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')")
    after = []

    def rival():
        spark.sql(f"DELETE FROM {name} WHERE {'a = 7' if copies else 'a < 40 AND p = 1'}")
        after.append(read(spark, table))

    backend = interrupted(load("delta" if "/" in table else "iceberg"), rival)
    options = {"by": "a", "target_file_size": "4KB", "spark": spark}

    report = zadapter.optimize(table, backend=backend, max_rebase=0.6, **options)

    assert report.stale == ()
    assert report.rebased.rows >= (100 if copies else 13)
    assert read(spark, table) == after[0]


def test_a_partitioned_folder_of_parquet(spark, tmp_path):
    """Values of partitions are in the names of folders, rows that are appended in new files."""
    table = str(tmp_path / "events")
    rows_of(spark, 0, 12_000).repartition(4).write.partitionBy("p").parquet(table)
    options = {"backend": "parquet", "spark": spark}
    asked = {"by": "a", "target_file_size": "4KB", "verify": "checksum", **options}

    report = zadapter.optimize(table, **asked)
    more = rows_of(spark, 12_000, 12_600).withColumn("p", F.col("p").cast("int"))
    zadapter.append(table, more, **options)
    zadapter.delete(table, "a % 10 = 1", **options)
    zadapter.optimize(table, **asked)

    assert report.verification.untested is None
    assert report.share_after < report.share_before
    found = zadapter.read(table, **options)
    assert counted(found) == counted(rows_of(spark, 0, 12_600).where("a % 10 <> 1"))
    assert zadapter.optimize(table, **asked).nothing_to_do


def test_appends_are_merged(spark, table):
    """Small files that were appended since are merged, deleted rows and all."""
    name = create(spark, table, rows_of(spark, 0, 12_000).repartition(4))
    options = {"by": "a", "target_file_size": "4KB", "spark": spark}
    zadapter.optimize(table, **options)
    for start in range(12_000, 12_600, 100):
        append(table, rows_of(spark, start, start + 100).repartition(2))
    spark.sql(f"DELETE FROM {name} WHERE a % 100 = 1")
    before = read(spark, table)

    report = zadapter.optimize(table, **options)

    assert report.files_removed > report.files_added
    assert read(spark, table) == before
    assert zadapter.optimize(table, **options).nothing_to_do


def test_a_migration_each_way(spark, cell, tmp_path):
    """From Delta to Iceberg and back, with what was appended meanwhile."""
    if "iceberg" not in cell.versions:
        pytest.skip("no library of iceberg")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.stories")
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    there = f"ice.stories.{tmp_path.name.replace('-', '_')}"
    create(spark, old, rows_of(spark, 0, 900).repartition(2))
    zadapter.optimize(old, by="a", target_file_size="4KB", spark=spark)

    zadapter.migrate(old, to="iceberg", target=there, spark=spark)
    append(old, rows_of(spark, 900, 1_000))
    zadapter.migrate(old, to="iceberg", target=there, follow=True, spark=spark)
    zadapter.migrate(there, to="delta", target=new, spark=spark)

    assert read(spark, there) == read(spark, new) == counted(rows_of(spark, 0, 1_000))


@pytest.mark.parametrize("name", ["delta", "iceberg", "parquet"])
def test_the_releases_are_tested_ones(spark, cell, name):
    """There is no warning with them, and the self-test of others would pass."""
    if name not in {*cell.versions, "parquet"}:
        pytest.skip(f"no library of {name}")

    assert describe_untested(spark, load(name).format) is None
    assert self_test.passes(load(name), spark)


def test_procedures_of_sql(spark, cell):
    """Spark 3.5 has none, and the error says how to call zadapter there."""
    if minor(cell.spark) >= "4.0":
        pytest.skip("the suite of procedures has them")

    with pytest.raises(SessionError, match=r"4\.0 or later, or call zadapter in Python"):
        zadapter.register_procedures(spark)


def test_spark_finds_the_partition_of_each_number(spark):
    """The keys that stand for numbers, where Spark cannot partition by a number itself."""
    count = 700
    keys = spark.createDataFrame(list(enumerate(keys_of_partitions(count))), "n int, key int")

    placed = keys.repartition(count, "key").withColumn("place", F.spark_partition_id())

    assert placed.where("place <> n").count() == 0


def test_a_session_of_the_user(tmp_path, packages):
    """A new process with the settings that the documents state."""
    delta = formats()["delta"].library
    settings = {**packages, EXTENSIONS: delta.extension, CATALOG: delta.catalog}
    command = [sys.executable, "-c", OWN_SESSION, json.dumps(settings)]

    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, answer.stderr[-5_000:]
    assert answer.stdout.split()[-1] == str(sum(range(2_000)))
    assert "untested" not in answer.stderr


@pytest.fixture
def lake():
    """The variables of a server that speaks the protocol of S3, with the bucket ``lake``."""
    port = free_port()
    uri = f"http://{HOST}:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(server, lambda: answers(port))
            urlopen(Request(f"{uri}/lake", method="PUT")).close()
            yield {"AWS_ENDPOINT_URL": uri, "AWS_REGION": "us-east-1"}
        finally:
            server.terminate()


@pytest.mark.parametrize("token", [{}, {"AWS_SESSION_TOKEN": "of an hour"}], ids=["key", "token"])
def test_tables_on_s3(tmp_path, cell, packages, lake, token):
    """S3A goes with the Hadoop of this Spark; keys are those of the environment."""
    catalog = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": "s3a://lake",
    }
    conf = {f"spark.sql.catalog.lake{key}": value for key, value in catalog.items()}
    conf = {**packages, **(conf if "iceberg" in cell.versions else {})}
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", **token}
    command = [sys.executable, "-c", ON_S3, json.dumps(conf), json.dumps([*cell.versions])]

    answer = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **lake, **keys},
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 0, answer.stderr[-5_000:]
    sums = [str(sum(range(2_000)))] * (len(cell.versions) + 1)
    assert answer.stdout.split()[-len(sums) :] == sums  # after what Ivy says
