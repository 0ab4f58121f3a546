"""What a Delta table was migrated from: a property names the table, commits say the version.

The property is there to spare all other tables a look into their history.  The version is read from
the newest commit that has brought rows and was not taken back: RESTORE leaves the log's own record
of it, a ``txn`` action (PROTOCOL.md, "Transaction Identifiers"), as it is.
"""

import json
from dataclasses import asdict
from typing import Any

from zadapter.base.java_errors import causes
from zadapter.table.snapshot import Source
from zadapter_delta.jvm import JavaObject, Jvm
from zadapter_delta.table.commit_info import commit_info

PROPERTY = "zadapter.source"
"""Property of a table, and tag of the commits that bring rows."""


def text(source: Source) -> str:
    """Return what names the other table, its version aside."""
    return f"{source.format}:{source.id}"


def application(source: Source) -> str:
    """Return the ``appId`` of those who carry its rows."""
    return f"{PROPERTY}:{text(source)}"


def tag(source: Source) -> dict[str, str]:
    """Return what a commit says that brings rows."""
    return {PROPERTY: json.dumps(asdict(source))}


def source(jvm: Jvm, snapshot: JavaObject) -> Source | None:
    """Return what a table was migrated from, and up to which version, if its history tells."""
    if PROPERTY not in jvm.dict(snapshot.metadata().configuration()):
        return None
    version: int | None = int(snapshot.version())
    log = snapshot.deltaLog()
    conf = log.newDeltaHadoopConf()
    while version is not None and version >= 0:
        said = _said(jvm, log, conf, version)
        if said is None:
            return None
        known = (said.get("tags") or {}).get(PROPERTY)
        if known is not None:
            return Source(**json.loads(known))
        version = _before(said, version)
    return None


def _said(jvm: Jvm, log: JavaObject, conf: JavaObject, version: int) -> dict[str, Any] | None:
    try:
        return commit_info(jvm, log, conf, version)
    except Exception as error:
        if any("FileNotFound" in line for line in causes(error)):
            return None  # expired
        raise


def _before(said: dict[str, Any], version: int) -> int | None:
    """Return the version that a commit was made on; None: nobody knows."""
    if said.get("operation") != "RESTORE":
        return version - 1
    back = (said.get("operationParameters") or {}).get("version")
    return None if back is None else int(back)
