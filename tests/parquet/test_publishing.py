"""The folder itself becomes the newest version, for engines that list folders."""

import pytest

from tests.parquet.kit.folder import Folder, put
from tests.parquet.kit.legacy import age
from tests.parquet.kit.publishing import NOW, WRITERS, changed, everything, lying, visible
from zadapter.errors import (
    ForeignChangeError,
    UnsupportedError,
    VersionExpiredError,
)
from zadapter_parquet.operations import publishing, registration
from zadapter_parquet.rows import shared_files
from zadapter_parquet.store import guard_files


@pytest.fixture
def folder(tmp_path):
    """Rows 0, 1, 3, 4 and 5; the folder itself shows 0 to 3."""
    return changed(tmp_path / "table")


def test_engines_that_list_the_folder_see_the_newest_version(folder):
    """Before, they see version 0; afterwards, the log goes on from there."""
    assert folder.walked() == [0, 1, 2, 3]

    done = folder.publish()

    assert folder.walked() == folder.rows() == [0, 1, 3, 4, 5]
    assert not folder.hidden("data")
    assert visible(folder) == {"one.parquet", *done.moved.values()}
    assert done.removed == ("two.parquet",)
    assert done.version == done.versions[-1] == folder.snapshot().version
    assert folder.publish().nothing_to_do
    assert folder.publish().versions == ()
    with pytest.raises(VersionExpiredError):
        folder.rows(2)


def test_a_dry_run_says_what_will_be_done_and_writes_nothing(folder):
    before = everything(folder)

    ahead = folder.publish(dry_run=True)

    assert everything(folder) == before
    done = folder.publish()
    assert (ahead.moved, ahead.removed) == (done.moved, done.removed)
    assert ahead.dry_run
    assert folder.publish(dry_run=True).nothing_to_do


def test_the_log_goes_on_after_publishing(folder):
    """Rows are added and deleted, files rewritten, versions restored, and published again."""
    folder.publish()
    published = folder.snapshot().version
    folder.append([6])
    folder.delete(0)
    folder.rewrite()

    assert folder.rows() == [1, 3, 4, 5, 6]
    assert folder.walked() == folder.rows(published) == [0, 1, 3, 4, 5]
    assert folder.backend.restore(folder.table, published).version == folder.snapshot().version
    assert folder.publish().nothing_to_do
    folder.append([7])
    folder.publish()
    assert folder.walked() == folder.rows() == [0, 1, 3, 4, 5, 7]


def test_vacuum_after_publishing_keeps_what_is_visible(folder):
    folder.publish()
    folder.vacuum(NOW)

    assert folder.walked() == folder.rows() == [0, 1, 3, 4, 5]
    assert folder.publish().nothing_to_do


def test_engines_stop_where_vacuum_has_taken_files(folder):
    """What is left is no version; published, the folder is one."""
    assert "two.parquet" in folder.vacuum(NOW).paths

    with pytest.raises(Exception, match=guard_files.INCOMPLETE):
        folder.walked()
    assert folder.rows() == [0, 1, 3, 4, 5]
    folder.publish()
    assert folder.walked() == [0, 1, 3, 4, 5]


def test_foreign_files_are_no_part_of_a_version(folder):
    put(folder.root / "three.parquet", [9])

    with pytest.raises(ForeignChangeError, match=r"added 'three\.parquet' outside"):
        folder.publish()


def test_a_file_that_another_program_has_written_again_stays(folder):
    """It has the name and the size of one that would go."""
    put(folder.root / "two.parquet", [7, 8])

    with pytest.raises(ForeignChangeError, match=r"changed 'two\.parquet' outside"):
        folder.publish()

    assert visible(folder) == {"one.parquet", "two.parquet"}
    assert len(folder.hidden("data")) == 2


def test_files_that_another_table_has_stay_where_they_are(folder):
    shared_files.share(folder.snapshot().handle.files)

    with pytest.raises(UnsupportedError, match="migrated in place"):
        folder.publish()


