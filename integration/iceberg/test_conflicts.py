"""Others write while a rewrite is under way."""

from contextlib import suppress
from pathlib import Path

import pytest

from tests.kit.variants import slow
from zadapter.base.commit_attempts import Backoff
from zadapter.errors import ConflictError, EngineError, StaleRewriteError, UnknownOutcomeError
from zadapter_iceberg import IcebergBackend
from zadapter_iceberg.commits import rewrites

AT_ONCE = Backoff(attempts=3, initial=0.0)


def numbers(spark, rows=2_000):
    return spark.range(rows).selectExpr("id * 7919 % 2003 AS a", "id % 2 AS b", "id AS c")


def stored(lake, name):
    """Every Parquet file under the table, referenced or not."""
    return {str(path) for path in Path(lake.folder(name)).rglob("*.parquet")}


def test_an_append_in_between_is_kept(lake, spark, between):
    """The rewrite lands by Iceberg's own retry, without reading anything again."""
    name = lake.make(numbers(spark))
    late = spark.range(7).selectExpr("-id a", "id b", "id c")

    report = lake.optimize(name, backend=between(lambda: lake.append(name, late)))

    assert len(report.versions) == 1
    assert report.stale == ()
    assert len(lake.read(name)) == 2_007


@pytest.mark.parametrize("version", [2, 3])
def test_a_delete_in_between_wins(lake, spark, between, version):
    """Without a rebase, new deletes on a file that is replaced stop the rewrite."""
    merging = {"write.delete.mode": "merge-on-read"}
    name = lake.make(numbers(spark), format_version=version, **merging)
    delete = between(lambda: lake.sql(f"DELETE FROM {name} WHERE a = 5"))

    with pytest.raises(StaleRewriteError):
        lake.optimize(name, backend=delete, backoff=AT_ONCE, max_rebase=0)

    assert lake.load(name).where("a = 5").count() == 0
    assert lake.load(name).count() == 1_999
    assert not any("zadapter-" in path for path in stored(lake, name))


def test_only_the_partition_that_changed_is_left_behind(lake, spark, between):
    """The other partitions' rewrites land, and the report names what did not."""
    name = lake.make(numbers(spark), "b", **{"write.delete.mode": "merge-on-read"})
    delete = between(lambda: lake.sql(f"DELETE FROM {name} WHERE b = 1 AND a < 20"))

    report = lake.optimize(name, backend=delete, backoff=AT_ONCE, max_rebase=0)

    assert len(report.stale) == 1
    assert len(report.versions) == 1
    assert lake.load(name).where("b = 1 AND a < 20").count() == 0
    assert {f.partition[0] for f in lake.files(name) if "zadapter-" in f.file_path} == {0}


def test_an_equality_delete_in_between_stays_effective(lake, spark, between):
    """It applies to the new files as well, and what was deleted before stays deleted."""
    name = lake.make(numbers(spark))
    lake.delete_equal(name, 11)

    lake.optimize(name, backend=between(lambda: lake.delete_equal(name, 12)))
    lake.sql(f"REFRESH TABLE {name}")

    assert lake.load(name).where("a IN (11, 12)").count() == 0
    assert lake.load(name).count() == 1_998


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM {} WHERE a = 5", "INSERT OVERWRITE {} SELECT a, b, c FROM {} WHERE a < 1000"],
)
def test_an_overwrite_in_between_wins(lake, spark, between, statement):
    """Files that are gone are not brought back."""
    name = lake.make(numbers(spark), **{"write.delete.mode": "copy-on-write"})
    rival = between(lambda: lake.sql(statement.replace("{}", name)))

    with suppress(ConflictError):
        lake.optimize(name, backend=rival, backoff=AT_ONCE)

    wanted = 1_999 if "DELETE" in statement else lake.load(name).where("a < 1000").count()
    assert len(lake.read(name)) == wanted


