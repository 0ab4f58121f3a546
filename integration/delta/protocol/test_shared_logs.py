"""Delta's cache of logs belongs to all threads; what it has may be another table's."""

import shutil

import deltalake
import pytest

import zadapter
from tests.kit.variants import slow
from zadapter import Backoff
from zadapter.errors import ReplacedTableError
from zadapter_delta import DeltaBackend

NOW = Backoff(initial=0.0, attempts=4)


def instance(spark, path):
    """Which ``DeltaLog`` another thread gets; Delta's lock of commits is one per instance."""
    jvm = spark._jvm  # noqa: SLF001
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)  # noqa: SLF001
    return jvm.java.lang.System.identityHashCode(log)


@pytest.mark.slow
def test_all_threads_keep_their_log(lake, spark):
    """Whatever is called, and however often a commit is tried again."""
    rows = spark.range(200).selectExpr("id a", "array(id) s", "id b")
    path = lake.make(rows, dataSkippingNumIndexedCols="1")
    before = instance(spark, path)

    lake.plan(path)
    lake.optimize(path)
    lake.optimize(path, by=["b"], force=True, collect_stats=True)
    zadapter.audit(path, backend="delta", spark=spark)
    zadapter.migrate(path, to="parquet", target=f"{path}-new", spark=spark)

    assert instance(spark, path) == before


def test_a_conflict_leaves_the_log_to_all_threads(lake, spark, between):
    """The commit is tried again on the same one."""
    path = lake.make(spark.range(200).selectExpr("id a", "id % 2 p"), partition_by=["p"])
    before = instance(spark, path)
    rival = lambda: lake.sql(f"DELETE FROM delta.`{path}` WHERE p = 1")  # noqa: E731

    report = lake.optimize(path, backend=between(rival), backoff=NOW)

    assert len(report.stale) == 1
    assert instance(spark, path) == before


def of_another_process(lake, spark, path):
    """Put another table in the folder *path*, with a checkpoint of the same version."""
    other = f"{path}-other"
    _with_checkpoint(spark, other, "id a", "'new' s")
    shutil.rmtree(path)
    shutil.move(other, path)


def commits(lake, path):
    """The actions of each version, without checkpoints of the second version of their format."""
    return [actions for actions in lake.log(path) if "commitInfo" in actions[0]]


def _with_checkpoint(spark, path, *columns):
    for first in (0, 10, 20):
        rows = spark.range(first, first + 10).selectExpr(*columns).coalesce(1)
        writer = rows.write.format("delta").mode("append").option("delta.checkpointInterval", "2")
        writer.option("delta.checkpointPolicy", "v2").save(path)


@pytest.mark.slow
def test_a_checkpoint_of_another_table_is_not_taken_from_memory(lake, spark):
    """Delta takes the checkpoint that it knows, which is gone, for one of the same version."""
    path = str(lake.folder / "replaced")
    _with_checkpoint(spark, path, "id a")
    assert lake.plan(path).files
    of_another_process(lake, spark, path)

    report = lake.optimize(path, force=True)

    assert report.rows_added == 30
    log = commits(lake, path)
    assert len(log) == 4
    assert {a["remove"]["path"] for a in log[3] if "remove" in a} == {
        a["add"]["path"] for v in log[:3] for a in v if "add" in a
    }


def test_another_table_gets_nothing_of_a_plan(lake, spark, between):
    """Its checkpoint and its versions have the same numbers."""
    path = str(lake.folder / "replaced")
    _with_checkpoint(spark, path, "id a")

    swap = lambda: of_another_process(lake, spark, path)  # noqa: E731
    with pytest.raises(ReplacedTableError):
        lake.optimize(path, backend=between(swap), backoff=NOW)

    assert len(commits(lake, path)) == 3


@pytest.mark.parametrize("more", [1, *slow(0)])
def test_a_copy_that_was_put_back_is_the_same_table(lake, spark, between, more):
    """Its id is the same, and so are its files; rows that were added to the copy stay."""
    path = lake.make(spark.range(100).selectExpr("id a"))

    def put_back():
        shutil.copytree(path, f"{path}-copy", copy_function=shutil.copyfile)
        shutil.rmtree(path)
        shutil.move(f"{path}-copy", path)
        for _ in range(more):
            spark.range(100, 110).selectExpr("id a").write.format("delta").mode("append").save(path)

    report = lake.optimize(path, backend=between(put_back), backoff=NOW)

    assert report.rows_added == 100
    rows = deltalake.DeltaTable(path).to_pyarrow_table()["a"].to_pylist()
    assert sorted(rows) == list(range(100 + 10 * more))


@pytest.mark.slow
def test_a_table_that_was_dropped_and_created_is_another_one_from_then_on(lake, spark):
    """The session has looked at the folder before, and at no time in between."""
    path = lake.make(spark.range(100).selectExpr("id a"))
    first = DeltaBackend(spark).snapshot(path)
    shutil.rmtree(path)
    deltalake.write_deltalake(path, spark.range(7).selectExpr("id a").toArrow())

    second = DeltaBackend(spark).snapshot(path)

    assert first.id != second.id == str(deltalake.DeltaTable(path).metadata().id)
    assert lake.optimize(path, force=True).rows_added == 7
