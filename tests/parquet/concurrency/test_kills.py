"""A process that works on a plain Parquet table is killed at each access to the store.

One child a failpoint: before the first file that is written, created, deleted or had written to
disk, between each two, after the last, and in the middle of what is written. What such a death
leaves behind is read by the real reader, and the same work is done again.
"""

import multiprocessing
import shutil
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pytest

from tests.kit.variants import slow_but
from tests.parquet.kit import legacy
from tests.parquet.kit.failpoints import DEATHS, Failpoints, die, die_in_the_middle
from tests.parquet.kit.folder import Folder, made
from zadapter_parquet.store.guard_files import INCOMPLETE, NOTE

APPENDED = "the commit that appends"
CHILDREN = multiprocessing.get_context("forkserver")
"""No child is a fork of this process, whose obstore has threads that a fork would lack."""
CHILDREN.set_forkserver_preload(["pytest", "zadapter_parquet", "tests.parquet.kit.folder"])


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


def publish(folder):
    folder.publish()


def age(folder):
    """Leave the table as the first zadapter would have."""
    legacy.age(folder.root)


STORIES = {
    "register": Story((), register),
    "register and append": Story((), append),
    "append": Story((register, rewrite), append),
    "rewrite": Story((register, append), rewrite),
    "delete": Story((register, append), delete),
    "restore": Story((register, append, delete), restore),
    "vacuum": Story((register, abandon, delete, rewrite, abandon), vacuum, converges=False),
    "publish": Story((register, append, delete), publish),
    "publish after vacuum": Story((register, publish, delete, append, vacuum), publish),
    "rewrite what is published": Story((register, append, publish), rewrite),
    "vacuum what is published": Story(
        (register, append, publish, rewrite), vacuum, converges=False
    ),
    "rewrite what is old": Story((register, append, delete, age), rewrite),
    "publish what is old": Story((register, append, age), publish),
}


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

    @cached_property
    def walked(self):
        """What an engine sees before that walks the folder; an error, or None, if not only rows."""
        try:
            return Folder(self.home / "before").walked()
        except pa.ArrowInvalid as error:
            return error
        except KeyError:
            return None

    def copy(self, name):
        return shutil.copytree(self.home / "before", self.home / name)

    def failpoints(self):
        """Their names, from a child that nobody kills."""
        after = self.copy("after")
        assert exit_code(after, self.name) == 0
        return after.with_suffix(".failpoints").read_text().splitlines()

    def killed(self, failpoints, step):
        """Yield where a child died, and the folder that it left, at each step-th of failpoints."""
        for at in sorted({*range(0, len(failpoints), step), len(failpoints) - 1}):
            name = failpoints[at]
            midway = name.partition("before ")[2].startswith("write all")
            for death in [die, die_in_the_middle][: 1 + midway]:
                root = self.copy(f"{at} {death.__name__}")
                where = f"{death.__name__} {name}"
                assert exit_code(root, self.name, at, death) == DEATHS[death], where
                yield where, Folder(root)


@pytest.mark.parametrize(
    ("name", "step"), [("rewrite", 4), *slow_but(of=[(name, 1) for name in STORIES])]
)
def test_wherever_a_process_is_killed_the_table_is_whole(tmp_path, name, step):
    """It is at a version of before, between or after; doing the same again ends as if unharmed."""
    trial = Trial(name, tmp_path)
    failpoints = trial.failpoints()
    before, after = (Folder(tmp_path / name).versions() for name in ("before", "after"))
    reached = set()

    for where, folder in trial.killed(failpoints, step):
        with named(where):
            check_walked(folder, trial, after)
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

    # a version that expires within the story has the rows of before
    between = dict.fromkeys(range(max(before) + 1, max(after)), before[max(before)])
    assert found.items() <= (between | before | after).items()
    assert max(before) <= max(found)
    return max(found)


def check_walked(folder, trial, after):
    """An engine that walks the folder sees what it saw, the newest version, or an error."""
    if trial.walked is None:  # stats among the rows, of a table of the first format
        return
    with suppress(pa.ArrowInvalid):  # of a guard, which is no Parquet
        seen = [trial.walked, after[max(after)]]
        assert folder.walked() in seen


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


@pytest.mark.slow
def test_the_failpoints_are_all_accesses_that_change_the_store(tmp_path):
    """An access that is new, or goes another way, is not to be left out unseen."""
    names = [name for story in STORIES for name in Trial(story, tmp_path / story).failpoints()]

    assert {name.partition("before ")[2] for name in names} == {
        "write new/*", "write all new/*", "fsync new/*", "delete new/*",
        "link probe/*", "fsync probe", "delete probe/*",
        "link log/*.json", "fsync log", "replace log/_head",
        "replace stats/*.stats", "fsync stats", "replace new/*", "fsync new",
        "replace layouts/*.json", "replace layouts/last.json", "fsync layouts",
        "fsync _zadapter", "fsync .",
        "write all data/*/0.rows", "fsync data/*/0.rows", "fsync data/*", "fsync data",
        "delete data/*/0.rows", "delete stats/*.stats",
        f"replace {NOTE.removeprefix('_zadapter/')}", "fsync README",
        "replace data/*/0.rows", "delete part-*-0.parquet",
        f"replace {INCOMPLETE}-*.parquet", f"delete {INCOMPLETE}-*.parquet",
        "replace part-*-0.parquet",
        "delete one.parquet", "delete two.parquet",
        "the end",
    }  # fmt: skip
