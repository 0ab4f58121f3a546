"""Live files of a table with a large checkpoint, by Arrow, without a job of Spark.

As in ``large_log``, later commits touch few of the checkpoint's files, and Delta's own replay
(``InMemoryLogReplay``) gets the actions of these. Arrow reads all other files from the checkpoint.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.interrupts import ignoring_errors
from zadapter_delta.jvm import JavaObject, Jvm
from zadapter_delta.stats.add_files import Wanted
from zadapter_delta.stats.arrow_adds import flatten
from zadapter_delta.table.checkpoints import Checkpoint, format_lines, to_structs
from zadapter_delta.table.replay import (
    find_file,
    list_checkpoint,
    read_commits,
    replay,
    select_paths,
)

MOST_ACTIONS = 100_000
"""Number of actions at most that are sent to the JVM as lines of the log."""


def find_checkpoint(jvm: Jvm, snapshot: JavaObject) -> "CheckpointLog | None":
    """Return the log of a version whose checkpoint Arrow can read.

    Returns:
        None if the checkpoint is not a classic one on a local disk, commits are compacted, or
        Delta would write a path otherwise.
    """
    with ignoring_errors():
        files = list_checkpoint(jvm, snapshot)
        places = [file.getPath().toUri() for file in files or ()]
        if not places or any(str(place.getScheme()) != "file" for place in places):
            return None
        later = read_commits(jvm, snapshot)
        if later is not None:
            paths = [Path(str(place.getPath())) for place in places]
            return CheckpointLog(jvm, Checkpoint(paths), later)
    return None


class CheckpointLog:
    """The live files of a snapshot.

    They are those of its checkpoint that later commits leave alone, and those that a replay of the
    others leaves.
    """

    def __init__(self, jvm: Jvm, checkpoint: Checkpoint, later: list[str]) -> None:
        self._jvm, self._checkpoint, self._later = jvm, checkpoint, later
        paths = [file["path"] for file in map(find_file, later) if file is not None]
        self._touched = pa.array(paths, pa.string())
        self._folds = any("%" in path for path in paths)
        if self._folds:
            self._touched = pc.ascii_lower(self._touched)
        self._left: JavaObject | None = None

    def read(self, usable: Sequence[Wanted], partition: Mapping[str, Wanted]) -> Iterator[pa.Table]:
        """Yield the AddFile actions in parts, with a column for each fact.

        Raises:
            ValueError: Spark or Delta may read something otherwise.
        """
        touched = list[str]()
        for adds in self._checkpoint.read():
            here = self._is_touched(pc.struct_field(adds, "path"))
            if pc.any(here).as_py():
                touched += format_lines(adds.filter(here))
                yield flatten(adds.filter(pc.invert(here)), usable, partition)
            else:
                yield flatten(adds, usable, partition)
        left = self._left = replay(self._jvm, [*touched, *self._later])
        yield flatten(to_structs(self._jvm.to_python(left)), usable, partition)

    def find_actions(self, paths: list[str]) -> JavaObject:
        """Return the AddFile actions of *paths* as a ``java.util.List``.

        Raises:
            ValueError: There are many, or Delta may write a path otherwise.
        """
        if len(paths) > MOST_ACTIONS:
            raise ValueError("the actions are too many for the driver")
        found = self._jvm.root.java.util.ArrayList()
        found.addAll(select_paths(self._jvm, self._replay(), paths))
        if found.size() < len(paths):
            wanted = pa.array(paths, pa.string())
            lines = [
                line
                for adds in self._checkpoint.find(
                    lambda here: pc.and_not(pc.is_in(here, wanted), self._is_touched(here))
                )
                for line in format_lines(adds)
            ]
            found.addAll(replay(self._jvm, lines))
        return found

    def _replay(self) -> JavaObject:
        """Return what later commits leave of the files that they touch."""
        if self._left is None:
            touched = list[str]()
            if len(self._touched):
                for adds in self._checkpoint.find(self._is_touched):
                    touched += format_lines(adds)
            self._left = replay(self._jvm, [*touched, *self._later])
        return self._left

    def _is_touched(self, paths: pa.StringArray) -> pa.BooleanArray:
        """Return which files of the checkpoint later commits add or remove.

        To Delta, two spellings of a path are the same that differ in the case of their escapes.
        """
        return pc.is_in(pc.ascii_lower(paths) if self._folds else paths, self._touched)
