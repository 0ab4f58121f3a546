"""Contents of a folder that make it more than a folder of Parquet files.

These are tables of other formats, logs of streaming queries, and symbolic links.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from zadapter.errors import UnsupportedError
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.store import hive_names
from zadapter_parquet.store.contract import Files, ListedFile

_LOGS = {
    "_delta_log": "Delta",
    HIDDEN: "zadapter",
    ".hoodie": "Hudi",
}
"""Metadata folders, and the formats of their tables."""
_METADATA = ".metadata.json"
"""Suffix of Iceberg's metadata files."""
_STREAM = "_spark_metadata"
"""Folder of the log of a streaming query, which lists the only files that Spark reads."""


def refuse(files: Files, listed: Sequence[ListedFile]) -> None:
    """Check that a folder is neither a table already nor beside one, and contains no links.

    Raises:
        UnsupportedError: There is such a table, a streaming query's log, or a link.
    """
    _refuse_tables(files, listed)
    refuse_stream(files, listed)
    _refuse_links(files)


def _refuse_tables(files: Files, listed: Sequence[ListedFile]) -> None:
    """Check that the folder neither contains nor is within a table, whose files may not be live.

    Raises:
        UnsupportedError: There is such a table.
    """
    for file in listed:
        # files that were staged here without a commit do not make a table
        names = file.path.removeprefix(f"{HIDDEN}/").split("/")[:-1]
        formats = [_LOGS[name] for name in names if name in _LOGS]
        if formats or file.path.endswith(_METADATA):
            found = formats[0] if formats else "Iceberg"
            raise UnsupportedError(
                f"{files.uri} contains {file.path} of a table of {found}, whose files are not all "
                "live; pass that table, or move it out of the folder",
                table_format=found.lower(),
            )
    parents = [] if files.root is None else files.root.resolve().parents
    for folder in parents:
        for name, format_ in _LOGS.items():
            if (folder / name).is_dir():
                raise UnsupportedError(
                    f"{files.uri} is inside {folder}, a table of {format_}; pass that table, or "
                    "move the folder out of it",
                    table_format=format_.lower(),
                )


def refuse_stream(files: Files, listed: Sequence[ListedFile]) -> None:
    """Check that Spark takes the files of the folder from its listing.

    Raises:
        UnsupportedError: It takes them from the log of a streaming query.
    """
    if any(file.path.startswith(f"{_STREAM}/") for file in listed):
        raise UnsupportedError(
            f"{files.uri} contains {_STREAM}, the log of a streaming query, and Spark reads only "
            "the files in that log; copy the rows by Spark into a new folder, and pass that"
        )


def _refuse_links(files: Files) -> None:
    """Check that no file is there under two names: deleting one would take the other's rows.

    Raises:
        UnsupportedError: There is a symbolic link that Spark follows.
    """
    if files.root is None:
        return
    for parent, folders, names in os.walk(files.root):
        for name in (*folders, *names):
            path = Path(parent, name)
            if path.is_symlink() and not hive_names.is_hidden(
                path.relative_to(files.root).as_posix()
            ):
                raise UnsupportedError(
                    f"{path} is a symbolic link, so the rows of one file may be read twice; "
                    "remove the link, or move its target there"
                )
