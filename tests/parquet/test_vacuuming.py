"""A clean-up beside a commit, at the worst moment."""

import os
from datetime import timedelta

from tests.parquet.kit.folder import made
from zadapter_parquet.log import commit_entries
from zadapter_parquet.operations import vacuuming

DAY = 86_400_000


def once(monkeypatch, name, act, *, at):
    """Have *act* run once, after the call with the number *at* of a step of the clean-up."""
    real, calls = getattr(vacuuming, name), []

    def wrapped(*args):
        found = real(*args)
        calls.append(name)
        if len(calls) == at:
            act()
        return found

    monkeypatch.setattr(vacuuming, name, wrapped)


def test_what_lands_during_a_clean_up_stays(monkeypatch, tmp_path):
    """Whatever it looked at before, however old the files are."""
    for at in range(1, 5):
        folder = made(tmp_path / str(at))
        folder.append([4])
        folder.delete(4)
        base = folder.snapshot()
        staged = folder.stage(base, [5])
        for path in folder.hidden("data"):
            os.utime(path, (0, 0))
        with monkeypatch.context() as patch:
            once(patch, "_list_paths", lambda f=folder, b=base, s=staged: f.add(b, s), at=at)
            folder.vacuum(timedelta(0))

        assert folder.rows() == [0, 1, 2, 3, 5]


def test_a_version_that_was_replaced_during_a_clean_up_stays(monkeypatch, tmp_path):
    """Although the clocks of those who write are a day behind."""
    folder, real = made(tmp_path / "table"), commit_entries.current_time

    def append(number):
        with monkeypatch.context() as patch:
            patch.setattr(commit_entries, "current_time", lambda: real() - DAY)
            folder.append([number])

    append(4)
    with monkeypatch.context() as patch:
        once(patch, "_creation_times", lambda: append(5), at=1)
        folder.vacuum(timedelta(hours=3))

    assert folder.rows(1) == [0, 1, 2, 3, 4]
