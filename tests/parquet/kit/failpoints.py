"""Failpoints that kill a process at each access to a plain Parquet table on local disk."""

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
"""Bytes; longer writes can be interrupted halfway."""


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_the_middle():
    """Have the kernel kill this process after a few more bytes are written to a file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FEW, FEW))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


DEATHS = {die: -signal.SIGKILL, die_in_the_middle: -signal.SIGXFSZ}
"""Exit code of each kind of death."""


class Failpoints:
    """Calls *death* at the failpoint number *at*, if any.

    The name of a failpoint contains the previous and the next access, with the kinds of files:
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
        self._wrap(Path, "replace", lambda _, path: f"replace {self._inside(path)}")
        self._wrap(Path, "unlink", lambda path, **_: f"delete {self._inside(path)}")
        self._wrap(os, "fsync", lambda handle: f"fsync {self._inside(_path_of(handle))}")
        self._wrap(folder, "put", lambda path, rows: f"write all {self._inside(path)}")

    def _wrap(self, place, name, told):
        """Make *place.name* reach a failpoint, described by *told*, before its call."""
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
    return re.sub(r"[0-9a-f]{16,}", "*", named)
