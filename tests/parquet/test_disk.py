"""A plain Parquet table on a disk that is full, and in a folder that may not be written."""

import multiprocessing
import os
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from errno import EACCES, EFBIG
from pathlib import Path

import pytest

from tests.parquet.kit.folder import Folder, made
from zadapter.errors import StoreError, ZadapterError
from zadapter_parquet.store.local import LocalFiles

CHILDREN = multiprocessing.get_context("forkserver")
NOBODY = 65534
NOW = timedelta(0)

ACTS = {
    "append": lambda folder: folder.append([9]),
    "rewrite": lambda folder: folder.rewrite(),
    "delete": lambda folder: folder.delete(2),
    "restore": lambda folder: folder.backend.restore(folder.table, 0),
    "vacuum": lambda folder: folder.vacuum(NOW),
    "register": lambda folder: folder.register(),
}
WRITING = [
    ("append", "log"),
    ("append", "stats"),
    ("rewrite", "log"),
    ("rewrite", "stats"),
    ("rewrite", "layouts"),
    ("delete", "stats"),
    ("restore", "log"),
    ("vacuum", "log"),
]
"""Acts, and the folders that each of them writes into."""
EVERYWHERE = [("append", "log"), ("append", "stats"), ("rewrite", "layouts")]


def grown(folder):
    """Three versions, of which a clean-up could take something."""
    folder.append([4, 5])
    folder.delete(5)
    folder.root.joinpath("_zadapter/layouts").mkdir()
    return folder


@pytest.fixture
def table(tmp_path):
    return grown(made(tmp_path / "table"))


@contextmanager
def full(monkeypatch, kind, requests=1_000):
    """Have the kernel refuse what the next so many requests write into a folder."""
    left = iter(range(requests))

    def refused(real):
        def wrapped(files, path, data):
            if not path.startswith(f"_zadapter/{kind}/") or next(left, None) is None:
                return real(files, path, data)
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) // 2, hard))
            try:
                return real(files, path, data)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        return wrapped

    with monkeypatch.context() as patch:
        for name in ("create", "write"):
            patch.setattr(LocalFiles, name, refused(getattr(LocalFiles, name)))
        yield


@pytest.mark.parametrize(("act", "kind"), WRITING)
def test_a_full_disk_changes_nothing(table, monkeypatch, act, kind):
    """Nor does what was half written; with room again, the same act goes through, once."""
    before, entries = table.versions(), table.hidden("log")

    with full(monkeypatch, kind), pytest.raises(StoreError):
        ACTS[act](table)

    assert table.versions() == before
    assert table.hidden("log") == entries
    assert all(path.suffix == ".stats" for path in table.hidden("stats"))
    check_done(table, max(before), ACTS[act])


def check_done(table, newest, act):
    """An act goes through, and what had failed before has left nothing for a clean-up to break."""
    act(table)

    versions = table.versions()
    assert max(versions) == newest + 1
    table.vacuum(NOW)
    assert table.rows() == versions[newest + 1]
    assert table.hidden("data") <= {table.root / path for path in table.live()["path"].to_pylist()}


def test_a_folder_on_a_full_disk_becomes_no_table(tmp_path, monkeypatch):
    """And is read as before; with room again, it becomes one."""
    table = made(tmp_path / "table")
    for kind in ("probe", "stats", "log"):
        with full(monkeypatch, kind), pytest.raises(StoreError):
            table.register()
        assert table.versions() == {-1: [0, 1, 2, 3]}

    table.register()

    assert table.versions() == {0: [0, 1, 2, 3]}


@pytest.mark.parametrize("requests", [1, 4, 5, 9])
def test_a_disk_that_has_room_again_meanwhile_gets_a_row_once(table, monkeypatch, requests):
    """Or, where its author is told of an error, not at all."""
    before, landed = table.versions(), None

    with full(monkeypatch, "log", requests), suppress(ZadapterError):
        landed = table.append([9])

    newest = max(before) + 1
    added = {newest: sorted([*before[newest - 1], 9])} if landed else {}
    assert table.versions() == before | added


