"""Publishers that die or come late, and others beside them."""

import pytest

from tests.parquet.kit.folder import put
from tests.parquet.kit.publishing import (
    NOW,
    WRITERS,
    changed,
    everything,
    guarded,
    interrupted,
    lying,
    once,
    visible,
)
from zadapter.errors import (
    ConflictError,
    CorruptLogError,
    ForeignChangeError,
    UnsupportedError,
    VersionExpiredError,
)
from zadapter_parquet.log.log import Log
from zadapter_parquet.operations import external_changes, loading, moving
from zadapter_parquet.rows import shared_files
from zadapter_parquet.store import guard_files
from zadapter_parquet.store.local import LocalFiles


@pytest.fixture
def folder(tmp_path):
    """Rows 0, 1, 3, 4 and 5; the folder itself shows 0 to 3."""
    return changed(tmp_path / "table")


@pytest.mark.parametrize("moves", range(2))
def test_rows_are_read_while_files_move(folder, monkeypatch, moves):
    """And engines that list the folder stop at a file whose name says what to do."""
    interrupted(folder, monkeypatch, moves)

    assert folder.rows() == [0, 1, 3, 4, 5]
    with pytest.raises(Exception, match=guard_files.INCOMPLETE):
        folder.walked()
    assert folder.publish(dry_run=True).removed == ("two.parquet",)


def test_a_folder_that_is_published_amid_a_look_has_no_foreign_files(folder, monkeypatch):
    """The advice would be to append rows that the table has."""
    check = external_changes.check_visible

    def late(*args):
        folder.publish()
        check(*args)

    monkeypatch.setattr(external_changes, "check_visible", once(late, check))

    assert folder.rows() == [0, 1, 3, 4, 5]
    folder.append([6])
    monkeypatch.setattr(external_changes, "check_visible", once(late, check))
    assert folder.publish(dry_run=True).nothing_to_do


def test_a_file_that_moves_amid_a_look_is_there(folder, monkeypatch):
    """It is listed neither at its old place nor at its new one."""
    interrupted(folder, monkeypatch, 0)
    listed = LocalFiles.list_files

    def neither(files, within=""):
        return iter([f for f in listed(files, within) if "/data/" not in f.path])

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "list_files", neither)
        assert folder.rows() == [0, 1, 3, 4, 5]
        assert folder.backend.vacuum(folder.table, NOW, dry_run=True).paths


def test_a_version_that_was_published_away_has_expired(folder, monkeypatch):
    seen, version = folder.snapshot(), folder.snapshot().version
    check = external_changes.check_live

    def late(*args):
        folder.publish()
        check(*args)

    with monkeypatch.context() as patch:
        patch.setattr(external_changes, "check_live", once(late, check))
        with pytest.raises(VersionExpiredError):
            folder.backend.restore(folder.table, version)
    with pytest.raises(VersionExpiredError):
        folder.backend.read(seen, folder.backend.files(seen))


@pytest.mark.parametrize("act", WRITERS)
@pytest.mark.parametrize("moves", range(2))
def test_whoever_writes_next_finishes(folder, monkeypatch, moves, act):
    interrupted(folder, monkeypatch, moves)

    WRITERS[act](folder)

    assert folder.walked() == [0, 1, 3, 4, 5]
    assert folder.snapshot().handle.version.entry.moves is None
    folder.publish()
    assert folder.walked() == folder.rows()


def test_a_publisher_that_comes_late_changes_nothing(folder, monkeypatch):
    """Another one has finished, and the folder has been published again since."""
    interrupted(folder, monkeypatch, 1)
    log, files = Log(folder.snapshot().handle.files, folder.table), folder.snapshot().handle.files
    begun = log.head()
    folder.publish()
    folder.delete(0)
    folder.publish()
    put(folder.root / "_zadapter" / "two", [7])
    before = everything(folder)

    with pytest.raises(Exception, match=r"another writer|outside the table"):
        moving.finish_moves(log, files, folder.table, begun)

    kept = {path for path in everything(folder) if not guard_files.stands_for(path.name)}
    assert kept == set(before)
    folder.publish()
    assert folder.walked() == folder.rows() == [1, 3, 4, 5]


def test_a_late_publisher_leaves_the_guards_of_others(folder, monkeypatch):
    """It was about to remove its own, while the folder was published twice."""
    remove, found = guard_files.remove, []

    def late(files, paths):
        folder.publish()
        folder.append([6, 7])
        folder.delete(0)
        interrupted(folder, monkeypatch, 1)
        remove(files, paths)
        found.append(guarded(folder))

    monkeypatch.setattr(guard_files, "remove", once(late, remove))
    folder.publish()

    assert found == [True]
    assert folder.walked() == folder.rows() == [1, 3, 4, 5, 6, 7]


def test_a_publisher_with_nothing_to_do_leaves_the_guards_of_others(folder, monkeypatch):
    """Vacuum has begun to take files of the version that it has seen."""
    folder.publish()
    remove, delete, found = guard_files.remove, LocalFiles.delete, []

    def late(files, paths):
        folder.delete(0)
        folder.delete(4)

        def stopped(store, gone):
            delete(store, [path for path in gone if not path.startswith("_zadapter")][:1])
            remove(files, paths)
            found.append(guarded(folder))
            delete(store, gone)

        def visible_ones(store, gone):
            gone = list(gone)
            first = not found and any(not path.startswith("_zadapter") for path in gone)
            (stopped if first else delete)(store, gone)

        with monkeypatch.context() as patch:
            patch.setattr(LocalFiles, "delete", visible_ones)
            folder.vacuum(NOW)

    monkeypatch.setattr(guard_files, "remove", once(late, remove))
    folder.publish()

    assert found == [True]


def test_nothing_is_deleted_where_a_file_got_lost(folder, monkeypatch):
    """The older files may be the last that hold its rows."""
    interrupted(folder, monkeypatch, 1)
    for path in folder.hidden("data"):
        path.unlink()

    with pytest.raises(ForeignChangeError, match="another program removed"):
        folder.append([6])

    assert {"one.parquet", "two.parquet"} <= visible(folder)


@pytest.mark.parametrize("act", WRITERS)
def test_nobody_goes_on_publishing_files_that_another_table_has(folder, monkeypatch, act):
    """It was migrated in place after a publisher was killed."""
    interrupted(folder, monkeypatch, 1)
    theirs = lying(folder)
    shared_files.share(folder.snapshot().handle.files)

    with pytest.raises(UnsupportedError, match="migrated in place"):
        WRITERS[act](folder)

    assert all(path.exists() for path in theirs)
    assert folder.rows() == [0, 1, 3, 4, 5]
    for note in folder.hidden("shared"):
        note.unlink()
    folder.publish()
    assert folder.walked() == [0, 1, 3, 4, 5]


def test_a_table_whose_publisher_was_killed_is_not_dropped(folder, monkeypatch):
    interrupted(folder, monkeypatch, 1)
    files, table = LocalFiles(folder.root), folder.snapshot().id

    with pytest.raises(ConflictError):
        loading.drop(files, folder.table, table)

    assert folder.rows() == [0, 1, 3, 4, 5]


def test_damaged_moves_stop_everybody(folder, monkeypatch):
    interrupted(folder, monkeypatch, 1)
    part = folder.root / Log(LocalFiles(folder.root), "t").head().moves.path
    part.write_bytes(b"PAR1")

    with pytest.raises(CorruptLogError):
        folder.rows()
    with pytest.raises(CorruptLogError):
        folder.publish()
