"""Plans that are looked at first, and run later."""

import pickle
from pathlib import Path

import pytest

import zadapter
from integration.migration.tables import Lakes
from zadapter.errors import StaleRewriteError

ROWS, NEW = 3_000, 300
ASKED = {"by": ["a", "b"], "target_file_size": "8KB"}


@pytest.fixture
def lakes(spark, catalog, tmp_path):
    return Lakes(spark, catalog, tmp_path)


def rows(lakes, first, count):
    """Rows whose keys are spread over the whole range."""
    ids = lakes.spark.range(first, first + count)
    return ids.selectExpr("id", "id * 7919 % 10007 AS a", "id * 104729 % 9973 AS b")


def paths(table, **asked):
    """The live files."""
    return set(zadapter.files(table, **asked)["path"].to_pylist())


@pytest.mark.every_format
def test_a_plan_is_run_once_it_is_approved(lakes, table_format):
    """Maybe by another process, and while others append: the plan holds, and is not made again."""
    table = lakes.make(table_format, rows(lakes, 0, ROWS), files=3)
    asked = {"backend": table_format, "spark": lakes.spark}
    plan = zadapter.plan(table, **ASKED, **asked)
    old = paths(table, **asked)
    lakes.append(table_format, table, rows(lakes, ROWS, NEW).coalesce(1))
    new = paths(table, **asked) - old

    report = pickle.loads(pickle.dumps(plan)).run()

    assert (str(plan), plan.to_dict()) == (str(pickle.loads(pickle.dumps(plan))), plan.to_dict())
    assert (
        (report.files_removed, report.rows_added) == (plan.files_rewritten, plan.rows) == (3, ROWS)
    )
    assert len(report.versions) == plan.jobs == 1
    assert "fit" not in report.seconds
    assert new < paths(table, **asked)
    assert not old & paths(table, **asked)
    assert report.plan.files_before == plan.files_before + len(new)
    assert report.share_after < report.share_before
    expected = sorted(map(tuple, rows(lakes, 0, ROWS + NEW).collect()))
    assert sorted(map(tuple, lakes.load(table_format, table).collect())) == expected
    with pytest.raises(StaleRewriteError, match=r"committed. Call zadapter.plan") as gone:
        plan.run()
    assert (gone.value.committed, gone.value.retryable) == (False, False)
    assert {Path(path).name for path in gone.value.gone} == {Path(path).name for path in old}


def test_a_plan_of_an_unchanged_table_comes_true(lakes, table_format):
    """The report has the same plan, and there is nothing left to run."""
    table = lakes.make(table_format, rows(lakes, 0, ROWS), files=3)
    asked = {"backend": table_format, "spark": lakes.spark}
    plan = zadapter.plan(table, **ASKED, **asked)

    report = plan.run()
    again = zadapter.plan(table, **asked)

    assert report.plan == plan
    assert (report.files_removed, report.rows_added) == (3, ROWS)
    assert again.nothing_to_do
    assert again.run().versions == ()


def test_small_files_are_joined_as_planned(lakes, table_format):
    """A table without keys has a plan, too."""
    table = lakes.make(table_format, rows(lakes, 0, ROWS), files=6)
    asked = {"backend": table_format, "spark": lakes.spark}

    report = zadapter.plan(table, **asked).run()

    assert (report.files_removed, report.files_added, report.rows_added) == (6, 1, ROWS)


def test_a_plan_of_a_table_that_is_partitioned_otherwise_by_now_is_refused(lakes):
    """Iceberg's definition of a table does not name its partitions."""
    table = lakes.make("iceberg", rows(lakes, 0, ROWS), files=3)
    asked = {"backend": "iceberg", "spark": lakes.spark}
    plan = zadapter.plan(table, **ASKED, **asked)
    lakes.spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
    before = paths(table, **asked)

    with pytest.raises(StaleRewriteError, match="the table's definition"):
        plan.run()

    assert paths(table, **asked) == before


@pytest.mark.slow
def test_a_plan_for_other_keys_than_those_of_the_table_is_refused(lakes, table_format):
    """Other keys are to be followed now, though the files to rewrite are still there."""
    table = lakes.make(table_format, rows(lakes, 0, ROWS), files=3)
    asked = {"backend": table_format, "spark": lakes.spark}
    zadapter.optimize(table, **ASKED, **asked)
    lakes.append(table_format, table, rows(lakes, ROWS, ROWS).repartition(3))
    plan = zadapter.plan(table, **asked)
    assert not plan.nothing_to_do
    lakes.append(table_format, table, rows(lakes, 2 * ROWS, 4 * ROWS).coalesce(1))
    zadapter.optimize(table, by="id", where=f"id >= {2 * ROWS}", **asked)
    before = paths(table, **asked)

    with pytest.raises(StaleRewriteError, match="the layout that the table's files have"):
        plan.run()

    assert paths(table, **asked) == before
