"""The ``commitInfo`` actions of Delta's log."""

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
