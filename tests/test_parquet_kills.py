"""A process that works on a plain Parquet table is killed at each access to the store.

One child a failpoint: before the first file that is written, created, deleted or had written to
disk, between each two, after the last, and in the middle of what is written. What such a death
leaves behind is read by the real reader, and the same work is done again.
"""

import multiprocessing
import os
import re
import resource
import shutil
import signal
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests import parquetfolder
from tests.parquetfolder import Folder, made
from zadapter_parquet import local

APPENDED = "the commit that appends"
CHILDREN = multiprocessing.get_context("forkserver")
"""No child is a fork of this process, whose obstore has threads that a fork would lack."""
CHILDREN.set_forkserver_preload(["pytest", "zadapter_parquet", "tests.parquetfolder"])


@dataclass(frozen=True)
class Story:
    """Something that is done to a table, and what was done before."""

    before: tuple[Callable, ...]
    act: Callable
    converges: bool = True
    """Whether doing it again adds no version."""


def register(folder):
    folder.register()


def append(folder):
    """Append two rows; whoever is not sure whether it has happened asks the table's history."""
    if APPENDED not in folder.commits():
        folder.append([100, 101], id=APPENDED)


def rewrite(folder):
    folder.rewrite()


def delete(folder):
    folder.delete(2)


def restore(folder):
    if folder.backend.history(folder.table)[0].operation != "restore":
        folder.backend.restore(folder.table, 0)


def abandon(folder):
    """Stage what no commit will speak of."""
    folder.stage(folder.snapshot(), [7])


def vacuum(folder):
    folder.vacuum(timedelta(0))


STORIES = {
    "register": Story((), register),
    "register and append": Story((), append),
    "append": Story((register, rewrite), append),
    "rewrite": Story((register, append), rewrite),
    "delete": Story((register, append), delete),
    "restore": Story((register, append, delete), restore),
    "vacuum": Story((register, abandon, delete, rewrite, abandon), vacuum, converges=False),
}


