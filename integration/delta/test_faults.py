"""Damage, crashes and corner cases: no row is lost, and the session stays as it was."""

from pathlib import Path

import pytest

import zadapter
from tests.kit.variants import slow
from zadapter import errors
from zadapter_delta import DeltaBackend


class KilledError(BaseException):
    """Stands for the end of the process: nothing catches it."""


def killed(base, at):
    """A backend under which the process ends before or after a step."""
    step, when = at

    def die(self, *arguments):
        found = getattr(base, step)(self, *arguments) if when == "after" else None
        raise KilledError(found)

    return type("Killed", (base,), {step: die})


@pytest.mark.parametrize(
    "at",
    [("commit", "before"), *slow(("write", "before"), ("write", "after"), ("stage", "after"))],
    ids=" ".join,
)
def test_after_a_crash_the_next_run_does_it_all(lake, spark, at):
    """Readers see the old files until the commit, and nothing stands in the way later."""
    table = lake.make(spark.range(400).selectExpr("id a"))
    before = lake.rows(table)

    with pytest.raises(KilledError):
        lake.optimize(table, backend=killed(DeltaBackend, at))

    assert before == lake.rows(table)
    assert len(lake.log(table)) == 1
    assert lake.optimize(table).rows_added == 400
    assert before == lake.rows(table)


def test_a_crash_after_the_commit_leaves_nothing_to_do(lake, spark):
    """The next run finds the files where they belong."""
    table = lake.make(spark.range(400).selectExpr("id a"))
    before = lake.rows(table)

    with pytest.raises(KilledError):
        lake.optimize(table, backend=killed(DeltaBackend, ("commit", "after")))

    assert before == lake.rows(table)
    assert lake.optimize(table).plan.nothing_to_do


@pytest.mark.parametrize("damage", ["truncated", "gone"])
def test_a_damaged_source_is_no_reason_to_drop_its_rows(lake, spark, damage):
    """Even where the session is told to ignore such files, and the damaged file is named."""
    table = lake.make(spark.range(4_000).selectExpr("id a", "uuid() b"))
    victim = next(Path(table).glob("*.parquet"))
    victim.with_name(f".{victim.name}.crc").unlink()
    if damage == "gone":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:2_000])
    options = ["spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"]
    for option in options:
        spark.conf.set(option, "true")

    with pytest.raises(Exception, match=victim.name):
        lake.optimize(table)

    for option in options:
        assert spark.conf.get(option) == "true"
        spark.conf.unset(option)
    assert len(lake.log(table)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows",
    [
        "cast(null as bigint) a, id b FROM range(300)",
        "if(id = 5, id, null) a, id b FROM range(300)",
        *slow("1L a, 'one' b FROM range(1)", "7L a, id b FROM range(300)"),
    ],
    ids=["all null", "one that is not null", "one row", "all equal"],
)
def test_keys_that_say_little(lake, spark, rows):
    """No crash, no row lost, and the second run has nothing to do."""
    table = lake.make(lake.sql(f"SELECT {rows}"))
    before = lake.rows(table)

    report = lake.optimize(table, force=True)

    assert before == lake.rows(table)
    assert report.rows_added == len(before)
    assert lake.optimize(table).plan.nothing_to_do


@pytest.mark.slow
def test_columns_may_have_any_name(lake, spark):
    """Names that Spark or the rewrite use themselves are names like any other."""
    rows = spark.range(300).selectExpr(
        "id a", "id * 2 leaf", "id * 3 file", "id * 4 `_metadata`", "id % 7 `a.b`", "id `x y`"
    )
    table = lake.make(rows, **{"columnMapping.mode": "name"})
    before = lake.rows(table)

    lake.optimize(table, by=["`a.b`", "leaf", "`_metadata`"])

    assert before == lake.rows(table)


@pytest.mark.slow
def test_a_column_named_like_a_nested_one_keeps_its_own_stats(lake, spark):
    """``a.b`` and the field b of a have the same path in a file; no reader may mix them up."""
    rows = spark.range(300).selectExpr("named_struct('b', id) a", "id + 1000 `a.b`", "id key")
    table = lake.make(rows)

    lake.optimize(table, by=["key"])

    assert lake.load(table).where("a.b < 10").count() == 10
    assert lake.load(table).where("`a.b` >= 1290").count() == 10


def test_the_callers_session_stays_as_it_was(lake, spark):
    """Settings and the active session are the caller's, during a failure, too."""
    table = lake.make(spark.range(300).selectExpr("id a"))
    spark.conf.set("spark.sql.files.maxRecordsPerFile", "7")
    before = spark.sql("SET").collect()

    lake.optimize(table)
    with pytest.raises(errors.UnknownColumnError):
        lake.optimize(table, by=["b"])

    assert before == spark.sql("SET").collect()
    assert type(spark).getActiveSession() is spark
    assert type(spark).active().conf.get("spark.sql.files.maxRecordsPerFile") == "7"
    spark.conf.unset("spark.sql.files.maxRecordsPerFile")


@pytest.mark.slow
def test_appends_and_rewrites_in_turn_across_a_checkpoint(lake, spark):
    """The number of rows is that of the appends, however often the table is rewritten."""
    table = lake.make(spark.range(100).selectExpr("id a"), checkpointInterval="3")
    for number in range(1, 6):
        spark.range(number * 100, number * 100 + 100).selectExpr("id a").write.format("delta").mode(
            "append"
        ).save(table)
        lake.optimize(table, target_file_size="1KB")

    assert list((Path(table) / "_delta_log").glob("*.checkpoint.parquet"))
    assert [row.a for row in lake.load(table).sort("a").collect()] == list(range(600))
    assert zadapter.plan(table, by=["a"], target_file_size="1KB", spark=spark).nothing_to_do


def test_a_widened_type(lake, spark):
    """Files from before and after the change are clustered together."""
    table = lake.make(spark.range(300).selectExpr("cast(id as int) a"), enableTypeWidening="true")
    lake.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN a TYPE bigint")
    spark.range(1 << 40, (1 << 40) + 300).selectExpr("id a").write.format("delta").mode(
        "append"
    ).save(table)
    before = lake.rows(table)

    report = lake.optimize(table)

    assert before == lake.rows(table)
    assert report.share_after < report.share_before
