"""Two others write while a rewrite is under way."""

import pytest

from integration.iceberg.conftest import Tables
from integration.kit.rivals import FIRST, SHARED, Rival, Trial, by_key, rows_of, run, source, trials
from zadapter_iceberg import IcebergBackend
from zadapter_iceberg.commits import rewrites

LATER = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"


class Rivals(Tables):
    """Tables that rivals name as Spark does."""

    version = 2

    def called(self, name):
        return name

    def create(self, name, start, stop):
        said = f"'format-version'='{self.version}', 'write.delete.mode'='merge-on-read'"
        self.sql(
            f"CREATE TABLE {name} (a bigint, b bigint, c bigint) USING iceberg PARTITIONED BY (b) "
            f"TBLPROPERTIES ({said}, 'write.update.mode'='merge-on-read')"
        )
        self.append(
            name, self.sql(source(start, stop)).repartition(4, "a").sortWithinPartitions("b")
        )

    def values(self, name):
        """The rows by pyiceberg, or by Spark where pyiceberg does not read the deletes."""
        self.sql(f"REFRESH TABLE {name}")
        try:
            found = self.table(name).scan().to_arrow()
        except (ValueError, NotImplementedError):
            found = self.load(name).toArrow()
        return by_key(found)


def call(text):
    return lambda lake, name, n: lake.sql(f"CALL ice.system.{text.format(name)}")


def remove_orphans(lake, name, n):
    """As the procedure does, which refuses to take files of the last 24 hours."""
    actions = lake.jvm.org.apache.iceberg.spark.actions.SparkActions.get(lake.session)
    later = lake.jvm.java.lang.System.currentTimeMillis() + 60_000
    actions.deleteOrphanFiles(lake.java(name)).olderThan(later).execute()


def delete_equal(lake, name, n):
    """Delete a = 20 + n by equality, in its partition if there are any."""
    fields = [str(field.name()) for field in lake.java(name).spec().fields()]
    lake.delete_equal(name, 20 + n, partition=f"b={n % 2}" if fields == ["b"] else None)


def without_equal(rows, first, n):
    return {a: rest for a, rest in rows.items() if a != 20 + n}


def roll_back(lake, name, n):
    first = min(lake.java(name).snapshots(), key=lambda each: each.timestampMillis())
    lake.sql(f"CALL ice.system.rollback_to_snapshot('{name}', {first.snapshotId()})")


def respec(lake, name, n):
    """Drop the partition field; the second time, add another one."""
    fields = [str(field.name()) for field in lake.java(name).spec().fields()]
    change = "DROP PARTITION FIELD b" if "b" in fields else "ADD PARTITION FIELD bucket(2, a)"
    lake.sql(f"ALTER TABLE {name} {change}")


def drop(lake, name, n):
    lake.sql(f"DROP TABLE {name}")
    lake.create(name, 3_000 + n, 3_050)


RIVALS = SHARED | {
    "equality delete": Rival(act=delete_equal, effect=without_equal),
    "expire": Rival(act=call("expire_snapshots(table => '{}', " + LATER + ")")),
    "orphans": Rival(act=remove_orphans, cleans=True),
    "roll back": Rival(act=roll_back, effect=lambda rows, first, n: first, may_fail=True),
    "compaction": Rival(
        act=call("rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))")
    ),
    "position deletes": Rival(
        act=call(
            "rewrite_position_delete_files(table => '{}', options => map('rewrite-all', 'true'))"
        )
    ),
    "manifests": Rival(act=call("rewrite_manifests('{}')")),
    "spec": Rival(act=respec),
    "drop": Rival(
        act=drop, effect=lambda rows, first, n: rows_of(range(3_000 + n, 3_050)), makes=True
    ),
}
EVERY = trials(RIVALS)
SOME = [
    Trial("attempts", "equality delete", "append"),
    Trial("attempts", "append", "drop"),
    Trial("jobs", "equality delete", "expire"),
    Trial("within", "delete", "orphans"),
]


@pytest.mark.parametrize("version", [2, 3])
def test_rows_are_those_of_a_serial_order(spark, catalog, trial, version, monkeypatch, request):
    """Rivals' changes stay and ours is invisible, whoever comes and whenever."""
    if version == 3 and request.config.getoption("--sweep") is None:
        pytest.skip("in the sweep")
    lake = Rivals(spark, catalog)
    lake.version = version
    name = f"ice.db.rivals_{abs(hash((str(trial), version)))}"
    lake.create(name, 0, len(FIRST))
    run(lake, name, trial, RIVALS, (IcebergBackend, rewrites), monkeypatch)
    lake.sql(f"DROP TABLE {name}")
