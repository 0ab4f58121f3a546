"""Folders that Spark writes to before it can say which one is full."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

from zadapter.errors import SessionError
from zadapter.spark import settings

LOCAL = "spark.local.dir"
_VARIABLE = "SPARK_LOCAL_DIRS"
_JAVA = "java.io.tmpdir"
_NEEDED = 1 << 20
"""Bytes of the native libraries for compression, which Java unpacks to its temporary folder."""


def find_fault(folder: Path, size: int = 1) -> str | None:
    """Return why *size* bytes cannot be written to a folder, or None if they can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(size))
    except OSError as error:
        return error.strerror or str(error)
    return None


def refuse_full(stated: Mapping[str, str]) -> None:
    """Refuse to start Spark on this machine if all its folders for scratch files are full.

    Raises:
        SessionError: None of them can be written.
    """
    if not stated.get(settings.MASTER, "local").startswith("local"):
        return
    faults = {folder: find_fault(folder, _NEEDED) for folder in scratch(stated)}
    if faults and all(faults.values()):
        listed = ", ".join(f"{folder} ({reason})" for folder, reason in faults.items())
        raise SessionError(
            f"Spark has no folder for scratch files: {listed}; "
            f"free space there, or set {LOCAL} to a folder that can be written"
        )


def scratch(stated: Mapping[str, str]) -> list[Path]:
    """Return the folders that are set, or Java's temporary one where it is the same everywhere."""
    given = os.environ.get(_VARIABLE) or stated.get(LOCAL)
    if given:
        return [Path(each.strip()) for each in given.split(",") if each.strip()]
    options = [stated.get(key, "") for key in settings.JAVA_OPTION_KEYS]
    options += [os.environ.get(name, "") for name in settings.JAVA_VARIABLES]
    shared = Path("/tmp")  # noqa: S108 - Java's own default
    is_default = sys.platform == "linux" and not any(_JAVA in text for text in options)
    return [shared] if is_default else []
