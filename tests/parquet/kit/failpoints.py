"""Deaths of a process, at each access of its to a plain Parquet table on local disk."""

import os
import re
import resource
import signal
from itertools import pairwise
from pathlib import Path

from tests.parquet.kit import folder
from zadapter_parquet.store import local
from zadapter_parquet.store.guard_files import INCOMPLETE

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
        self._wrap(folder, "put", lambda path, rows: f"write all {self._inside(path)}")

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
    named = re.sub(rf"({INCOMPLETE})-.*\.parquet", r"\1-*.parquet", path.removeprefix("_zadapter/"))
    return re.sub(r"[0-9a-f]{20,}", "*", named)
