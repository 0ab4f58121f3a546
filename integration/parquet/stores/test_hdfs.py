"""A table on HDFS, with a namenode and a datanode of its own."""

from datetime import timedelta
from uuid import uuid4

import pytest

import zadapter
from integration.parquet.stores.hdfs import file_system
from tests.parquet.kit.log import ENTRY, entry_after, winners_of_a_race
from zadapter import errors
from zadapter_parquet.log.log import Log
from zadapter_parquet.store.contract import Outcome, probe
from zadapter_parquet.store.hadoop import HadoopFiles


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory):
    """The URI of an empty HDFS."""
    with file_system(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


@pytest.fixture
def table(hdfs, spark):
    """A folder of 2 000 rows in four files, partitioned."""
    path = f"{hdfs}/lake/{uuid4().hex}"
    rows = spark.range(2_000).selectExpr("id * 7919 % 2003 AS a", "id AS b", "id % 2 AS p")
    rows.repartition(4).write.partitionBy("p").parquet(path)
    return path


@pytest.fixture
def files(hdfs, spark, table):
    return HadoopFiles(spark, table)


@pytest.mark.slow
def test_a_version_is_claimed_once(files):
    """The store passes the probe; of many who create a file one wins, and its bytes are there."""
    probe(files)
    log = Log(files, "t")
    log.claim(ENTRY)
    winners = winners_of_a_race(files)

    assert winners == [log.head().transaction]
    assert files.create("_zadapter/log/00000000000000000001.json", b"other") is Outcome.EXISTS


@pytest.mark.slow
def test_later_versions_are_seen(files):
    log = Log(files, "t")
    log.claim(ENTRY)
    for _ in range(11):
        log.claim(entry_after(log))

    def path(version):
        return f"_zadapter/log/{version:020}.json"

    assert log.head().version == 11
    assert [files.has_after(path(version)) for version in range(12)] == [True] * 11 + [False]
    assert not files.has_after(path(10**20 - 1))


@pytest.mark.slow
def test_stories_end_as_on_local_disk(table, spark):
    """Optimized, appended to, deleted from, read at any version, cleaned up."""
    before = zadapter.read(table, backend="parquet", spark=spark).count()
    report = zadapter.optimize(table, by=["a", "b"], target_file_size="2KB", backend="parquet",
                               spark=spark)  # fmt: skip
    assert report.share_after < 0.7
    assert zadapter.append(table, spark.sql("SELECT 5000L a, 1L b, 1 p")).version == 2
    assert zadapter.delete(table, "a = 5000", spark=spark).rows_deleted == 1

    few = zadapter.files(table, where="a < 30", row_groups=True, spark=spark)
    every = zadapter.files(table, spark=spark)
    assert 0 < few.num_rows < every.num_rows / 2
    assert zadapter.read(table, where="a < 30", spark=spark).count() == 30
    assert [zadapter.read(table, version=v, spark=spark).count() for v in range(4)] == [
        before, before, before + 1, before,
    ]  # fmt: skip
    gone = zadapter.vacuum(table, older_than=timedelta(0), dry_run=False, spark=spark)
    assert gone.paths
    assert zadapter.read(table, spark=spark).count() == before
    with pytest.raises(Exception, match="no-whole-version"):
        spark.read.parquet(table).collect()
    zadapter.publish(table, spark=spark)
    assert spark.read.parquet(table).count() == before


@pytest.mark.slow
def test_what_is_not_there(hdfs, spark):
    with pytest.raises(errors.UnknownTableError, match="folder not found"):
        zadapter.optimize(f"{hdfs}/none", by="a", backend="parquet", spark=spark)


def test_a_file_system_that_may_look_first_and_create_then_is_refused(spark):
    with pytest.raises(errors.UnsupportedError, match="HDFS"):
        zadapter.optimize("webhdfs://localhost:1/t", by="a", backend="parquet", spark=spark)
