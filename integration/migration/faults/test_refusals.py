"""What stands in the way is left alone, and a table that is not the same is taken away again."""

from pathlib import Path

import pytest

from integration.migration.hooks import BACKENDS
from integration.migration.tables import FORMATS
from zadapter.errors import UsageError, VerificationError

PAIRS = [("delta", "iceberg"), ("iceberg", "parquet"), ("parquet", "delta")]


@pytest.fixture(scope="module")
def sources(lakes, spark):
    """A table of each format."""
    return {format_: lakes.make(format_, spark.range(100)) for format_ in FORMATS}


@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_a_table_of_others_is_left_alone(lakes, spark, sources, format_, to):
    foreign = lakes.make(to, spark.range(3))
    before = lakes.read(to, foreign)

    with pytest.raises(UsageError, match=r"already|not empty|contains"):
        lakes.migrate(format_, sources[format_], to, foreign)

    assert lakes.read(to, foreign) == before


@pytest.mark.parametrize("mode", ["copy", "auto"])
@pytest.mark.parametrize("to", ["delta", "parquet"])
def test_a_folder_with_files_is_left_alone(lakes, sources, to, mode):
    """Whatever they are: new files among them would be taken for theirs."""
    target = Path(lakes.name(to))
    target.mkdir()
    (target / "notes.txt").write_text("mine")

    with pytest.raises(UsageError, match=r"already|not empty|empty"):
        lakes.migrate("iceberg", sources["iceberg"], to, str(target), mode=mode)

    assert [path.name for path in target.rglob("*") if path.is_file()] == ["notes.txt"]


@pytest.mark.slow
def test_an_empty_folder_will_do(lakes, sources):
    target = Path(lakes.name("delta"))
    target.mkdir()

    assert lakes.migrate("iceberg", sources["iceberg"], "delta", str(target)).proof.rows == 100


@pytest.mark.slow
def test_a_table_that_was_migrated_from_another_one_is_left_alone(lakes, spark, sources):
    target = lakes.migrate("delta", sources["delta"], "iceberg").target
    other = lakes.make("delta", spark.range(7))

    with pytest.raises(UsageError, match="pass another target"):
        lakes.migrate("delta", other, "iceberg", target)

    assert len(lakes.read("iceberg", target)) == 100


@pytest.mark.parametrize("format_", FORMATS)
def test_the_same_format_is_no_migration(lakes, sources, format_):
    with pytest.raises(UsageError, match="optimize"):
        lakes.migrate(format_, sources[format_], format_)


def test_an_unknown_mode_names_those_there_are(lakes, sources):
    with pytest.raises(UsageError, match="copy, in_place, auto"):
        lakes.migrate("delta", sources["delta"], "iceberg", mode="clone")


def test_an_unknown_format_is_refused(lakes, sources):
    with pytest.raises(UsageError, match="orc"):
        lakes.migrate("delta", sources["delta"], "orc", lakes.name("delta"))


def test_a_name_is_no_folder_and_a_name_needs_a_namespace(lakes, sources):
    """Targets that the format cannot make, before anything is written."""
    with pytest.raises(UsageError, match="folder"):
        lakes.migrate("iceberg", sources["iceberg"], "delta", "db.events")
    with pytest.raises(UsageError, match="namespace"):
        lakes.migrate("delta", sources["delta"], "iceberg", "ice.events")


def swapped(rows):
    """One row less, and another one twice: as many as before."""
    return rows.where("id <> 3").union(rows.where("id = 4"))


@pytest.mark.parametrize("change", [swapped, lambda rows: rows.selectExpr("id + IF(id = 9, 1, 0)")])
@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_a_table_that_is_not_the_same_is_removed(lakes, sources, monkeypatch, format_, to, change):
    """As many rows, but not these; the next call makes it anew."""
    target, backend = lakes.name(to), BACKENDS[to]
    real = backend.write

    def faulty(self, snapshot, rows, layout, encoding):
        wrong = change(rows.coalesce(1)).toDF("id")
        return real(self, snapshot, wrong, layout, encoding)

    monkeypatch.setattr(backend, "write", faulty)
    with pytest.raises(VerificationError, match="equal row counts, but other checksums"):
        lakes.migrate(format_, sources[format_], to, target)

    assert not lakes.exists(to, target)
    assert not left(target)
    assert len(lakes.read(format_, sources[format_])) == 100
    monkeypatch.undo()
    assert lakes.migrate(format_, sources[format_], to, target).proof.rows == 100
    assert lakes.read(to, target) == lakes.read(format_, sources[format_])


def left(target):
    """Parquet files of rows that lie in the target's folder."""
    return [str(path) for path in Path(target).rglob("*.parquet")]


@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_a_row_that_is_lost_on_the_way_is_noticed_before_the_commit(
    lakes, sources, monkeypatch, format_, to
):
    target, backend = lakes.name(to), BACKENDS[to]
    real = backend.write

    def faulty(self, snapshot, rows, layout, encoding):
        return real(self, snapshot, rows.where("id <> 3"), layout, encoding)

    monkeypatch.setattr(backend, "write", faulty)
    with pytest.raises(VerificationError, match="99 were written"):
        lakes.migrate(format_, sources[format_], to, target)

    assert not lakes.exists(to, target)
    assert not left(target)


@pytest.mark.slow
def test_shared_files_survive_the_removal_of_the_new_table(lakes, sources, monkeypatch):
    """What was adopted is not ours to delete."""
    target, backend = lakes.name("iceberg"), BACKENDS["iceberg"]
    real = backend.read
    monkeypatch.setattr(backend, "read", lambda *said: swapped(real(*said)))

    with pytest.raises(VerificationError):
        lakes.migrate("delta", sources["delta"], "iceberg", target, mode="in_place")

    assert not lakes.exists("iceberg", target)
    assert len(lakes.read("delta", sources["delta"])) == 100


@pytest.mark.parametrize("to", ["delta", "iceberg", "parquet"])
def test_a_file_is_no_folder(lakes, sources, to):
    target = Path(lakes.name("delta"))
    target.write_text("a file")
    format_ = "iceberg" if to == "delta" else "delta"

    with pytest.raises(UsageError, match="pass an"):
        lakes.migrate(format_, sources[format_], to, str(target))

    assert target.read_text() == "a file"
