"""A table that was taken back, or made anew, does not say that it has rows which it has not."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zadapter
from integration.migration.hooks import at_commit
from integration.migration.test_follow import PAIRS, ids, numbers, versioned
from zadapter.errors import ConflictError, UnsupportedError, UsageError


def back(lakes, format_, table, version):
    """Take a table back, as the format's users do."""
    if format_ == "delta":
        lakes.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {version}")
    elif format_ == "iceberg":
        name = table.removeprefix("ice.")
        lakes.sql(f"CALL ice.system.rollback_to_snapshot('{name}', {version})")
    else:
        zadapter.restore(table, version, backend="parquet", spark=lakes.spark)


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_rows_that_were_taken_back_are_carried_again(lakes, spark, format_, to):
    """Those alone: what came before is there, and what comes later comes once."""
    table = versioned(lakes, format_)
    made = lakes.migrate(format_, table, to)
    lakes.append(format_, table, numbers(spark, 20))
    lakes.migrate(format_, table, to, made.target, follow=True)

    back(lakes, to, made.target, made.target_version)
    assert ids(lakes, to, made.target) == list(range(20))
    lakes.append(format_, table, numbers(spark, 30))
    report = lakes.migrate(format_, table, to, made.target, follow=True)

    assert report.proof.rows == 20
    assert ids(lakes, to, made.target) == list(range(40))


@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_a_way_back_meanwhile_is_noticed(lakes, spark, monkeypatch, format_, to):
    """The rows would go on top of a version that lacks others."""
    table = versioned(lakes, format_)
    made = lakes.migrate(format_, table, to)
    lakes.append(format_, table, numbers(spark, 20))
    lakes.migrate(format_, table, to, made.target, follow=True)
    lakes.append(format_, table, numbers(spark, 30))
    at_commit(monkeypatch, to, before=lambda: back(lakes, to, made.target, made.target_version))

    with pytest.raises(ConflictError):
        lakes.migrate(format_, table, to, made.target, follow=True)

    assert ids(lakes, to, made.target) == list(range(20))
    lakes.migrate(format_, table, to, made.target, follow=True)
    assert ids(lakes, to, made.target) == list(range(40))


@pytest.mark.parametrize(("format_", "to"), [("delta", "iceberg"), ("iceberg", "delta")])
def test_a_table_that_was_made_anew_is_not_followed(lakes, spark, format_, to):
    """It has other rows under the same name."""
    table = versioned(lakes, format_)
    target = lakes.migrate(format_, table, to).target
    lakes.append(format_, table, numbers(spark, 20))
    name = f"delta.`{target}`" if to == "delta" else target
    lakes.sql(
        f"CREATE OR REPLACE TABLE {name} USING {to} AS "
        "SELECT id + 1000 AS id, int(id % 2) AS p FROM range(3)"
    )

    with pytest.raises(UsageError, match="has no record of its rows"):
        lakes.migrate(format_, table, to, target, follow=True)

    assert ids(lakes, to, target) == [1_000, 1_001, 1_002]


@pytest.mark.slow
def test_an_iceberg_table_without_a_snapshot_is_followed(lakes, spark):
    """It had no version at all when it was migrated."""
    table, target = lakes.name("iceberg"), lakes.name("delta")
    lakes.sql(f"CREATE TABLE {table} (id bigint, p int) USING iceberg")
    assert lakes.migrate("iceberg", table, "delta", target).proof.rows == 0
    lakes.append("iceberg", table, numbers(spark, 0))

    report = lakes.migrate("iceberg", table, "delta", target, follow=True)

    assert report.proof.rows == 10
    assert ids(lakes, "delta", target) == list(range(10))


