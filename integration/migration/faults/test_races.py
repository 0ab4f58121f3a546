"""Others who come in between, and what was shared or empty to begin with."""

import pytest

from integration.migration.hooks import at_commit
from integration.migration.test_follow import ids, numbers, versioned
from integration.migration.values.test_deletes import delete_equal
from zadapter.errors import ConflictError, UnsupportedError

PAIRS = [("delta", "iceberg"), ("iceberg", "parquet"), ("parquet", "delta")]
"""Each format once on each side."""


@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_of_two_migrations_to_one_target_the_first_one_stays(
    lakes, spark, monkeypatch, format_, to
):
    """The other one is told, and takes its own files away."""
    table, target = lakes.make(format_, numbers(spark, 0), "p"), lakes.name(to)
    at_commit(monkeypatch, to, before=lambda: lakes.migrate(format_, table, to, target))

    with pytest.raises(ConflictError):
        lakes.migrate(format_, table, to, target)

    assert ids(lakes, to, target) == list(range(10))
    assert lakes.migrate(format_, table, to, target).proof.rows == 10


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_rows_that_others_add_at_once_are_not_taken_away(lakes, spark, monkeypatch, format_, to):
    """The proof is about what was carried, and not about what came to it since."""
    table, target = lakes.make(format_, numbers(spark, 0), "p"), lakes.name(to)
    at_commit(monkeypatch, to, after=lambda: lakes.append(to, target, numbers(spark, 1_000, 1)))

    report = lakes.migrate(format_, table, to, target)

    assert report.proof.rows == 10
    assert ids(lakes, to, target) == [*range(10), 1_000]


@pytest.mark.parametrize(("format_", "to"), [*PAIRS[:1], ("iceberg", "delta")])
def test_shared_files_are_followed_by_copies(lakes, spark, format_, to):
    """Rows that come later are the new table's own."""
    table = versioned(lakes, format_)
    target = lakes.migrate(format_, table, to, mode="in_place").target
    lakes.append(format_, table, numbers(spark, 20))

    report = lakes.migrate(format_, table, to, target, follow=True)

    assert (report.mode.value, report.proof.rows) == ("copy", 10)
    assert ids(lakes, to, target) == list(range(30))


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), [("delta", "iceberg"), ("iceberg", "delta")])
def test_an_empty_table_is_followed(lakes, spark, format_, to):
    """Its first rows come later."""
    table = lakes.make(format_, numbers(spark, 0, 0), "p")
    target = lakes.migrate(format_, table, to).target
    lakes.append(format_, table, numbers(spark, 0))

    assert lakes.migrate(format_, table, to, target, follow=True).proof.rows == 10
    assert ids(lakes, to, target) == list(range(10))


def test_an_equality_delete_is_more_than_an_append(lakes, spark):
    """Rows that were carried are gone, although their files have not changed."""
    table = lakes.make("iceberg", spark.range(20).selectExpr("id AS a"), **{"format-version": "2"})
    target = lakes.migrate("iceberg", table, "delta").target
    delete_equal(lakes, table, [3])

    with pytest.raises(UnsupportedError, match="changes other than appends"):
        lakes.migrate("iceberg", table, "delta", target, follow=True)


def test_a_merge_on_read_delete_is_more_than_an_append(lakes, spark):
    """Deletion vectors leave files as they are, too."""
    rows = spark.range(100).selectExpr("id AS a")
    table = lakes.make("delta", rows, enableDeletionVectors="true")
    target = lakes.migrate("delta", table, "parquet").target
    lakes.sql(f"DELETE FROM delta.`{table}` WHERE a = 3")

    with pytest.raises(UnsupportedError, match="changes other than appends"):
        lakes.migrate("delta", table, "parquet", target, follow=True)
