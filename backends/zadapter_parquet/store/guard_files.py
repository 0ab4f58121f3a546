"""Guards: files that are not Parquet, and whose names state what to do.

Engines that walk a folder fail at a guard with an error that contains its name. Without it, they
would read rows twice, or only some of the rows.
"""

from collections.abc import Iterable
from posixpath import dirname

from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.store.contract import Files

WRITING = "0-zadapter-is-writing-so-read-by-zadapter.files.parquet"
"""Name of the guard beside files that Spark is writing."""
INCOMPLETE = "0-no-whole-version-so-read-by-zadapter.files-or-run-zadapter.publish"
"""Prefix of guards in visible folders whose files do not form a version.

Each operation appends a unique name, so a slow writer cannot remove the guard of another operation.
"""
NOTE = f"{HIDDEN}/README/list-live-files-by-zadapter.files-or-run-zadapter.publish"
"""Guard for engines that read every file of the folder as Parquet."""
TEXT = b"""\
This folder is a table of zadapter. The Parquet files in it may be those of an older version, or of
none. zadapter.files() and zadapter.read() name and read the files of any version, and
zadapter.publish() makes the folder itself the newest version.
"""


def note(files: Files) -> None:
    """Write the guard ``NOTE`` into the hidden folder."""
    files.write(NOTE, TEXT)


def stands_for(path: str) -> bool:
    """Return whether a visible file is a guard."""
    return path.rpartition("/")[2].startswith(INCOMPLETE)


def put(files: Files, paths: Iterable[str], operation_id: str) -> list[str]:
    """Put a guard into each folder of *paths*, and return the guards.

    Args:
        files: The table's files.
        paths: Visible files that are about to be created or deleted.
        operation_id: Unique name of the operation.
    """
    folders = sorted({dirname(path) for path in paths})
    guards = [f"{folder}/{INCOMPLETE}-{operation_id}.parquet".lstrip("/") for folder in folders]
    for guard in guards:
        files.write(guard, TEXT)
    return guards


def remove(files: Files, paths: Iterable[str]) -> None:
    """Delete the guards among *paths*, so that engines read the folders again."""
    files.delete([path for path in paths if stands_for(path)])