@pytest.mark.slow
def test_a_comment_is_no_other_column(lakes, spark):
    """Nor is one that was never null and may be from now on; the rows are carried all the same."""
    table = versioned(lakes, "delta")
    target = lakes.migrate("delta", table, "iceberg").target
    lakes.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN id COMMENT 'what it counts'")
    lakes.append("delta", table, numbers(spark, 20))

    assert lakes.migrate("delta", table, "iceberg", target, follow=True).proof.rows == 10
    assert ids(lakes, "iceberg", target) == list(range(30))


OTHERS = {
    "iceberg": [
        "ALTER TABLE {t} DROP COLUMN x",
        "ALTER TABLE {t} ADD COLUMN x bigint AFTER id",
    ],
    "delta": [
        "ALTER TABLE {t} RENAME COLUMN x TO z",
        "ALTER TABLE {t} RENAME COLUMN y TO x",
        "ALTER TABLE {t} RENAME COLUMN z TO y",
        "ALTER TABLE {t} ALTER COLUMN x AFTER id",
    ],
}


@pytest.mark.parametrize(("format_", "to"), [("iceberg", "delta"), ("delta", "iceberg")])
def test_columns_that_are_others_by_now_are_not_carried(lakes, spark, format_, to):
    """Under the same names, they mean other values of the old rows."""
    rows = spark.range(5).selectExpr("id", "id * 10 AS x", "id * 100 AS y")
    said = {"columnMapping.mode": "name"} if format_ == "delta" else {}
    table = lakes.make(format_, rows, **said)
    lakes.append(format_, table, rows)
    target = lakes.migrate(format_, table, to).target
    for statement in OTHERS[format_]:
        lakes.sql(statement.format(t=f"delta.`{table}`" if format_ == "delta" else table))
    lakes.append(format_, table, lakes.load(format_, table).limit(1))

    with pytest.raises(UnsupportedError, match="have changed since the migration"):
        lakes.migrate(format_, table, to, target, follow=True)

    assert lakes.load(to, target).count() == 10


@pytest.mark.slow
def test_a_branch_is_not_followed_into(lakes, spark):
    """The rows would go to the main one."""
    table = versioned(lakes, "delta")
    target = lakes.migrate("delta", table, "iceberg").target
    lakes.sql(f"ALTER TABLE {target} CREATE BRANCH dev")
    lakes.append("delta", table, numbers(spark, 20))

    with pytest.raises(UsageError, match="has no record of its rows"):
        lakes.migrate("delta", table, "iceberg", f"{target}.branch_dev", follow=True)

    assert ids(lakes, "iceberg", target) == list(range(20))
    assert len(lakes.iceberg(target).snapshots()) == 1


@pytest.mark.slow
def test_another_folder_of_files_that_look_alike_is_another_table(lakes, spark):
    """Names and sizes of files are the same, the rows are not."""
    tables = []
    for first in (0, 9_000):
        table = Path(lakes.name("parquet"))
        table.mkdir()
        pq.write_table(
            pa.table({"id": [first], "p": pa.array([0], "int32")}), table / "part-0.parquet"
        )
        table = str(table)
        zadapter.append(table, numbers(spark, first + 10), backend="parquet", spark=spark)
        tables.append(table)
    target = lakes.migrate("parquet", tables[0], "delta").target

    with pytest.raises(UsageError, match="has no record of its rows"):
        lakes.migrate("parquet", tables[1], "delta", target, follow=True)


@pytest.mark.parametrize("to", ["delta", "iceberg", "parquet"])
def test_a_conflict_with_ourselves_is_none(lakes, spark, monkeypatch, to):
    """A client may send a commit twice by itself; the second one finds the first one's table."""
    table = lakes.make("iceberg" if to == "delta" else "delta", numbers(spark, 0))
    format_ = "iceberg" if to == "delta" else "delta"

    def conflict():
        raise ConflictError("the table is there already")

    at_commit(monkeypatch, to, after=conflict)

    report = lakes.migrate(format_, table, to)

    assert report.proof.rows == 10
    assert ids(lakes, to, report.target) == list(range(10))