FEW = 50
"""Bytes, of which more than these can be written in part."""


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_the_middle():
    """Have the kernel kill this process once it has written a few bytes more to a file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FEW, FEW))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


DEATHS = {die: -signal.SIGKILL, die_in_the_middle: -signal.SIGXFSZ}
"""The exit code of each."""


class Failpoints:
    """Calls *death* at the failpoint with the number *at*, if any.

    A failpoint's name is what has just been done and what comes next, and to which kind of file:
    ``after write stats/*.parquet, before fsync stats/*.parquet``.
    """

    def __init__(self, root, at, death):
        self.root, self.at, self.death = root, at, death
        self.accesses = ["the start"]

    def reach(self, access):
        if len(self.accesses) - 1 == self.at:
            self.death()
        self.accesses.append(access)

    def names(self):
        return [f"after {last}, before {next_}" for last, next_ in pairwise(self.accesses)]

    def install(self):
        self._wrap(local, "put", lambda path, data: f"{_length(data)} {self._inside(path)}")
        self._wrap(os, "link", lambda _, path: f"link {self._inside(path)}")
        self._wrap(os, "replace", lambda _, path: f"replace {self._inside(path)}")
        self._wrap(os, "unlink", lambda path: f"delete {self._inside(path)}")
        self._wrap(os, "fsync", lambda handle: f"fsync {self._inside(_path_of(handle))}")
        self._wrap(parquetfolder, "put", lambda path, rows: f"write all {self._inside(path)}")

    def _wrap(self, place, name, told):
        """Have *place.name* reach a failpoint before it does what *told* says."""
        real = getattr(place, name)

        def wrapped(*args, **options):
            self.reach(told(*args, **options))
            return real(*args, **options)

        setattr(place, name, wrapped)

    def _inside(self, path):
        return _kind(Path(path).relative_to(self.root).as_posix())


def _length(data):
    return "write all" if len(data) > FEW else "write"


def _path_of(handle):
    return Path(f"/proc/self/fd/{handle}").readlink()


def _kind(path):
    return re.sub(r"[0-9a-f]{20,}", "*", path.removeprefix("_zadapter/"))


def work(root, story, at, death):
    """What a child does: the story, up to a failpoint, or to its end; then it tells them all."""
    points = Failpoints(root, at, death)
    points.install()
    STORIES[story].act(Folder(root))
    points.reach("the end")
    root.with_suffix(".failpoints").write_text("\n".join(points.names()))


def exit_code(root, story, at=None, death=None):
    """Of a child that does its work."""
    child = CHILDREN.Process(target=work, args=(root, story, at, death))
    child.start()
    child.join()
    return child.exitcode


@dataclass(frozen=True)
class Trial:
    """A story, and a folder as it was before."""

    name: str
    home: Path

    def __post_init__(self):
        folder = made(self.home / "before")
        for act in STORIES[self.name].before:
            act(folder)

    def copy(self, name):
        return shutil.copytree(self.home / "before", self.home / name)

    def failpoints(self):
        """Their names, from a child that nobody kills."""
        after = self.copy("after")
        assert exit_code(after, self.name) == 0
        return after.with_suffix(".failpoints").read_text().splitlines()

    def killed(self, failpoints):
        """Yield where a child died, and the folder that it left."""
        for at, name in enumerate(failpoints):
            midway = name.partition("before ")[2].startswith("write all")
            for death in [die, die_in_the_middle][: 1 + midway]:
                root = self.copy(f"{at} {death.__name__}")
                where = f"{death.__name__} {name}"
                assert exit_code(root, self.name, at, death) == DEATHS[death], where
                yield where, Folder(root)


@pytest.mark.parametrize("name", STORIES)
def test_wherever_a_process_is_killed_the_table_is_whole(tmp_path, name):
    """It is at a version of before, between or after; doing the same again ends as if unharmed."""
    trial = Trial(name, tmp_path)
    failpoints = trial.failpoints()
    before, after = (Folder(tmp_path / name).versions() for name in ("before", "after"))
    reached = set()

    for where, folder in trial.killed(failpoints):
        with named(where):
            reached.add(check_whole(folder, before, after))
            check_again(folder, STORIES[name], after)
            check_clean(folder, after[max(after)])

    assert reached == set(range(max(before), max(after) + 1))


@contextmanager
def named(where):
    """Whatever is wrong, say where the process had been killed."""
    try:
        yield
    except Exception as error:
        raise AssertionError(where) from error


def check_whole(folder, before, after):
    """Every version that can be read has its rows; return the newest."""
    found = folder.versions()

    assert found.items() <= (before | after).items()
    assert max(before) <= max(found)
    return max(found)


def check_again(folder, story, after):
    """The same work, done again, finishes or finds itself done, and nothing is there twice."""
    story.act(folder)

    versions = folder.versions()
    assert versions[max(versions)] == after[max(after)]
    assert max(versions) == max(after) or not story.converges
    ids = [commit.id for commit in folder.backend.history(folder.table)]
    assert len(ids) == len(set(ids)) == max(versions) + 1


def check_clean(folder, rows):
    """A clean-up takes the data that the killed process has left, and nothing else."""
    folder.vacuum(timedelta(0))

    assert folder.rows() == rows
    live = {folder.root / path for path in folder.live()["path"].to_pylist()}
    assert folder.hidden("data") <= live


def test_the_failpoints_are_all_accesses_that_change_the_store(tmp_path):
    """An access that is new, or goes another way, is not to be left out unseen."""
    names = [name for story in STORIES for name in Trial(story, tmp_path / story).failpoints()]

    assert {name.partition("before ")[2] for name in names} == {
        "write new/*", "write all new/*", "fsync new/*", "delete new/*",
        "link probe/*", "fsync probe", "delete probe/*",
        "link log/*.json", "fsync log", "replace log/_head",
        "replace stats/*.parquet", "fsync stats", "replace new/*", "fsync new",
        "replace layouts/*.json", "fsync layouts",
        "fsync _zadapter", "fsync .",
        "write all data/*/0.parquet", "fsync data/*/0.parquet", "fsync data/*", "fsync data",
        "delete data/*/0.parquet", "delete stats/*.parquet",
        "delete one.parquet", "delete two.parquet",
        "the end",
    }  # fmt: skip
