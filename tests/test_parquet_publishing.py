"""The folder itself becomes the newest version, for engines that list folders."""

import os
from datetime import timedelta

import pytest

from tests.parquetfolder import Folder, made, put
from tests.parquetformer import age
from zadapter.errors import (
    ConflictError,
    CorruptLogError,
    ForeignChangeError,
    UnsupportedError,
    VersionExpiredError,
)
from zadapter_parquet import foreign, guards, loads, moves, moving, shared
from zadapter_parquet.local import LocalFiles
from zadapter_parquet.log import Log

NOW = timedelta(0)


class StoppedError(Exception):
    """Where a publisher is interrupted."""


@pytest.fixture
def folder(tmp_path):
    """Rows 0, 1, 3, 4 and 5; the folder itself shows 0 to 3."""
    folder = made(tmp_path / "table")
    folder.append([4, 5])
    folder.delete(2)
    return folder


def everything(folder):
    found = [path for path in folder.root.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in found}


def visible(folder):
    return {p.relative_to(folder.root).as_posix() for p in folder.root.glob("*.parquet")}


def interrupted(folder, monkeypatch, moves):
    """Have a publisher die after so many moves."""
    real, left = os.replace, iter(range(moves))

    def replace(old, new):
        if "/data/" in str(old) and next(left, None) is None:
            raise StoppedError
        return real(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(StoppedError):
            folder.publish()


def test_engines_that_list_the_folder_see_the_newest_version(folder):
    """Before, they see version 0; afterwards, the log goes on from there."""
    assert folder.walked() == [0, 1, 2, 3]

    done = folder.publish()

    assert folder.walked() == folder.rows() == [0, 1, 3, 4, 5]
    assert not folder.hidden("data")
    assert visible(folder) == {"one.parquet", *done.moved.values()}
    assert done.removed == ("two.parquet",)
    assert done.version == folder.snapshot().version
    assert folder.publish().nothing_to_do
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
    assert folder.backend.restore(folder.table, published) == folder.snapshot().version
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
    assert "two.parquet" in folder.vacuum(NOW)

    with pytest.raises(Exception, match=guards.INCOMPLETE):
        folder.walked()
    assert folder.rows() == [0, 1, 3, 4, 5]
    folder.publish()
    assert folder.walked() == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("moves", range(2))
def test_rows_are_read_while_files_move(folder, monkeypatch, moves):
    """And engines that list the folder stop at a file whose name says what to do."""
    interrupted(folder, monkeypatch, moves)

    assert folder.rows() == [0, 1, 3, 4, 5]
    with pytest.raises(Exception, match=guards.INCOMPLETE):
        folder.walked()
    assert folder.publish(dry_run=True).removed == ("two.parquet",)


def test_a_folder_that_is_published_amid_a_look_has_no_foreign_files(folder, monkeypatch):
    """The advice would be to append rows that the table has."""
    check = foreign.check_visible

    def late(*args):
        folder.publish()
        check(*args)

    monkeypatch.setattr(foreign, "check_visible", once(late, check))

    assert folder.rows() == [0, 1, 3, 4, 5]
    folder.append([6])
    monkeypatch.setattr(foreign, "check_visible", once(late, check))
    assert folder.publish(dry_run=True).nothing_to_do


def test_a_file_that_moves_amid_a_look_is_there(folder, monkeypatch):
    """It is listed neither at its old place nor at its new one."""
    interrupted(folder, monkeypatch, 0)
    listed = LocalFiles.listed

    def neither(files, within=""):
        return iter([f for f in listed(files, within) if "/data/" not in f.path])

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "listed", neither)
        assert folder.rows() == [0, 1, 3, 4, 5]
        assert folder.backend.vacuum(folder.table, NOW, dry_run=True)


def test_a_version_that_was_published_away_has_expired(folder, monkeypatch):
    seen, version = folder.snapshot(), folder.snapshot().version
    check = foreign.check_live

    def late(*args):
        folder.publish()
        check(*args)

    with monkeypatch.context() as patch:
        patch.setattr(foreign, "check_live", once(late, check))
        with pytest.raises(VersionExpiredError):
            folder.backend.restore(folder.table, version)
    with pytest.raises(VersionExpiredError):
        folder.backend.read(seen, folder.backend.files(seen))


