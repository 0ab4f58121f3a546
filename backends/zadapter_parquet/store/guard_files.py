"""Files that are no Parquet, and whose names say what to do.

Engines that walk a folder stop at them with an error that shows the name. Without them they would
read rows twice, or a part of the rows.
"""

from collections.abc import Iterable
from posixpath import dirname

from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.store.contract import Files

WRITING = "0-zadapter-is-writing-so-read-by-zadapter.files.parquet"
"""Stands beside what Spark writes under its own names."""
INCOMPLETE = "0-no-whole-version-so-read-by-zadapter.files-or-run-zadapter.publish"
"""How guards begin in visible folders whose files are no version of the table.

Who guards adds a name of its own: somebody slow would else remove the guard that another one, who
does something else, has put there since.
"""
NOTE = f"{HIDDEN}/README/list-live-files-by-zadapter.files-or-run-zadapter.publish"
"""Stops engines that take every file of the folder for Parquet, whatever its name."""
TEXT = b"""\
This folder is a table of zadapter. The Parquet files in it may be those of an older version, or of
none. zadapter.files() and zadapter.read() name and read the files of any version, and
zadapter.publish() makes the folder itself the newest version.
"""


def note(files: Files) -> None:
    """Write the file that stands beside the log."""
    files.write(NOTE, TEXT)


def stands_for(path: str) -> bool:
    """Tell whether a visible file is a guard."""
    return path.rpartition("/")[2].startswith(INCOMPLETE)


def put(files: Files, paths: Iterable[str], what: str) -> list[str]:
    """Have engines stop at the visible folders that *paths* lie in, and return the guards.

    Args:
        files: The table's files.
        paths: Visible files that come or go.
        what: Names what is done; no other guard is called so unless it is for the same.
    """
    folders = sorted({dirname(path) for path in paths})
    made = [f"{folder}/{INCOMPLETE}-{what}.parquet".lstrip("/") for folder in folders]
    for guard in made:
        files.write(guard, TEXT)
    return made


def remove(files: Files, paths: Iterable[str]) -> None:
    """Have engines read visible folders again: delete the guards among *paths*."""
    files.delete([path for path in paths if stands_for(path)])
