"""Plain Parquet tables under clocks that are a day off, ahead or behind.

The times of the files are right, as a store's are; what is off is the clock of a machine that
commits or cleans up.
"""

import os
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import product

import pyarrow.parquet as pq
import pytest

from tests.parquet.kit.folder import made, put
from zadapter.errors import ConflictError, UnknownTableError, VersionExpiredError
from zadapter_parquet.log import commit_entries

HOUR = 3_600_000
DAY = 24 * HOUR
OFF = {"behind": -DAY, "right": 0, "ahead": DAY}
KEPT = 3 * DAY + 6 * HOUR
"""How long the clean-ups of these tests keep a version that was replaced."""
SKEWS = [*product(OFF, repeat=2)]


def moment(milliseconds):
    return datetime.fromtimestamp(milliseconds / 1_000, timezone.utc)


class Past:
    """A table whose history began some time *ago*, and ends now."""

    def __init__(self, monkeypatch, root, ago):
        self.time, self.off, self.stamps = time.time_ns() // 1_000_000 - ago, 0, {}
        self.since = {}
        """When each version was made, by the right clock."""
        monkeypatch.setattr(commit_entries, "current_time", lambda: self.time + self.off)
        self.folder = made(root)
        self._stamp()

    def do(self, off, act):
        """Do something with a clock that is so far off."""
        self.off = OFF[off]
        act(self.folder)
        self._stamp()
        self.since.setdefault(self.folder.snapshot().version, self.time)

    def pass_by(self, milliseconds):
        self.time += milliseconds

    def _stamp(self):
        """Have the files that were written just now be of the time that it is in the story."""
        for path in self.folder.root.rglob("*"):
            if path.is_file() and path.stat().st_mtime_ns != self.stamps.get(path):
                self.stamps[path] = self.time * 1_000_000
                os.utime(path, ns=(self.stamps[path],) * 2)

    def at(self, milliseconds):
        """The version that is read as of a time; None, if there was none."""
        try:
            return self.folder.backend.version_at(self.folder.table, moment(milliseconds))
        except UnknownTableError:
            return None


@pytest.mark.parametrize("skews", [*product(OFF, repeat=3)], ids="-".join)
def test_the_table_as_of_a_time_is_no_further_off_than_the_clocks(monkeypatch, tmp_path, skews):
    """Versions stay in order; each is read as of its own time; later times have later versions."""
    past = Past(monkeypatch, tmp_path / "table", ago=12 * HOUR)
    past.do(skews[0], lambda folder: folder.register())
    for number, off in enumerate(skews):
        past.pass_by(3 * HOUR)
        past.do(off, lambda folder, number=number: folder.append([number]))

    commits = past.folder.backend.history(past.folder.table)[::-1]
    said = [round(commit.timestamp.timestamp() * 1_000) for commit in commits]
    asked = range(past.time - 3 * DAY, past.time + 3 * DAY, 4 * HOUR)
    found = [past.at(when) for when in asked]

    assert [commit.version for commit in commits] == [*past.since] == [0, 1, 2, 3]
    assert said == sorted(set(said))
    assert [past.at(when) for when in said] == [0, 1, 2, 3]
    assert [past.at(when - 1) for when in said] == [None, 0, 1, 2]
    known = [-1 if version is None else version for version in found]
    assert known == sorted(known)
    for when, version in zip(asked, known, strict=True):
        assert version in current_within(past, when - DAY - HOUR, when + DAY + HOUR)


def current_within(past, start, end):
    """The versions that were current at some time in between, by the right clock."""
    since = {-1: start, **past.since}
    until = {version - 1: when for version, when in past.since.items()} | {max(since): end}
    return {v for v in since if since[v] <= end and until[v] >= start}


@dataclass
class Cleaned:
    """A week's history of versions, two a day, and what a clean-up has left of them."""

    past: Past
    before: dict
    after: dict

    def ended(self, version):
        """How long ago a version was replaced, by the right clock."""
        return self.past.time - self.past.since[version + 1]

    def replaced(self):
        return [version for version in self.before if version + 1 in self.before]


def cleaned(monkeypatch, root, writers, cleaner):
    """Say by how far the clocks were off by which the versions were written, and cleaned up."""
    past = Past(monkeypatch, root, ago=7 * DAY)
    past.do(writers, lambda folder: folder.register())
    for number in range(13):
        past.pass_by(DAY // 2)
        past.do(writers, lambda folder, n=number: folder.rewrite() if n % 2 else folder.append([n]))
    past.pass_by(DAY // 2)
    before = past.folder.versions()
    past.do(cleaner, lambda folder: folder.vacuum(timedelta(milliseconds=KEPT)))
    return Cleaned(past, before, past.folder.versions())


@pytest.mark.parametrize(("writers", "cleaner"), SKEWS)
def test_a_clean_up_is_no_further_off_than_the_clocks(monkeypatch, tmp_path, writers, cleaner):
    """It takes no version much too early or too late, and none by halves; never the current one."""
    early = DAY * ((writers == "behind") + (cleaner == "ahead"))
    late = DAY * ((writers == "ahead") + (cleaner == "behind"))

    found = cleaned(monkeypatch, tmp_path / "table", writers, cleaner)

    for version in found.replaced():
        readable = version in found.after
        assert readable or found.ended(version) > KEPT - early - HOUR
        assert not readable or found.ended(version) < KEPT + late + HOUR
        assert not readable or found.after[version] == found.before[version]
    newest = max(found.before)
    assert [found.after[version] for version in (newest, newest + 1)] == [found.before[newest]] * 2
    with pytest.raises(VersionExpiredError):
        found.past.folder.snapshot(min(found.after) - 1)


@pytest.mark.parametrize(("writers", "cleaner"), [("behind", "right"), ("right", "ahead")])
def test_a_clean_up_keeps_what_it_is_to_keep(monkeypatch, tmp_path, writers, cleaner):
    found = cleaned(monkeypatch, tmp_path / "table", writers, cleaner)

    lost = [version for version in found.replaced() if version not in found.after]
    assert all(found.ended(version) > KEPT for version in lost)


@pytest.mark.parametrize("off", OFF)
def test_a_commit_under_way_lands_whole_or_not_at_all(monkeypatch, tmp_path, off):
    """A clean-up whose clock is ahead may overtake it; its files are gone then, and it knows."""
    past = Past(monkeypatch, tmp_path / "table", ago=0)
    past.do("right", lambda folder: folder.append([4]))
    base = past.folder.snapshot()
    staged = past.folder.stage(base, [5])
    past.do(off, lambda folder: folder.vacuum(timedelta(hours=1)))

    landed = False
    with nullcontext() if off != "ahead" else suppress(ConflictError):
        landed = past.folder.add(base, staged) is not None

    assert past.folder.rows() == [0, 1, 2, 3, 4, 5][: 5 + landed]


@pytest.mark.parametrize("off", OFF)
def test_a_foreign_file_under_a_known_name_stays(monkeypatch, tmp_path, off):
    """Whatever the clock said when the folder became a table: it is younger than the table."""
    past = Past(monkeypatch, tmp_path / "table", ago=2 * DAY)
    past.do(off, lambda folder: folder.rewrite())
    past.pass_by(HOUR)
    export = past.folder.root / "one.parquet"
    past.do("right", lambda folder: put(export, [7, 8]))
    past.pass_by(2 * DAY)

    past.do("right", lambda folder: folder.vacuum(timedelta(0)))

    assert pq.read_table(export)["n"].to_pylist() == [7, 8]
