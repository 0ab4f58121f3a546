"""What entries of Delta's log say of themselves."""

import json
from typing import Any

from zadapter_delta.jvm import JavaObject, Jvm


def commit_info(jvm: Jvm, log: JavaObject, conf: JavaObject, version: int) -> dict[str, Any]:
    """Return what an entry of the log says of itself; it need not say anything."""
    entry = jvm.path(f"{log.logPath()}/{version:020d}.json")
    for line in jvm.iterate(log.store().read(entry, conf)):
        if line.startswith('{"commitInfo"'):
            said: dict[str, Any] = json.loads(line)["commitInfo"]
            return said
    return {}
