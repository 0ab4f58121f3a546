"""Others drop, clean up or partition a table anew while a rewrite is under way."""

from pathlib import Path

import pytest

from zadapter.base.commit_attempts import Backoff
from zadapter.errors import ConflictError, ReplacedTableError, VerificationError
from zadapter_iceberg import IcebergBackend

AT_ONCE = Backoff(attempts=3, initial=0.0)


def numbers(spark, rows=2_000):
    return spark.range(rows).selectExpr("id * 7919 % 2003 AS a", "id % 2 AS b", "id AS c")


def stored(lake, name):
    """Every Parquet file under the table, referenced or not."""
    return {str(path) for path in Path(lake.folder(name)).rglob("*.parquet")}


def test_files_move_when_a_partition_field_was_dropped_meanwhile(lake, spark, between):
    """The rewrite lands in the partitions that it was planned for, and the next one leaves them."""
    name = lake.make(numbers(spark), "b")
    rival = between(lambda: lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD b"))
    before = lake.read(name)

    lake.optimize(name, backend=rival, backoff=AT_ONCE)
    lake.optimize(name)

    spec = lake.table(name).spec().spec_id
    assert {file.spec_id for file in lake.files(name)} == {spec}
    assert lake.optimize(name).nothing_to_do
    assert before == lake.read(name)


def test_a_table_that_was_made_again_gets_nothing(lake, spark, between):
    """Another table has the name; what was written for the old one may be in somebody's copy."""
    name = lake.make(numbers(spark))
    staged = []

    def again():
        staged.extend(path for path in stored(lake, name) if "zadapter-" in path)
        lake.sql(f"DROP TABLE {name}")
        lake.sql(f"CREATE TABLE {name} (a bigint, b bigint, c bigint) USING iceberg")
        lake.append(name, numbers(spark, 10))

    with pytest.raises(ReplacedTableError):
        lake.optimize(name, backend=between(again), backoff=AT_ONCE)

    assert len(lake.read(name)) == 10
    assert staged
    assert all(Path(path).exists() for path in staged)


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_clean_up_right_before_an_attempt_stops_it(lake, spark, attempts):
    """Files were verified, and taken by somebody who removes orphans without patience."""
    name = lake.make(numbers(spark))
    before = lake.read(name)
    actions = lake.jvm.org.apache.iceberg.spark.actions.SparkActions.get(lake.session)

    class Lost(IcebergBackend):
        tried = 0

        def commit(self, rewrite):
            Lost.tried += 1
            if Lost.tried < attempts:
                raise ConflictError("the race is lost")
            later = lake.jvm.java.lang.System.currentTimeMillis() + 60_000
            actions.deleteOrphanFiles(lake.java(name)).olderThan(later).execute()
            return super().commit(rewrite)

    with pytest.raises(VerificationError, match="is missing; nothing was"):
        lake.optimize(name, backend=Lost, backoff=AT_ONCE)

    assert before == lake.read(name)
    assert Lost.tried == attempts