WRITERS = {
    "append": lambda folder: folder.append([6]),
    "delete": lambda folder: folder.delete(0),
    "rewrite": lambda folder: folder.rewrite(),
    "restore": lambda folder: folder.backend.restore(folder.table, folder.snapshot().version),
    "vacuum": lambda folder: folder.vacuum(NOW),
    "publish": lambda folder: folder.publish(),
}


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

    with pytest.raises(Exception, match=r"meanwhile|behind"):
        moving.settled(log, files, folder.table, begun)

    kept = {path for path in everything(folder) if not guards.stands_for(path.name)}
    assert kept == set(before)
    folder.publish()
    assert folder.walked() == folder.rows() == [1, 3, 4, 5]


def once(do, real):
    """Call *do* with the first arguments instead of *real*."""
    calls = iter([do])

    def called(*args):
        return next(calls, real)(*args)

    return called


def guarded(folder):
    return any(map(guards.stands_for, visible(folder)))


def test_a_late_publisher_leaves_the_guards_of_others(folder, monkeypatch):
    """It was about to remove its own, while the folder was published twice."""
    remove, found = guards.remove, []

    def late(files, paths):
        folder.publish()
        folder.append([6, 7])
        folder.delete(0)
        interrupted(folder, monkeypatch, 1)
        remove(files, paths)
        found.append(guarded(folder))

    monkeypatch.setattr(guards, "remove", once(late, remove))
    folder.publish()

    assert found == [True]
    assert folder.walked() == folder.rows() == [1, 3, 4, 5, 6, 7]


def test_a_publisher_with_nothing_to_do_leaves_the_guards_of_others(folder, monkeypatch):
    """Vacuum has begun to take files of the version that it has seen."""
    folder.publish()
    remove, delete, found = guards.remove, LocalFiles.delete, []

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

    monkeypatch.setattr(guards, "remove", once(late, remove))
    folder.publish()

    assert found == [True]


def test_nothing_is_deleted_where_a_file_got_lost(folder, monkeypatch):
    """The older files may be the last that hold its rows."""
    interrupted(folder, monkeypatch, 1)
    for path in folder.hidden("data"):
        path.unlink()

    with pytest.raises(ForeignChangeError, match="went behind"):
        folder.append([6])

    assert {"one.parquet", "two.parquet"} <= visible(folder)


def test_foreign_files_are_no_part_of_a_version(folder):
    put(folder.root / "three.parquet", [9])

    with pytest.raises(ForeignChangeError, match=r"three\.parquet' came behind"):
        folder.publish()


def test_a_file_that_another_program_has_written_again_stays(folder):
    """It has the name and the size of one that would go."""
    put(folder.root / "two.parquet", [7, 8])

    with pytest.raises(ForeignChangeError, match=r"two\.parquet' changed behind"):
        folder.publish()

    assert visible(folder) == {"one.parquet", "two.parquet"}
    assert len(folder.hidden("data")) == 2


def test_files_that_another_table_has_stay_where_they_are(folder):
    shared.share(folder.snapshot().handle.files)

    with pytest.raises(UnsupportedError, match="migrated in place"):
        folder.publish()


def lying(folder):
    """Where the files of the current version lie."""
    snapshot = folder.snapshot()
    paths = folder.backend.files(snapshot)["path"].to_pylist()
    files, head = snapshot.handle.files, snapshot.handle.version.head
    return {folder.root / path for path in moves.places(files, head, paths)}


@pytest.mark.parametrize("act", ["append", "delete", "rewrite", "restore"])
def test_a_write_leaves_files_that_another_table_has(folder, act):
    """They would have to get other names; once the other table is gone, they do."""
    shared.share(folder.snapshot().handle.files)
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