def test_of_two_rewrites_one_wins(lake, spark, between):
    """The second gives up, and takes its files away."""
    name = lake.make(numbers(spark))
    before = lake.read(name)
    rival = between(lambda: lake.optimize(name, by=["c"]))

    with pytest.raises(StaleRewriteError):
        lake.optimize(name, backend=rival, backoff=AT_ONCE)

    assert before == lake.read(name)
    assert stored(lake, name) >= {f.file_path.removeprefix("file:") for f in lake.files(name)}
    assert lake.table(name).properties["zadapter.columns"] == "c"


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {} RENAME COLUMN c TO d",
        "ALTER TABLE {} ADD PARTITION FIELD bucket(3, a)",
        *slow("ALTER TABLE {} ADD COLUMN e string", "ALTER TABLE {} DROP COLUMN b"),
    ],
)
def test_a_change_of_schema_spec_or_version_in_between_is_kept(lake, spark, between, statement):
    """Files know their columns by id and their spec by number, so the rewrite lands."""
    name = lake.make(numbers(spark))
    total = lake.load(name).selectExpr("sum(a)", "count(*)").first()

    report = lake.optimize(name, backend=between(lambda: lake.sql(statement.format(name))))

    assert len(report.versions) == 1
    assert lake.load(name).selectExpr("sum(a)", "count(*)").first() == total
    assert len(lake.read(name)) == 2_000


def answer(monkeypatch, lake, kind, *, lands):
    """Have the answer to every commit go wrong."""
    real = rewrites._exchange  # noqa: SLF001

    def broken(jvm, transaction, located, rewrite):
        real(jvm, transaction, located, rewrite)
        if lands:
            transaction.commitTransaction()
        raise_as_java(lake, kind)

    monkeypatch.setattr(rewrites, "_exchange", broken)


def raise_as_java(lake, kind):
    """Raise what py4j makes of an exception of the JVM."""
    exceptions = lake.jvm.org.apache.iceberg.exceptions
    cause = lake.jvm.java.lang.RuntimeException("connection reset")
    thrown = {
        "unknown": lambda: exceptions.CommitStateUnknownException(cause),
        "failed": lambda: exceptions.CommitFailedException(cause, "lost the race", None),
        "runtime": lambda: cause,
    }[kind]()

    class ThrownError(Exception):
        java_exception = thrown

    raise ThrownError


@pytest.mark.parametrize("kind", ["unknown", "runtime"])
def test_a_lost_answer_is_found_by_the_commit_id(lake, spark, monkeypatch, kind):
    """The commit landed although it said otherwise: nothing is deleted, the report says so."""
    name = lake.make(numbers(spark))
    before = lake.read(name)
    answer(monkeypatch, lake, kind, lands=True)

    report = lake.optimize(name, backoff=AT_ONCE)

    assert before == lake.read(name)
    assert report.files_added == len(lake.files(name))


@pytest.mark.parametrize("kind", ["unknown", "runtime"])
def test_without_a_trace_the_outcome_is_unknown_and_files_stay(lake, spark, monkeypatch, kind):
    """What was written may still be committed by a request that is under way."""
    name = lake.make(numbers(spark))
    before = lake.read(name)
    answer(monkeypatch, lake, kind, lands=False)

    with pytest.raises(UnknownOutcomeError):
        lake.optimize(name, backoff=AT_ONCE)

    assert before == lake.read(name)
    assert any("zadapter-" in path for path in stored(lake, name))


