"""The folder of a new table is its own: nobody else's table is in it, or comes to lie there."""

from pathlib import Path

import pytest

from integration.migration.hooks import Stopped, at_commit, once, stop
from zadapter.errors import UsageError, VerificationError


def path_of(lakes, to):
    """A name that both formats take for a folder."""
    return str(lakes.folder / lakes.name("delta").rsplit("/", 1)[1])


def files_of(folder):
    return sorted(str(each) for each in Path(folder).rglob("*") if each.is_file())


ONE, OTHER = ("iceberg", "delta"), ("delta", "iceberg")
ORDERS = [(ONE, OTHER), (OTHER, ONE), (("delta", "parquet"), OTHER), (OTHER, ("delta", "parquet"))]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), ORDERS)
def test_a_table_that_was_migrated_is_somebodys_table(lakes, spark, first, second):
    """A later migration to another format has no business in its folder."""
    sources = {format_: lakes.make(format_, spark.range(10)) for format_ in ("delta", "iceberg")}
    target = path_of(lakes, first[1])
    lakes.migrate(first[0], sources[first[0]], first[1], target)
    before = files_of(target)

    with pytest.raises(UsageError, match=r"contains|not empty"):
        lakes.migrate(second[0], sources[second[0]], second[1], target)

    assert files_of(target) == before


@pytest.mark.parametrize(("first", "second"), ORDERS)
def test_two_formats_do_not_come_to_share_a_folder(lakes, spark, monkeypatch, first, second):
    """The second one finds that the first has begun, though there is no table yet."""
    sources = {format_: lakes.make(format_, spark.range(10)) for format_ in ("delta", "iceberg")}
    target, refused = path_of(lakes, first[1]), []

    def rival():
        with pytest.raises(UsageError) as raised:
            lakes.migrate(second[0], sources[second[0]], second[1], target)
        refused.append(str(raised.value))

    once(monkeypatch, first[1], "write", before=rival)
    report = lakes.migrate(first[0], sources[first[0]], first[1], target)

    assert len(refused) == 1
    assert report.proof.rows == 10


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), [ONE, OTHER, ("delta", "parquet")])
def test_a_second_try_finds_its_own_folder(lakes, spark, monkeypatch, format_, to):
    """And leaves no note behind that would keep others out later."""
    table, target = lakes.make(format_, spark.range(10)), path_of(lakes, to)
    at_commit(monkeypatch, to, before=stop)
    with pytest.raises(Stopped):
        lakes.migrate(format_, table, to, target)

    assert lakes.migrate(format_, table, to, target).proof.rows == 10
    assert not list(Path(target, "_zadapter").glob("migration*"))


def test_a_catalogs_folder_with_another_table_is_left_alone(lakes, spark, warehouse):
    """The catalog knows of none, but what lies there is one."""
    name = lakes.name("iceberg")
    place = f"{warehouse}/{name.removeprefix('ice.').replace('.', '/')}"
    spark.range(3).write.format("delta").save(place)
    before = files_of(place)

    with pytest.raises(UsageError, match="_delta_log"):
        lakes.migrate("delta", lakes.make("delta", spark.range(10)), "iceberg", name)

    assert files_of(place) == before
    assert not lakes.exists("iceberg", name)


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), [ONE, OTHER, ("delta", "parquet")])
def test_a_call_that_is_refused_leaves_nothing_in_the_old_table(lakes, spark, format_, to):
    table = path_of(lakes, format_)
    spark.range(10).write.parquet(table)

    with pytest.raises(UsageError, match="overlap"):
        lakes.migrate("parquet", table, "delta", f"{table}/inner")

    assert lakes.migrate("parquet", table, "delta").proof.rows == 10


def fail(*_):
    raise VerificationError("they differ")


def test_what_others_have_put_into_the_folder_stays(lakes, spark, monkeypatch):
    """A table that turns out to be wrong is removed, and nothing else."""
    table, target = lakes.make("delta", spark.range(10)), path_of(lakes, "iceberg")
    theirs = Path(target, "of somebody else")
    at_commit(monkeypatch, "iceberg", after=lambda: theirs.write_text("x"))
    monkeypatch.setattr("zadapter.api.migrate.proof", fail)

    with pytest.raises(VerificationError):
        lakes.migrate("delta", table, "iceberg", target)

    assert theirs.exists()
    assert [each for each in files_of(target) if each.endswith((".parquet", ".json"))] == []


def test_a_table_that_somebody_else_has_changed_is_not_removed(lakes, spark, monkeypatch):
    """Rows on a branch are rows."""
    table, target = lakes.make("delta", spark.range(10)), lakes.name("iceberg")

    def change():
        lakes.sql(f"ALTER TABLE {target} CREATE BRANCH dev")
        lakes.sql(f"INSERT INTO {target}.branch_dev VALUES (100)")

    at_commit(monkeypatch, "iceberg", after=change)
    monkeypatch.setattr("zadapter.api.migrate.proof", fail)

    with pytest.raises(VerificationError):
        lakes.migrate("delta", table, "iceberg", target)

    lakes.sql(f"REFRESH TABLE {target}")
    assert spark.table(f"{target}.branch_dev").count() == 11
