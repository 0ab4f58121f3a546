"""Checksum files that Hadoop writes beside files on local disk, and compares at each read."""

from pathlib import Path

from zadapter.base.java_errors import checksum_file


def remove(file: Path) -> None:
    """Delete the checksum file of a file that is about to be deleted or renamed, if there is one.

    Left behind, it would not match a file that another program puts there.
    """
    path = file.with_name(checksum_file(file.name))
    if path.exists():
        path.unlink(missing_ok=True)
