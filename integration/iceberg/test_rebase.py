"""Rows that other writers delete while a rewrite moves them."""

from collections import Counter
from pathlib import Path

import pytest

from tests.kit.variants import slow
from zadapter.base.commit_attempts import Backoff
from zadapter.errors import StaleRewriteError

AT_ONCE = Backoff(attempts=4, initial=0.0)
ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
ON_WRITE = {"write.delete.mode": "copy-on-write"}
EVERY_TYPE = (
    "id % 7 a",
    "id % 3 p",
    "if(id % 5 = 0, null, id % 4) n",
    "case when id % 6 = 0 then double('NaN') when id % 6 = 1 then -0.0D else id % 2 end f",
    "cast(cast(id % 11 as decimal(20, 5)) / 3 as decimal(30, 10)) d",
    "named_struct('x', id % 2, 'y', array(id % 3, null)) s",
    "map('k', id % 2) m",
    "date_add(date'2024-01-01', cast(id % 9 as int)) day",
)


def numbers(spark, rows=3_000):
    return spark.range(rows).selectExpr("id AS a", "id % 2 AS b", "id * 7919 % 3001 AS s")


def stored(lake, name):
    """Every file of data under the table, referenced or not."""
    return {path for path in Path(lake.folder(name), "data").rglob("*") if path.is_file()}


@pytest.mark.parametrize("version", [2, 3])
def test_a_delete_meanwhile_costs_only_its_rows(lake, spark, between, version):
    """All files are rewritten, and the deleted rows stay deleted, for Spark and for pyiceberg."""
    name = lake.make(numbers(spark), format_version=version, **ON_READ)
    rival = between(lambda: lake.sql(f"DELETE FROM {name} WHERE s < 31"))

    report = lake.optimize(name, backend=rival, backoff=AT_ONCE)

    assert report.stale == ()
    assert report.rebased.rows == report.rows_removed - report.rows_added + 31
    assert all("zadapter-" in file.file_path for file in lake.files(name))
    assert min(r.s for r in lake.load(name).select("s").collect()) == 31
    assert len(lake.read(name)) == lake.load(name).count()
    assert lake.history(name)[-1][0] == "replace"


@pytest.mark.parametrize("version", [3, *slow(2)])
def test_a_rewritten_file_leaves_the_exchange(lake, spark, between, version):
    """A copy-on-write rival has replaced one of five files, and no table has a delete file."""
    name = lake.make(numbers(spark), files=5, format_version=version, **ON_WRITE)
    rival = between(lambda: lake.sql(f"DELETE FROM {name} WHERE s = 77"))
    before = lake.load(name).count()

    report = lake.optimize(name, backend=rival, backoff=AT_ONCE, max_rebase=0.3)

    assert report.stale == ()
    assert report.files_removed == 4
    assert report.rebased.rows > 100
    assert lake.load(name).count() == lake.load(name).distinct().count() == before - 1
    assert len(lake.read(name)) == before - 1


@pytest.mark.parametrize("partition", ["p", *slow("", "bucket(4, a)")])
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {} WHERE a = 3 AND p = 1",
        *slow(
            "UPDATE {} SET n = 99 WHERE a = 3 AND p = 1",
            "MERGE INTO {} t USING (SELECT 3 a, 1 p) s ON t.a = s.a AND t.p = s.p "
            "WHEN MATCHED AND n IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET n = 99",
        ),
    ],
)
@pytest.mark.parametrize("version", [2, *slow(3)])
def test_equal_rows_of_every_type_leave_as_often_as_they_were_deleted(
    lake, spark, between, statement, version, partition
):
    """Duplicates by the thousand, NaN and -0.0, decimals, structs, arrays and maps."""
    rows = spark.range(6_000).selectExpr(*EVERY_TYPE)
    modes = {**ON_READ, "write.merge.mode": "merge-on-read"}
    name = lake.make(rows, partition, format_version=version, **modes)
    lake.sql(f"DELETE FROM {name} WHERE a = 4 AND n = 2")  # deletes before the plan
    after = []

    def rival():
        lake.sql(statement.format(name))
        after.extend(map(str, lake.load(name).collect()))

    report = lake.optimize(name, backend=between(rival), backoff=AT_ONCE)

    assert report.stale == ()
    assert report.rebased.rows > 0
    assert Counter(map(str, lake.load(name).collect())) == Counter(after)


