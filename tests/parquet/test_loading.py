"""How a table of another format becomes a folder of Parquet files."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.parquet.kit.log import ENTRY
from tests.parquet.kit.world import table_of
from zadapter.errors import (
    ConflictError,
    StaleRewriteError,
    UnknownTableError,
    UsageError,
    VersionExpiredError,
)
from zadapter.migration.context import build_load as loading_change
from zadapter.table.snapshot import Source, Staged
from zadapter.table.spec import FILE_SIZE, RETENTION, Definition
from zadapter_parquet.format.entries import LogOperation, decode, digest, encode
from zadapter_parquet.log.commit_entries import build_next
from zadapter_parquet.log.log import Log
from zadapter_parquet.log.snapshot import Version
from zadapter_parquet.log.snapshot import snapshot as at
from zadapter_parquet.operations import history, loading, vacuuming
from zadapter_parquet.operations.loading import define
from zadapter_parquet.store.local import LocalFiles

SOURCE = Source(format="delta", id="1-2", version=7, columns="c")
PROPERTIES = {FILE_SIZE: "1024", RETENTION: "60000", "team": "x"}
LONG = {"name": "a", "type": "long", "nullable": True, "metadata": {}}


def test_an_entry_keeps_where_the_table_came_from():
    """And what no file can say."""
    entry = replace(ENTRY, operation=LogOperation.MIGRATE, source=SOURCE, properties=PROPERTIES)

    assert decode(encode(entry), 0) == entry
    assert decode(encode(entry), 0).source == SOURCE
    assert decode(encode(entry), 0).properties == PROPERTIES


def test_an_entry_of_before_migrations_is_read():
    """It has no word of them, and its bytes stay what the next entry's hash is of."""
    body = json.loads(encode(ENTRY).splitlines()[0])
    del body["source"], body["properties"]
    data = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()

    found = decode(data + b'\n{"end":"' + digest(data).encode() + b'"}\n', 0)

    assert found == ENTRY
    assert found.source is None
    assert found.properties == {}


@pytest.fixture
def files(tmp_path):
    return LocalFiles(tmp_path)


def pending(files):
    text = Definition(columns=(LONG,), properties=PROPERTIES, comment="all")
    return loading.pending("t", files, text, SOURCE)


def staged(files, base, *names):
    """Files that lie where a commit would have put them."""
    folder = base.handle.version.entry.folder
    paths = [f"{folder}/{name}" for name in names]
    for path in paths:
        files.write(path, b"x")
    return Staged(paths={}, files=table_of(paths), handle=(folder, None, False))


def load_of(base, *parts, **said):
    return loading_change(base, parts, SOURCE, **said)


def loaded(change):
    return loading.load(change)


def head(files):
    return at("t", files, Version(entry=Log(files, "t").head()))


def test_a_table_appears_with_all_of_its_files(files):
    """And with what was said of it; before, there is none."""
    base = pending(files)
    load_ = load_of(base, staged(files, base, "a", "b"), staged(files, base, "c"))

    assert not Log(files, "t").exists()
    assert loaded(load_) == 0
    entry = Log(files, "t").head()
    assert (entry.files, entry.size, entry.rows) == (3, 3, 3)
    assert (entry.operation, entry.transaction) == (LogOperation.MIGRATE, load_.id)
    assert (entry.source, entry.properties) == (SOURCE, {**PROPERTIES, "comment": "all"})
    assert define(head(files)).comment == "all"


def test_an_empty_table_can_be_made(files):
    base = pending(files)

    assert loaded(load_of(base)) == 0
    assert Log(files, "t").head().files == 0


def test_of_two_that_make_a_table_one_does(files):
    first, second = pending(files), pending(files)
    theirs = load_of(second, staged(files, second, "b"))

    loaded(load_of(first, staged(files, first, "a")))

    with pytest.raises(ConflictError):
        loaded(theirs)
    assert Log(files, "t").head().files == 1


def test_a_folder_that_holds_anything_is_left_alone(files):
    files.write("a.csv", b"")

    with pytest.raises(UsageError, match=r"t contains a\.csv; pass an empty"):
        pending(files)


def test_what_an_interrupted_try_has_left_is_no_obstacle(files):
    staged(files, pending(files), "a")

    assert loaded(load_of(pending(files))) == 0


def test_more_files_become_the_next_version(files):
    """With the new source's version, and all else as it was."""
    loaded(load_of(pending(files)))
    base = head(files)
    files.write("_zadapter/data/x/a", b"x")
    news = Staged(
        paths={}, files=table_of(["_zadapter/data/x/a"]), handle=("_zadapter/data/x", None, False)
    )
    load_ = loading_change(base, [news], replace(SOURCE, version=8))

    assert loaded(load_) == 1
    entry = Log(files, "t").head()
    assert (entry.files, entry.folder, entry.source.version) == (1, "_zadapter/data/x", 8)
    assert entry.properties == {**PROPERTIES, "comment": "all"}


