"""Files that another table has, too, since it was migrated in place."""

from uuid import uuid4

from zadapter.errors import UnsupportedError
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.store.contract import Files

FOLDER = f"{HIDDEN}/shared"
"""Notes of tables that have the same files."""


def share(files: Files) -> str:
    """Have this table's files stay: another one has them, too. Say how."""
    path = f"{FOLDER}/{uuid4().hex}"
    files.write(path, b"")
    return f"{path} keeps zadapter.vacuum() from deleting its files"


def notes(files: Files) -> list[str]:
    """Return the notes of tables that have the same files."""
    return [file.path for file in files.listed(FOLDER)]


def refuse(files: Files, table: str) -> None:
    """Refuse to delete or to move files that another table has, too.

    Raises:
        UnsupportedError: There is such a table.
    """
    if found := notes(files):
        raise UnsupportedError(
            f"{table}: a table that was migrated in place has the same files; delete {found[0]} "
            "when that table is gone"
        )
