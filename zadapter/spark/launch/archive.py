"""An archive of Java classes (AppCDS), from which Spark's JVM starts some seconds faster.

The second JVM of a class path writes the archive when it ends, after Python has ended; this takes
some seconds. Later JVMs map it. A machine that starts Spark once, such as a container, writes none.
Java checks an archive against its own version and the jars, and ignores one that does not fit or is
incomplete, such as that of a JVM that was killed meanwhile.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyspark

from zadapter.spark import settings
from zadapter.spark.launch import jars
from zadapter.spark.launch.java import Java

_SUFFIX = ".jsa"
_STARTS = ".starts"
"""Suffix of a file that has one byte for each start without an archive."""
_UNUSED = 30 * 24 * 3600
"""Seconds after which an archive that no session has used is deleted."""
_SILENT = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:cds*=off"
_OWN = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare", "SharedClassListFile")
"""Options with which users state an archive of their own, or none."""


def additions(stated: Mapping[str, str], added: Mapping[str, str], java: Java) -> dict[str, str]:
    """Return *added* with the Java option to use an archive, or to write one, if any.

    Args:
        stated: The user's settings. With an archive of the user's, nothing is added.
        added: Settings of the new session so far. Only sessions on one machine, whose jars are on
            the class path, use an archive.
        java: The Java that runs Spark.
    """
    class_path = added.get(settings.CLASS_PATH, "")
    folder = jars.folder(stated)
    # a path with a space would need quotes that some of Spark's scripts drop
    if not class_path or _has_own(stated) or " " in str(folder):
        return dict(added)
    option = None
    with suppress(OSError):  # no folder for it, or a Java of another shape
        option = _option(folder / f"{_digest(java, class_path)}{_SUFFIX}")
    if option is None:
        return dict(added)
    before = added.get(settings.JAVA_OPTIONS, stated.get(settings.JAVA_OPTIONS, ""))
    return {**added, settings.JAVA_OPTIONS: f"{before} {_SILENT} {option}".strip()}


def _has_own(stated: Mapping[str, str]) -> bool:
    options = [stated.get(key, "") for key in settings.JAVA_OPTION_KEYS]
    options += [os.environ.get(name, "") for name in settings.JAVA_VARIABLES]
    return any(own in text for text in options for own in _OWN)


def _digest(java: Java, class_path: str) -> str:
    program = (java.home / "bin" / "java").stat()
    identity = [
        str(java.home),
        program.st_mtime_ns,
        pyspark.__file__,
        pyspark.__version__,
        class_path,
    ]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]


def _option(archive: Path) -> str | None:
    """Return the Java option to map or to write an archive, or None to do without."""
    with suppress(OSError):
        os.utime(archive)  # later starts see that it is in use
        return f"-XX:SharedArchiveFile={archive}"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(_STARTS).open("ab") as starts:
        earlier = starts.tell()
        starts.write(b".")
    if earlier != 1:  # a JVM that could not write it once will not the next time
        return None
    _delete_unused(archive.parent)
    return f"-XX:ArchiveClassesAtExit={archive}"


def _delete_unused(folder: Path) -> None:
    for archive in folder.glob(f"*{_SUFFIX}"):
        with suppress(OSError):
            if archive.stat().st_mtime < time.time() - _UNUSED:
                archive.unlink()
                archive.with_suffix(_STARTS).unlink()
