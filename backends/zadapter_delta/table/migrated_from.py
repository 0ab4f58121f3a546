"""The migration source of a Delta table: a property names the table, commit tags the version.

The property avoids reading the history of tables that were not migrated. The version is the one of
the newest load that no RESTORE has undone. It is read from commit tags because RESTORE does not
change the ``txn`` action (PROTOCOL.md, "Transaction Identifiers").
"""

import json
from typing import Any

from zadapter.base.java_errors import causes
from zadapter.table.snapshot import Source
from zadapter_delta.jvm import JavaObject, Jvm
from zadapter_delta.table.logs import commit_info

PROPERTY = "zadapter.source"
"""Table property, and tag of the commits that load rows."""


def text(source: Source) -> str:
    """Return the format and id of the source table."""
    return f"{source.format}:{source.id}"


def application(source: Source) -> str:
    """Return the ``appId`` of transactions that load rows from *source*."""
    return f"{PROPERTY}:{text(source)}"


def tag(source: Source) -> dict[str, str]:
    """Return the tag of a commit that loads rows from *source*."""
    return {PROPERTY: json.dumps(source.to_dict())}


def source(jvm: Jvm, snapshot: JavaObject) -> Source | None:
    """Return the migrated table and its last loaded version, or None if the history lacks them."""
    if PROPERTY not in jvm.dict(snapshot.metadata().configuration()):
        return None
    version: int | None = int(snapshot.version())
    log = snapshot.deltaLog()
    conf = log.newDeltaHadoopConf()
    while version is not None and version >= 0:
        info = _info(jvm, log, conf, version)
        if info is None:
            return None
        stored = (info.get("tags") or {}).get(PROPERTY)
        if stored is not None:
            return Source.from_dict(json.loads(stored))
        version = _parent_version(info, version)
    return None


def _info(jvm: Jvm, log: JavaObject, conf: JavaObject, version: int) -> dict[str, Any] | None:
    try:
        return commit_info(jvm, log, conf, version)
    except Exception as error:
        if any("FileNotFound" in line for line in causes(error)):
            return None  # expired
        raise


def _parent_version(info: dict[str, Any], version: int) -> int | None:
    """Return the version whose content a commit builds on; None if unknown."""
    if info.get("operation") != "RESTORE":
        return version - 1
    restored = (info.get("operationParameters") or {}).get("version")
    return None if restored is None else int(restored)