@pytest.mark.parametrize("act", WRITERS)
def test_nobody_goes_on_publishing_files_that_another_table_has(folder, monkeypatch, act):
    """It was migrated in place after a publisher was killed."""
    interrupted(folder, monkeypatch, 1)
    theirs = lying(folder)
    shared.share(folder.snapshot().handle.files)

    with pytest.raises(UnsupportedError, match="migrated in place"):
        WRITERS[act](folder)

    assert all(path.exists() for path in theirs)
    assert folder.rows() == [0, 1, 3, 4, 5]
    for note in folder.hidden("shared"):
        note.unlink()
    folder.publish()
    assert folder.walked() == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("name", ["p=x._COPYING_", ".p=1"])
def test_files_that_engines_would_not_see_stay_where_they_are(folder, name):
    snapshot = folder.snapshot()
    folder.add(snapshot, folder.stage(snapshot, [6], below=f"{name}/rows/"))

    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="pass over"):
            folder.publish(dry_run=dry_run)

    assert folder.rows() == [0, 1, 3, 4, 5, 6]


def test_files_in_folders_that_are_no_partitions_are_rewritten_first(tmp_path):
    """Spark reads what lies beside one another: it would see the new files alone."""
    put(tmp_path / "table" / "2020" / "one.parquet", [0])
    put(tmp_path / "table" / "2021" / "two.parquet", [1])
    folder = Folder(tmp_path / "table")
    folder.append([2])

    with pytest.raises(UnsupportedError, match="no partition"):
        folder.publish()

    folder.rewrite()
    folder.publish()
    assert folder.walked() == folder.rows() == [0, 1, 2]
    assert len(visible(folder)) == 1


def test_a_table_whose_publisher_was_killed_is_not_dropped(folder, monkeypatch):
    interrupted(folder, monkeypatch, 1)
    files, table = LocalFiles(folder.root), folder.snapshot().id

    with pytest.raises(ConflictError):
        loads.drop(files, folder.table, table)

    assert folder.rows() == [0, 1, 3, 4, 5]


def test_damaged_moves_stop_everybody(folder, monkeypatch):
    interrupted(folder, monkeypatch, 1)
    part = folder.root / Log(LocalFiles(folder.root), "t").head().moves.path
    part.write_bytes(b"PAR1")

    with pytest.raises(CorruptLogError):
        folder.rows()
    with pytest.raises(CorruptLogError):
        folder.publish()


def test_a_table_of_the_first_format_is_read_as_it_is(folder):
    age(folder.root)
    before = everything(folder)

    assert folder.versions() == {0: [0, 1, 2, 3], 1: [0, 1, 2, 3, 4, 5], 2: [0, 1, 3, 4, 5]}
    folder.publish(dry_run=True)
    folder.backend.vacuum(folder.table, NOW, dry_run=True)
    assert everything(folder) == before


@pytest.mark.parametrize("act", WRITERS)
def test_the_first_write_moves_a_table_of_the_first_format(folder, act):
    """Engines that walk it read rows twice before; all versions that could be read still can."""
    versions = folder.versions()
    age(folder.root)
    assert len(list((folder.root / "_zadapter").rglob("*.parquet"))) == 5

    WRITERS[act](folder)

    if act == "vacuum":
        assert folder.rows() == versions[2]
    elif act != "publish":
        assert folder.walked() == [0, 1, 2, 3]
        assert folder.versions().items() >= versions.items()
    assert not list((folder.root / "_zadapter").rglob("*.parquet"))
    folder.publish()
    assert folder.walked() == folder.rows()


def test_what_spark_is_writing_keeps_its_name(folder):
    """A zadapter of today writes into a table that another one moves."""
    age(folder.root)
    own = folder.root / "_zadapter" / "data" / ("a" * 32) / "own"
    put(own / "sparks" / "0.parquet", [9])
    (own / guards.WRITING).write_bytes(guards.TEXT)

    folder.append([6])

    assert (own / "sparks" / "0.parquet").exists()
    assert len(list((folder.root / "_zadapter").rglob("*.parquet"))) == 2