def test_row_ids_stay_with_their_rows(lake, spark, between):
    """Of equal rows, the one with the deleted id leaves."""
    name = lake.make(spark.range(2_000).selectExpr("id % 2 a"), format_version=3, **ON_READ)
    before = {r[0] for r in lake.sql(f"SELECT _row_id FROM {name}").collect()}
    gone = {each for each in before if each % 50 == 7}

    rival = between(lambda: lake.sql(f"DELETE FROM {name} WHERE _row_id % 50 = 7"))
    report = lake.optimize(name, backend=rival, backoff=AT_ONCE)

    assert report.rebased.rows == len(gone)
    kept = [r[0] for r in lake.sql(f"SELECT _row_id FROM {name}").collect()]
    assert sorted(kept) == sorted(before - gone)


@pytest.mark.slow
def test_several_rivals_in_turn_are_followed(lake, spark, between):
    """A second conflict during the rebase is followed from the plan again."""
    name = lake.make(numbers(spark), format_version=3, **ON_READ)
    deletes = [lambda n=n: lake.sql(f"DELETE FROM {name} WHERE s % 100 = {n}") for n in range(3)]

    lake.optimize(name, backend=between(*deletes), backoff=AT_ONCE)

    assert {r.s % 100 for r in lake.load(name).collect()} == set(range(3, 100))
    named = {f.file_path for f in lake.files(name)}
    named |= {r[0] for r in lake.sql(f"SELECT file_path FROM {name}.delete_files").collect()}
    ours = {f"file:{path}" for path in stored(lake, name) if "zadapter-" in str(path)}
    assert {path for path in ours if not path.endswith(".crc")} <= named


@pytest.mark.parametrize(
    ("statement", "max_rebase"),
    [("DELETE FROM {} WHERE s < 31", 0), *[("DELETE FROM {} WHERE s < 1500", 0.2)]],
)
def test_what_cannot_be_followed_stops_the_rewrite(lake, spark, between, statement, max_rebase):
    """Too many rows, or no rebase at all: the present version stays."""
    name = lake.make(numbers(spark), **ON_READ)
    rival = between(lambda: lake.sql(statement.format(name)))

    with pytest.raises(StaleRewriteError):
        lake.optimize(name, backend=rival, backoff=AT_ONCE, max_rebase=max_rebase)

    assert not any("zadapter-" in str(path) for path in stored(lake, name))


def test_a_version_without_row_level_deletes_keeps_its_own(lake, spark, between):
    """Tables of version 1 cannot mark rows, so the rewrite is dropped."""
    name = lake.make(numbers(spark), format_version=1)
    rival = between(lambda: lake.sql(f"DELETE FROM {name} WHERE s < 31"))

    with pytest.raises(StaleRewriteError):
        lake.optimize(name, backend=rival, backoff=AT_ONCE)


def test_a_rival_that_is_not_spark(lake, spark, between):
    """Pyiceberg replaces a file; the new files that hold its rows are written again."""
    name = lake.make(numbers(spark), files=6)
    rival = between(lambda: lake.table(name).delete("s == 77"))

    report = lake.optimize(name, backend=rival, backoff=AT_ONCE)

    assert report.stale == ()
    assert report.rebased.rows >= 500
    lake.sql(f"REFRESH TABLE {name}")
    assert lake.load(name).where("s = 77").count() == 0
    assert len(lake.read(name)) == lake.load(name).distinct().count() == 2_999
