"""Live files of a short log by Delta's own replay on the driver, without a job of Spark.

Delta shuffles all actions of a log to know its state, which takes most of a second, however few
there are. ``InMemoryLogReplay``, by which each task of that shuffle replays its part, takes
milliseconds.
"""

import json
import re
from contextlib import suppress
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq

from zadapter.base.interrupts import ignoring_errors
from zadapter.spark.jvm.java_loops import Loops
from zadapter_delta.jvm import Add, JavaObject, Jvm
from zadapter_delta.table.checkpoints import ODD, format_lines, read_adds
from zadapter_delta.table.side_files import Store

_ACTIONS = "org.apache.spark.sql.delta.actions."
_CLASSIC = re.compile(r"\d{20}\.checkpoint(\.\d{10}\.\d{10})?\.parquet\Z")
_ODD = re.compile(ODD)
ADD_FILE = f"{_ACTIONS}AddFile"
_types: WeakKeyDictionary[Loops, list[str]] = WeakKeyDictionary()
"""Types of the parameters of Delta's replay, which differ between releases."""


def replay_commits(jvm: Jvm, snapshot: JavaObject, most: int) -> JavaObject | None:
    """Return the AddFile actions of a version as a ``java.util.List``, ordered by path.

    Args:
        jvm: The session's JVM.
        snapshot: The version; all of its log is read.
        most: Number of files that a checkpoint has at most.

    Returns:
        None if only Delta's state is sure to have them: the checkpoint has several files, too many
        of the table's, or lacks stats as JSON, commits are compacted, Delta would write a path
        otherwise, or something fails, which the state then reports.
    """
    with ignoring_errors():
        files = list_checkpoint(jvm, snapshot)
        if files is None:
            return None
        checkpoint = _read_checkpoint(jvm, snapshot.deltaLog(), files, most)
        commits = None if checkpoint is None else read_commits(jvm, snapshot)
        if checkpoint is None or commits is None or any(map(_is_odd, checkpoint)):
            return None
        return replay(jvm, checkpoint + commits)
    return None


def replay(jvm: Jvm, lines: list[str]) -> JavaObject:
    """Return the AddFile actions that lines of a log leave, as a ``java.util.List`` by path."""
    state = new_replay(jvm)
    if lines:
        actions = jvm.parse_actions(jvm.split_lines(lines))
        state.append(0, jvm.seq_of(actions).iterator())
    adds = jvm.java_list(state.allFiles())
    jvm.loops.sort(adds, jvm.loops.method(ADD_FILE, "path"))
    return adds


def read_commits(jvm: Jvm, snapshot: JavaObject) -> list[str] | None:
    """Return the lines of the commits after a version's checkpoint.

    Returns:
        None if commits are compacted, or Delta would write a path otherwise.
    """
    log, since = snapshot.deltaLog(), int(snapshot.checkpointProvider().version())
    commits = list(jvm.iterate(snapshot.logSegment().deltas()))
    # one file for each version after the checkpoint, whose version is -1 if there is none
    if len(commits) != int(snapshot.version()) - since:
        return None
    conf, lines = log.newDeltaHadoopConf(), list[str]()
    for commit in commits:
        text = str(log.store().read(commit, conf).mkString("\n"))
        lines += [line for line in text.split("\n") if line.strip()]
    return None if any(map(_is_odd, lines)) else lines


def find_file(line: str) -> Add | None:
    """Return the action on a file that a line of the log is, or None if it is another one."""
    action = json.loads(line)
    file: Add | None = action.get("add") or action.get("remove")
    return file


def _is_odd(line: str) -> bool:
    """Return whether Delta may write the path of a file that is added or removed otherwise."""
    file = find_file(line)
    return file is not None and _ODD.search(file["path"]) is not None


def list_checkpoint(jvm: Jvm, snapshot: JavaObject) -> list[JavaObject] | None:
    """Return Hadoop's status of the files of a classic checkpoint, or None if it is another one."""
    files = list(jvm.iterate(snapshot.checkpointProvider().topLevelFiles()))
    return files if all(_CLASSIC.match(str(file.getPath().getName())) for file in files) else None


def _read_checkpoint(
    jvm: Jvm, log: JavaObject, files: list[JavaObject], most: int
) -> list[str] | None:
    """Return the AddFile actions of a checkpoint as lines of the log, or None if it is not simple.

    Args:
        jvm: The session's JVM.
        log: The table's log.
        files: Hadoop's status of the files that the checkpoint consists of.
        most: Number of the table's files in it at most.
    """
    if len(files) > 1:
        return None
    data = [Store(jvm, log).read(f"_delta_log/{file.getPath().getName()}") for file in files]
    return [] if not data else None if data[0] is None else read_lines(data[0], most)


def read_lines(checkpoint: bytes, most: int) -> list[str] | None:
    """Return the AddFile actions of a checkpoint's file as lines of the log.

    Returns:
        None if there are more than *most*, or :func:`read_adds` refuses the file.
    """
    lines = list[str]()
    with suppress(ValueError):
        for adds in read_adds(pq.ParquetFile(pa.BufferReader(checkpoint))):
            if len(lines) + len(adds) > most:
                return None
            lines += format_lines(adds)
        return lines
    return None


def select_paths(jvm: Jvm, adds: JavaObject, paths: list[str]) -> JavaObject:
    """Return the AddFile actions of *paths* among those of a ``java.util.List``, as another one."""
    loops, mapper = jvm.loops, jvm.root.com.fasterxml.jackson.databind.ObjectMapper()
    wanted = mapper.readValue(json.dumps(paths), loops.class_of("java.util.HashSet"))
    is_wanted = loops.method("java.util.Set", "contains", "java.lang.Object").bindTo(wanted)
    return loops.select_items(adds, loops.chain(loops.method(ADD_FILE, "path"), is_wanted))


def new_replay(jvm: Jvm) -> JavaObject:
    """Return an ``InMemoryLogReplay``, which keeps each removal."""
    if jvm.loops not in _types:
        (constructor,) = jvm.class_of(f"{_ACTIONS}InMemoryLogReplay").getConstructors()
        _types[jvm.loops] = [str(each.getName()) for each in constructor.getParameterTypes()]
    defaults = {"long": 0, "boolean": False, "scala.Option": jvm.option()}
    values = [defaults[name] for name in _types[jvm.loops]]
    return jvm.delta.actions.InMemoryLogReplay(*values)
