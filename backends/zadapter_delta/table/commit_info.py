"""What entries of Delta's log state of their commits."""

import json
from typing import Any

from zadapter_delta.jvm import JavaObject, Jvm


def commit_info(jvm: Jvm, log: JavaObject, conf: JavaObject, version: int) -> dict[str, Any]:
    """Return the ``commitInfo`` of a log entry, empty if the entry has none."""
    entry = jvm.path(f"{log.logPath()}/{version:020d}.json")
    for line in jvm.iterate(log.store().read(entry, conf)):
        if line.startswith('{"commitInfo"'):
            action: dict[str, Any] = json.loads(line)["commitInfo"]
            return action
    return {}


def rewritten(jvm: Jvm, log: JavaObject, since: int, head: int) -> list[tuple[int, int]]:
    """Return the commits after *since* that exchange files and no data (``dataChange``)."""
    conf = log.newDeltaHadoopConf()
    versions = range(since + 1, head + 1)
    return [(number - 1, number) for number in versions if _only_rewrites(jvm, log, conf, number)]


def _only_rewrites(jvm: Jvm, log: JavaObject, conf: JavaObject, version: int) -> bool:
    entry = jvm.path(f"{log.logPath()}/{version:020d}.json")
    any_file = False
    for line in jvm.iterate(log.store().read(entry, conf)):
        if line.startswith(('{"add"', '{"remove"')):
            (action,) = json.loads(line).values()
            any_file = True
            if action.get("dataChange", True):
                return False
    return any_file