@pytest.mark.parametrize(("act", "kind"), [*EVERYWHERE, ("vacuum", "log")])
def test_a_full_disk_is_called_by_its_name(table, monkeypatch, act, kind):
    """One of our errors says where there was no room, in the system's words."""
    with full(monkeypatch, kind), pytest.raises(ZadapterError) as told:
        ACTS[act](table)

    assert f"{table.table}/_zadapter/{kind}" in str(told.value)
    assert os.strerror(EFBIG) in str(told.value)


@pytest.mark.parametrize("kind", ["probe", "stats", "log"])
def test_a_full_disk_is_not_taken_for_a_store_that_overwrites(tmp_path, monkeypatch, kind):
    table = made(tmp_path / "table")

    with full(monkeypatch, kind), pytest.raises(ZadapterError) as told:
        table.register()

    assert os.strerror(EFBIG) in str(told.value)


@pytest.fixture
def shared():
    """A table that everybody may look into; pytest's own folders may not be entered by others."""
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o755)
        yield grown(made(Path(above) / "table"))


def become_nobody():
    """Give up being root, for whom permissions do not count."""
    rehearse()
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def rehearse():
    """Do everything once: some modules are imported on first use, and nobody may not read them."""
    with tempfile.TemporaryDirectory() as above:
        folder = grown(made(Path(above) / "table"))
        for act in ACTS.values():
            act(folder)
        folder.versions()


def by_nobody(action, *args):
    """What becomes of an action in a process without rights."""
    with ProcessPoolExecutor(1, CHILDREN, become_nobody) as pool:
        return pool.submit(action, *args).result()


def versions(root):
    return Folder(root).versions()


def refusal(root, act):
    """What the actor is told: whether it is one of our errors, and its text; None, if it worked."""
    try:
        ACTS[act](Folder(root))
    except (ZadapterError, OSError) as error:
        # as values: not every error finds its way from one process to another
        return isinstance(error, ZadapterError), str(error)
    return None


def closed(table, folder):
    """Let everybody write into all folders of a table but one."""
    for each in (table.root, *table.root.rglob("*")):
        if each.is_dir():
            each.chmod(0o777)
    (table.root / folder).chmod(0o555)


def test_whoever_may_not_write_may_read(shared):
    for folder in (".", "_zadapter", "_zadapter/log", "_zadapter/stats"):
        closed(shared, folder)
        assert by_nobody(versions, shared.root) == shared.versions()


@pytest.mark.parametrize(("act", "kind"), WRITING)
def test_a_commit_without_permission_changes_nothing(shared, act, kind):
    """With the permission, the same act goes through, once."""
    closed(shared, f"_zadapter/{kind}")
    before, entries = shared.versions(), shared.hidden("log")

    assert by_nobody(refusal, shared.root, act) is not None

    assert shared.versions() == before
    assert shared.hidden("log") == entries
    closed(shared, "_zadapter")
    check_done(shared, max(before), lambda table: by_nobody(refusal, table.root, act))


def test_what_one_may_not_delete_another_can(shared):
    """The log says that it goes, so nobody goes back to it; the rest stays whole."""
    rows, newest = shared.rows(), max(shared.versions())
    closed(shared, "_zadapter/stats")

    assert by_nobody(refusal, shared.root, "vacuum") is not None

    assert shared.versions() == {newest: rows, newest + 1: rows}
    parts = len(shared.hidden("stats"))
    shared.vacuum(NOW)
    assert len(shared.hidden("stats")) < parts
    assert shared.rows() == rows


@pytest.mark.parametrize(("act", "kind"), [*EVERYWHERE, ("vacuum", "stats")])
def test_a_missing_permission_is_called_by_its_name(shared, act, kind):
    """One of our errors says which folder may not be written, in the system's words."""
    closed(shared, f"_zadapter/{kind}")

    ours, text = by_nobody(refusal, shared.root, act)

    assert ours
    assert f"{shared.table}/_zadapter/{kind}" in text
    assert os.strerror(EACCES) in text
