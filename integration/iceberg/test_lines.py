"""The table goes another way while a rewrite is under way: back, aside, or to another spec."""

from contextlib import nullcontext, suppress

import pytest

from tests.kit.variants import slow
from zadapter.base.commit_attempts import Backoff
from zadapter.errors import ConflictError, UnsupportedError

AT_ONCE = Backoff(attempts=3, initial=0.0)


def numbers(spark, rows=1_000):
    return spark.range(rows).selectExpr("id AS a", "id % 2 AS p")


def values(lake, name):
    """Column a, from rows that are read: a count may come from metadata."""
    lake.sql(f"REFRESH TABLE {name}")
    return sorted(row.a for row in lake.load(name).select("a").collect())


def test_an_equality_delete_that_is_rolled_back(lake, spark, between):
    """Its row, which the rewrite has not read, is there again."""
    name = lake.make(numbers(spark))
    before = lake.table(name).current_snapshot().snapshot_id
    lake.delete_equal(name, 11)
    call = f"CALL ice.system.rollback_to_snapshot('{name}', {before})"

    with pytest.raises(ConflictError):
        lake.optimize(name, backend=between(lambda: lake.sql(call)), backoff=AT_ONCE)

    assert values(lake, name) == list(range(1_000))


@pytest.mark.parametrize("max_rebase", [0, 0.2])
def test_a_table_that_is_set_to_another_line_of_history(lake, spark, between, max_rebase):
    """An equality delete there is older than the rewrite, and still stays effective.

    The rewrite is dropped, or its rebase leaves the row out.
    """
    name = lake.make(numbers(spark))
    start = lake.table(name).current_snapshot().snapshot_id
    lake.delete_equal(name, 11)
    aside = lake.table(name).current_snapshot().snapshot_id
    lake.sql(f"CALL ice.system.rollback_to_snapshot('{name}', {start})")
    lake.append(name, spark.range(5_000, 5_005).selectExpr("id AS a", "id AS p"))
    call = f"CALL ice.system.set_current_snapshot('{name}', {aside})"

    with nullcontext() if max_rebase else pytest.raises(ConflictError):
        report = lake.optimize(
            name,
            backend=between(lambda: lake.sql(call)),
            where="a < 2000",
            backoff=AT_ONCE,
            max_rebase=max_rebase,
        )
        assert report.rebased.rows == 1

    assert values(lake, name) == [n for n in range(1_000) if n != 11]


@pytest.mark.parametrize("of", ["new", "all", *slow("old")])
def test_an_equality_delete_while_rows_move_to_another_spec(lake, spark, between, of):
    """Be it written for the old spec, for the new one or for all: the row it deletes is gone."""
    name = lake.make(numbers(spark), "p")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, a)")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD bucket(2, a)")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD p")
    unpartitioned = lake.table(name).spec().spec_id
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD p")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, a)")
    spec = lake.table(name).spec()
    number = {"old": 0, "new": spec.spec_id, "all": unpartitioned}[of]
    fields = {"old": ["p"], "new": [field.name for field in spec.fields], "all": []}[of]
    partition = "/".join(f"{field}=1" for field in fields) or None

    with suppress(ConflictError):
        where = {"spec": number, "partition": partition}
        delete = between(lambda: lake.delete_equal(name, 11, **where))
        lake.optimize(name, backend=delete, backoff=AT_ONCE)

    left = values(lake, name)
    # one for the new spec is about files of the new spec, which there were none of
    wanted = [n for n in range(1_000) if n != 11 or of == "new"]
    assert left == wanted


def test_a_branch_that_is_dropped_meanwhile(lake, spark, between):
    """It does not come back."""
    name = lake.make(numbers(spark))
    lake.sql(f"ALTER TABLE {name} CREATE BRANCH audit")
    drop = between(lambda: lake.sql(f"ALTER TABLE {name} DROP BRANCH audit"))

    with pytest.raises(ConflictError):
        lake.optimize(f"{name}.branch_audit", backend=drop, backoff=AT_ONCE)

    assert set(lake.table(name).refs()) == {"main"}


def test_rows_that_get_ids_meanwhile_keep_them(lake, spark, between):
    """A table becomes one of version 3: what was read before that had no row ids."""
    name = lake.make(numbers(spark))
    upgrade = f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')"

    with pytest.raises(ConflictError):
        lake.optimize(name, backend=between(lambda: lake.sql(upgrade)), backoff=AT_ONCE)

    assert values(lake, name) == list(range(1_000))
    assert lake.optimize(name).files_added
    assert values(lake, name) == list(range(1_000))


def test_partitions_of_doubles(lake, spark):
    """NaN, infinities and both zeros."""
    odd = "CASE id % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-0.0' "
    rows = spark.range(500).selectExpr("id AS a", f"double({odd} WHEN 3 THEN '0.0' END) AS d")
    name = lake.make(rows, "d")
    before = lake.rows(name)

    lake.optimize(name)

    lake.sql(f"REFRESH TABLE {name}")
    assert before == lake.rows(name)


def test_a_table_whose_paths_have_no_scheme(lake, spark, tmp_path):
    """Odd characters in its path are no escapes."""
    settings = {
        "spark.sql.catalog.bare": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.bare.type": "hadoop",
        "spark.sql.catalog.bare.warehouse": f"{tmp_path}/sp ace%20",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    numbers(spark).repartition(4).writeTo("bare.db.t").using("iceberg").create()

    report = lake.optimize("bare.db.t")

    assert report.share_after < 0.7
    assert len(values(lake, "bare.db.t")) == 1_000
    for key in settings:
        spark.conf.unset(key)


def test_a_field_and_a_column_that_differ_in_case_only(lake, spark):
    rows = spark.range(10).selectExpr("id AS a", "id AS c", "id AS C_BUCKET")
    name = lake.make(rows, "bucket(4, c)")

    with pytest.raises(UnsupportedError, match="differ only in case"):
        lake.optimize(name)
