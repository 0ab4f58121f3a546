"""Live files of a short log by Delta's own replay on the driver, without a job of Spark.

Delta shuffles all actions of a log to know its state, which takes most of a second, however few
there are. ``InMemoryLogReplay``, by which each task of that shuffle replays its part, takes
milliseconds.
"""

import re

import pyarrow as pa
import pyarrow.parquet as pq

from zadapter_delta.jvm import Add, JavaObject, Jvm, format_line
from zadapter_delta.table.side_files import Store

_ACTIONS = "org.apache.spark.sql.delta.actions."
_CLASSIC = re.compile(r"\d{20}\.checkpoint\.parquet\Z")
_ODD = re.compile(r"^[/.]|:|//|/\.", re.MULTILINE)
"""Parts of paths that Delta may write otherwise (``DeltaLog.getCanonicalPathUdf``)."""


def replay_commits(jvm: Jvm, snapshot: JavaObject) -> JavaObject | None:
    """Return the AddFile actions of a version as a ``java.util.List``, ordered by path.

    Args:
        jvm: The session's JVM.
        snapshot: The version; all of its log is read.

    Returns:
        None if only Delta's state is sure to have them: the checkpoint has several files or
        lacks stats as JSON, commits are compacted, or Delta would write a path otherwise.
    """
    log, loops, provider = snapshot.deltaLog(), jvm.loops, snapshot.checkpointProvider()
    commits = list(jvm.iterate(snapshot.logSegment().deltas()))
    known = _read_checkpoint(jvm, log, list(jvm.iterate(provider.topLevelFiles())))
    # one file for each version after the checkpoint, whose version is -1 if there is none
    if known is None or len(commits) != int(snapshot.version()) - int(provider.version()):
        return None
    conf, lines = log.newDeltaHadoopConf(), jvm.split_lines(known)
    for commit in commits:
        lines.addAll(jvm.java_list(log.store().read(commit, conf)))
    replay = new_replay(jvm)
    replay.append(0, jvm.seq_of(jvm.parse_actions(lines)).iterator())
    adds = jvm.java_list(replay.allFiles())
    path = loops.method(f"{_ACTIONS}AddFile", "path")
    if _ODD.search(jvm.join_texts(loops.map_items(adds, path))):
        return None
    loops.sort(adds, path)
    return adds


def _read_checkpoint(jvm: Jvm, log: JavaObject, files: list[JavaObject]) -> list[str] | None:
    """Return the AddFile actions of a checkpoint as lines of the log, or None if it is not simple.

    Args:
        jvm: The session's JVM.
        log: The table's log.
        files: Hadoop's status of the files that the checkpoint consists of.
    """
    if not files:
        return []
    names = [str(file.getPath().getName()) for file in files]
    if len(files) > 1 or not _CLASSIC.match(names[0]):
        return None
    data = Store(jvm, log).read(f"_delta_log/{names[0]}")
    actions = None if data is None else pq.read_table(pa.BufferReader(data), columns=["add"])
    adds = [] if actions is None else actions["add"].drop_null().to_pylist(maps_as_pydicts="strict")
    if actions is None or any(add.get("stats") is None and "stats_parsed" in add for add in adds):
        return None
    return [format_line(_state(add)) for add in adds]


def _state(add: Add) -> Add:
    """Return the fields of an action that are no copies of others, and have a value."""
    return {
        name: value
        for name, value in add.items()
        if value is not None and not name.endswith("_parsed")
    }


def new_replay(jvm: Jvm) -> JavaObject:
    """Return an ``InMemoryLogReplay``, which keeps each removal."""
    class_ = jvm.class_of(f"{_ACTIONS}InMemoryLogReplay")
    (constructor,) = class_.getConstructors()
    types = [str(each.getName()) for each in constructor.getParameterTypes()]
    defaults = {"long": 0, "boolean": False, "scala.Option": jvm.option()}
    values = [defaults[name] for name in types]
    return jvm.delta.actions.InMemoryLogReplay(*values)
