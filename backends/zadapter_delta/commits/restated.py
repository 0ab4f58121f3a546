"""Commits of corrected stats: the same files, without data change."""

from collections.abc import Sequence
from typing import Any

from zadapter.base.java_errors import first_line
from zadapter.errors import ConflictError
from zadapter.table.snapshot import Snapshot
from zadapter_delta.commits.rewrites import begin, described, refuse_another
from zadapter_delta.jvm import Jvm


def commit(
    jvm: Jvm, snapshot: Snapshot, adds: list[Any], paths: Sequence[str], texts: Sequence[str]
) -> int:
    """Add live files once more, with other stats, and return the new version.

    A log holds one AddFile action of each path and deletion vector, the last (PROTOCOL.md, "Action
    Reconciliation"), so nothing is removed. A writer that removes one of the files meanwhile is a
    conflict, since the file would be live again.

    Args:
        jvm: The session's JVM.
        snapshot: The version in which the files are live.
        adds: The files' AddFile actions as they are in the log.
        paths: The files' paths.
        texts: The new stats of these files, as JSON.

    Raises:
        ConflictError: Another writer changed one of the files; nothing was committed.
        ReplacedTableError: The table was dropped and created again.
    """
    by_path = {str(add.path()): add for add in adds}
    stated = [described(jvm, by_path[path], text) for path, text in zip(paths, texts, strict=True)]
    transaction = begin(jvm, snapshot.handle)
    transaction.trackFilesRead(jvm.seq(adds))
    operation = getattr(jvm.delta, "DeltaOperations$ComputeStats")(jvm.seq())
    refuse_another(jvm, snapshot)
    try:
        return int(transaction.commit(jvm.seq(stated), operation))
    except Exception as error:
        if jvm.is_conflict(error):
            raise ConflictError(f"{snapshot.table}: {first_line(error)}") from error
        raise