def test_files_that_a_clean_up_has_taken_are_not_committed(files):
    base = pending(files)
    gone = staged(files, base, "a")
    files.delete(gone.files["path"].to_pylist())

    with pytest.raises(StaleRewriteError):
        loaded(load_of(base, gone))
    assert not Log(files, "t").exists()


def drop(files):
    """Remove the table that is there."""
    loading.drop(files, "t", Log(files, "t").newest().table)


def test_another_table_in_the_same_place_is_not_dropped(files):
    """Ours was removed by hand, and somebody else has made one."""
    loaded(load_of(pending(files)))

    with pytest.raises(ConflictError, match="it was not dropped"):
        loading.drop(files, "t", "ours")

    assert Log(files, "t").head().operation is LogOperation.MIGRATE


def test_a_table_that_is_dropped_takes_nothing_along(files):
    """Another one may be on its way in the same folder."""
    base, rival = pending(files), pending(files)
    ours, theirs = staged(files, base, "a"), staged(files, rival, "b")
    loaded(load_of(base, ours))

    drop(files)

    left = {file.path for file in files.list_files()}
    assert left >= set(theirs.files["path"].to_pylist())
    assert not left & set(ours.files["path"].to_pylist())
    assert loaded(load_of(rival, theirs)) == 2


def test_a_table_that_others_have_changed_is_not_dropped(files):
    loaded(load_of(pending(files)))
    log = Log(files, "t")
    log.claim(replace(log.head(), version=1, previous=log.hash_of(0), transaction="b"))

    with pytest.raises(ConflictError, match="it was not dropped"):
        drop(files)
    assert log.head().version == 1


def test_whoever_adds_a_version_while_the_table_is_dropped_keeps_it(files, monkeypatch):
    """Between a look at the newest version and the removal."""
    loaded(load_of(pending(files)))
    log, head = Log(files, "t"), Log.head

    def rival(self):
        found = head(self)
        monkeypatch.undo()
        log.claim(build_next(log, found, LogOperation.APPEND, transaction="b"))
        return found

    monkeypatch.setattr(Log, "head", rival)
    with pytest.raises(ConflictError):
        drop(files)
    assert [entry.transaction for entry in log.entries_between(0, 1)] == ["b"]


def test_whoever_has_looked_before_the_drop_adds_nothing_after_it(files):
    """Neither to nothing nor to the table that comes next."""
    loaded(load_of(pending(files)))
    log = Log(files, "t")
    late = build_next(log, log.head(), LogOperation.APPEND, transaction="late")

    drop(files)

    with pytest.raises(UnknownTableError, match="was dropped"):
        log.head()
    with pytest.raises(ConflictError):
        log.claim(late)
    base = pending(files)
    assert loaded(load_of(base, staged(files, base, "b"))) == 2
    with pytest.raises(ConflictError):
        log.claim(late)
    assert log.head().files == 1


def test_whoever_comes_after_a_log_was_removed_by_hand_is_told(files):
    loaded(load_of(pending(files)))
    log = Log(files, "t")
    found = log.head()
    files.delete([file.path for file in files.list_files("_zadapter/log")])

    with pytest.raises(UnknownTableError, match="removed by another program"):
        build_next(log, found, LogOperation.APPEND, transaction="c")
    assert not log.exists()


def test_nobody_goes_back_to_what_was_dropped(files):
    loaded(load_of(pending(files)))
    drop(files)
    base = pending(files)
    loaded(load_of(base, staged(files, base, "b")))

    with pytest.raises(VersionExpiredError):
        history.restore(files, "t", 0)
    assert [c.operation for c in history.history(Log(files, "t"))] == [
        "migrate",
        "drop",
        "migrate",
    ]
    drop(files)
    assert loaded(load_of(pending(files))) == 4


def test_a_drop_that_was_cut_short_leaves_files_for_the_next_tables_vacuum(files, monkeypatch):
    base = pending(files)
    ours = staged(files, base, "a")
    loaded(load_of(base, ours))
    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "delete", interrupted)
        with pytest.raises(KeyboardInterrupt):
            drop(files)
    with pytest.raises(UnknownTableError, match="was dropped"):
        Log(files, "t").head()
    heir = pending(files)
    theirs = staged(files, heir, "b")
    loaded(load_of(heir, theirs))

    gone = vacuuming.vacuum(files, "t", timedelta(0), dry_run=False).paths

    assert set(gone) >= set(ours.files["path"].to_pylist())
    assert not set(gone) & set(theirs.files["path"].to_pylist())
    assert all(map(files.has, theirs.files["path"].to_pylist()))


def interrupted(*_):
    raise KeyboardInterrupt


def test_parts_of_the_stats_go_with_the_table(files):
    base = pending(files)
    loaded(load_of(base, staged(files, base, "a")))
    parts = [part.path for part in Log(files, "t").head().parts]

    drop(files)

    assert parts
    assert not any(map(files.has, parts))