def test_a_commit_that_has_expired_leaves_the_outcome_unknown(lake, spark, monkeypatch):
    """A client that tries twice loses to its own first try, whose snapshot others expire."""
    name = lake.make(numbers(spark))
    before = len(lake.read(name))
    rows = spark.range(3).selectExpr("id a", "id b", "id c")
    real = rewrites._exchange  # noqa: SLF001

    def expired(jvm, transaction, located, rewrite):
        real(jvm, transaction, located, rewrite)
        transaction.commitTransaction()
        for _ in range(2):
            lake.append(name, rows)
        later = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"
        lake.sql(f"CALL ice.system.expire_snapshots(table => '{name}', {later})")
        raise_as_java(lake, "failed")

    monkeypatch.setattr(rewrites, "_exchange", expired)
    with pytest.raises(UnknownOutcomeError):
        lake.optimize(name, backoff=AT_ONCE)

    assert len(lake.read(name)) == before + 6


def test_a_failure_after_the_commit_is_no_failure_of_it(lake, spark, monkeypatch):
    """The catalog goes away when the new head is looked up: what landed is never discarded."""
    name = lake.make(numbers(spark))
    before = lake.read(name)

    def gone(*_):
        raise ConnectionError("the catalog does not answer")

    monkeypatch.setattr(rewrites, "find_snapshot", gone)

    report = lake.optimize(name, backoff=AT_ONCE)

    assert report.versions == (None,)
    assert before == lake.read(name)


def test_an_expired_start_is_no_harm(lake, spark, between):
    """If the version that was read is expired meanwhile, the head is looked at instead."""
    name = lake.make(numbers(spark))
    before = len(lake.read(name))

    def expire():
        lake.append(name, spark.range(3).selectExpr("id a", "id b", "id c"))
        later = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"
        lake.sql(f"CALL ice.system.expire_snapshots(table => '{name}', {later})")

    report = lake.optimize(name, backend=between(expire), backoff=AT_ONCE)

    assert len(report.versions) == 1
    assert len(lake.read(name)) == before + 3


def test_files_that_vanish_before_the_commit_stop_it(lake, spark):
    """An orphan removal of zero patience took what was written: nothing is committed."""
    name = lake.make(numbers(spark))
    before = lake.read(name)

    class Vacuumed(IcebergBackend):
        def write(self, *arguments):
            written = super().write(*arguments)
            lake.jvm.java.io.File(next(iter(written.paths)).removeprefix("file:")).delete()
            return written

    with pytest.raises(Exception, match="missing"):
        lake.optimize(name, backend=Vacuumed)

    assert before == lake.read(name)


def test_a_failure_leaves_nothing_in_sparks_caches(lake, spark):
    """Neither a failed nor a finished run holds on to tables, scans or files."""
    name = lake.make(numbers(spark))
    seen, cache = [], IcebergBackend(spark)._jvm  # noqa: SLF001
    held = cache.tables.size()

    class Failing(IcebergBackend):
        def stage(self, *arguments):
            seen.append(self._jvm.tables.size())
            raise OSError("disk full")

    with pytest.raises(EngineError, match="disk full"):
        lake.optimize(name, backend=Failing)
    lake.optimize(name)

    assert seen[0] > held
    assert cache.tables.size() == held
    assert list(cache.scans.fetchSetIds(lake.java(name))) == []


def test_a_hadoop_tables_failure_is_not_believed(lake, spark, monkeypatch, tmp_path):
    """A rename that happened, and then an error: the head is looked at before anything goes."""
    path = f"file://{tmp_path}/by-path"
    rows = numbers(spark)
    tables = lake.jvm.org.apache.iceberg.hadoop.HadoopTables(
        lake.session.sessionState().newHadoopConf()
    )
    schema = lake.java(lake.make(rows)).schema()
    tables.create(schema, path)
    rows.repartition(4).write.format("iceberg").mode("append").save(path)
    before = sorted(map(str, spark.read.format("iceberg").load(path).collect()))
    answer(monkeypatch, lake, "failed", lands=True)

    report = lake.optimize(path, backend="iceberg", backoff=AT_ONCE)

    assert report.files_added
    assert before == sorted(map(str, spark.read.format("iceberg").load(path).collect()))
    monkeypatch.undo()
    assert lake.optimize(path, backend="iceberg").plan.nothing_to_do
