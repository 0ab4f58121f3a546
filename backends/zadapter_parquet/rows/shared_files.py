"""Notes about tables that share this table's files after an in-place migration."""

from uuid import uuid4

from zadapter.errors import ProtectedFilesError
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.store.contract import Files

FOLDER = f"{HIDDEN}/shared"
"""Folder of the notes, one per sharing table."""


def share(files: Files) -> str:
    """Write a note that another table shares the files, and return a description."""
    path = f"{FOLDER}/{uuid4().hex}"
    files.write(path, b"")
    return f"{path} prevents zadapter.vacuum() from deleting the table's files"


def notes(files: Files) -> list[str]:
    """Return the paths of the notes."""
    return [file.path for file in files.list_files(FOLDER)]


def refuse(files: Files, table: str) -> None:
    """Refuse to delete or move files that another table shares.

    Raises:
        ProtectedFilesError: There is a note.
    """
    if paths := notes(files):
        raise ProtectedFilesError(
            f"{table}: a table that was migrated in place shares its files; delete {paths[0]} "
            "after dropping that table"
        )
