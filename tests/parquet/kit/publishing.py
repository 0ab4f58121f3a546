"""Folder with versions to publish, and publishers that die."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.parquet.kit.folder import made
from zadapter_parquet.operations import moving
from zadapter_parquet.store import guard_files

NOW = timedelta(0)


class StoppedError(Exception):
    """A publisher is interrupted."""


def changed(root):
    """Make a folder of the rows 0 to 3, and change them to 0, 1, 3, 4 and 5."""
    folder = made(root)
    folder.append([4, 5])
    folder.delete(2)
    return folder


def everything(folder):
    found = [path for path in folder.root.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in found}


def visible(folder):
    return {p.relative_to(folder.root).as_posix() for p in folder.root.glob("*.parquet")}


def interrupted(folder, monkeypatch, moves):
    """Run a publisher that dies after a number of moves."""
    real, left = Path.replace, iter(range(moves))

    def replace(old, new):
        if "/data/" in str(old) and next(left, None) is None:
            raise StoppedError
        return real(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(StoppedError):
            folder.publish()


def once(do, real):
    """Return a function that calls *do* the first time, and *real* from then on."""
    calls = iter([do])

    def called(*args):
        return next(calls, real)(*args)

    return called


def guarded(folder):
    return any(map(guard_files.stands_for, visible(folder)))


def lying(folder):
    """Return the current paths of the current version's files."""
    snapshot = folder.snapshot()
    paths = folder.backend.files(snapshot)["path"].to_pylist()
    files, head = snapshot.handle.files, snapshot.handle.version.head
    return {folder.root / path for path in moving.current_paths(files, head, paths)}


WRITERS = {
    "append": lambda folder: folder.append([6]),
    "delete": lambda folder: folder.delete(0),
    "rewrite": lambda folder: folder.rewrite(),
    "restore": lambda folder: folder.backend.restore(folder.table, folder.snapshot().version),
    "vacuum": lambda folder: folder.vacuum(NOW),
    "publish": lambda folder: folder.publish(),
}