@pytest.mark.parametrize("act", ["append", "delete", "rewrite", "restore"])
def test_a_write_leaves_files_that_another_table_has(folder, act):
    """They would have to get other names; once the other table is gone, they do."""
    shared_files.share(folder.snapshot().handle.files)
    age(folder.root)
    theirs = lying(folder)

    WRITERS[act](folder)

    assert all(path.exists() for path in theirs)
    rows = folder.rows()
    with pytest.raises(UnsupportedError, match="migrated in place"):
        folder.vacuum(NOW)
    for note in folder.hidden("shared"):
        note.unlink()
    folder.publish()
    assert folder.walked() == folder.rows() == rows
    assert not list((folder.root / "_zadapter").rglob("*.parquet"))


@pytest.mark.parametrize("name", ["p=x._COPYING_", ".p=1"])
def test_files_that_engines_would_not_see_stay_where_they_are(folder, name):
    snapshot = folder.snapshot()
    folder.add(snapshot, folder.stage(snapshot, [6], below=f"{name}/rows/"))

    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="Spark ignores"):
            folder.publish(dry_run=dry_run)

    assert folder.rows() == [0, 1, 3, 4, 5, 6]


@pytest.mark.parametrize("uri", ["s3://bucket/table", "gs://bucket/table"])
def test_objects_that_s3_does_not_copy_stay_where_they_are(folder, monkeypatch, uri):
    """It is known before the first one moves, so that no publication is left half done."""
    store, before = folder.snapshot().handle.files, everything(folder)
    store.uri = uri
    monkeypatch.setattr(publishing, "_COPY_LIMIT", 10)

    if uri.startswith("gs:"):
        assert publishing.publish(store, folder.table, dry_run=True).moved
        return
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="up to 5 GiB"):
            publishing.publish(store, folder.table, dry_run=dry_run)
    assert everything(folder) == before


def test_files_in_folders_that_are_no_partitions_are_rewritten_first(tmp_path, monkeypatch):
    """Older releases took them in. Spark reads files beside one another: the new ones alone."""
    monkeypatch.setattr(registration, "partition_columns", lambda _: ())
    put(tmp_path / "table" / "2020" / "one.parquet", [0])
    put(tmp_path / "table" / "2021" / "two.parquet", [1])
    folder = Folder(tmp_path / "table")
    folder.append([2])

    with pytest.raises(UnsupportedError, match="not a partition"):
        folder.publish()

    folder.rewrite()
    folder.publish()
    assert folder.walked() == folder.rows() == [0, 1, 2]
    assert len(visible(folder)) == 1


def test_rows_that_spark_skips_are_not_published_with_those_that_it_reads(tmp_path, monkeypatch):
    """An older release took in a copy in a subfolder: readers would see its rows twice."""
    put(tmp_path / "table" / "one.parquet", [0])
    put(tmp_path / "table" / "old" / "one.parquet", [0])
    with monkeypatch.context() as older:
        older.setattr(registration, "partition_columns", lambda _: ())
        folder = Folder(tmp_path / "table")
        folder.append([2])
    folder.rewrite()

    with pytest.raises(
        UnsupportedError, match=r"registered 'old/one\.parquet'.* into a new folder"
    ):
        folder.publish()
    assert folder.rows() == [0, 0, 2]


def test_a_folder_that_a_streaming_query_writes_is_not_published(folder):
    """Spark takes its files from the query's log, which would name files that are gone."""
    put(folder.root / "_spark_metadata" / "0", [0])

    with pytest.raises(UnsupportedError, match=r"_spark_metadata.* into a new folder"):
        folder.publish()


def test_checksum_files_go_with_their_files(folder):
    """One that stays would not match what another program puts there under the same name."""
    for name in ("one.parquet", "two.parquet"):
        (folder.root / f".{name}.crc").write_bytes(b"crc\0")

    folder.publish()

    assert visible(folder) >= {"one.parquet"}
    assert [path.name for path in folder.root.rglob("*.crc")] == [".one.parquet.crc"]
