"""Live files of a short log by Delta's own replay on the driver, without a job of Spark.

Delta shuffles all actions of a log to know its state, which takes most of a second, however few
there are. ``InMemoryLogReplay``, by which each task of that shuffle replays its part, takes
milliseconds.
"""

import json
import re
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq

from zadapter.base.interrupts import ignoring_errors
from zadapter.spark.jvm.java_loops import Loops
from zadapter_delta.jvm import Add, JavaObject, Jvm, format_line
from zadapter_delta.table.side_files import Store

_ACTIONS = "org.apache.spark.sql.delta.actions."
_CLASSIC = re.compile(r"\d{20}\.checkpoint\.parquet\Z")
_ODD = re.compile(r"^[/.]|:|//|/\.")
"""Parts of paths that Delta may write otherwise (``DeltaLog.getCanonicalPathUdf``)."""
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
        lines = _read_lines(jvm, snapshot, most)
        if lines is None or any(map(_is_odd, lines)):
            return None
        replay = new_replay(jvm)
        actions = jvm.parse_actions(jvm.split_lines(lines))
        replay.append(0, jvm.seq_of(actions).iterator())
        adds = jvm.java_list(replay.allFiles())
        jvm.loops.sort(adds, jvm.loops.method(f"{_ACTIONS}AddFile", "path"))
        return adds
    return None


def _read_lines(jvm: Jvm, snapshot: JavaObject, most: int) -> list[str] | None:
    """Return the lines of a checkpoint and of the commits after it, or None if they are unsure."""
    log, provider = snapshot.deltaLog(), snapshot.checkpointProvider()
    commits = list(jvm.iterate(snapshot.logSegment().deltas()))
    lines = _read_checkpoint(jvm, log, list(jvm.iterate(provider.topLevelFiles())), most)
    # one file for each version after the checkpoint, whose version is -1 if there is none
    if lines is None or len(commits) != int(snapshot.version()) - int(provider.version()):
        return None
    conf = log.newDeltaHadoopConf()
    for commit in commits:
        text = str(log.store().read(commit, conf).mkString("\n"))
        lines += [line for line in text.split("\n") if line.strip()]
    return lines


def _is_odd(line: str) -> bool:
    """Return whether Delta may write the path of a file that is added or removed otherwise."""
    action = json.loads(line)
    file = action.get("add") or action.get("remove")
    return file is not None and _ODD.search(file["path"]) is not None


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
    if not files:
        return []
    names = [str(file.getPath().getName()) for file in files]
    if len(files) > 1 or not _CLASSIC.match(names[0]):
        return None
    data = Store(jvm, log).read(f"_delta_log/{names[0]}")
    return None if data is None else read_adds(data, most)


def read_adds(checkpoint: bytes, most: int) -> list[str] | None:
    """Return the AddFile actions of a checkpoint's file as lines of the log.

    Returns:
        None if there are more than *most*, the file does not have all of them, as those with
        sidecars, or lacks stats as JSON.
    """
    file = pq.ParquetFile(pa.BufferReader(checkpoint))
    names = [field.name for field in file.schema_arrow.field("add").type]
    # values of other types than text cannot always be objects of Python
    stated = [f"add.{name}" for name in names if not name.endswith("_parsed")]
    others = [name for name in ("sidecar", "checkpointMetadata") if name in file.schema_arrow.names]
    rows = file.read([*stated, *others])
    if any(rows[name].null_count < rows.num_rows for name in others):
        return None
    found = rows["add"].drop_null()
    if len(found) > most:
        return None
    adds = found.to_pylist()
    if "stats_parsed" in names and any(add.get("stats") is None for add in adds):
        return None
    return [format_line(_without_nulls(add)) for add in adds]


def _without_nulls(add: Add) -> Add:
    """Return the fields of an action that have a value; Arrow's maps are lists of pairs."""
    return {
        name: dict(value) if isinstance(value, list) else value
        for name, value in add.items()
        if value is not None
    }


def new_replay(jvm: Jvm) -> JavaObject:
    """Return an ``InMemoryLogReplay``, which keeps each removal."""
    if jvm.loops not in _types:
        (constructor,) = jvm.class_of(f"{_ACTIONS}InMemoryLogReplay").getConstructors()
        _types[jvm.loops] = [str(each.getName()) for each in constructor.getParameterTypes()]
    defaults = {"long": 0, "boolean": False, "scala.Option": jvm.option()}
    values = [defaults[name] for name in _types[jvm.loops]]
    return jvm.delta.actions.InMemoryLogReplay(*values)
