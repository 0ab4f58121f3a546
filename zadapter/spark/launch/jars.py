"""Jars of Maven packages: resolved by Ivy once, then named by path.

Ivy resolves ``spark.jars.packages`` at every start, which takes seconds, and prints 50 lines. Here
a process of its own has Spark resolve them, quietly. The jars that it reports are recorded beside
Ivy's, so the next start needs no Ivy. A record is used only while every jar has the recorded size.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from filelock import FileLock

from zadapter.spark import settings
from zadapter.spark.launch import ivy

_SOURCES = ("spark.jars.repositories", "spark.jars.ivySettings")
_ONE_JVM = re.compile(r"local(\[.*)?\Z")
_logger = logging.getLogger(__name__)


def resolve_jars(stated: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return *added* with paths of jars instead of packages, unless the user has packages.

    On one machine the jars are part of the JVM's class path, so that the executor does not copy
    them. A cluster's executors receive them from the driver.

    Args:
        stated: The user's settings.
        added: Settings of the new session so far.

    Raises:
        UnresolvedError: The packages cannot be resolved.
    """
    # a driver or an SDK in the user's jars would not be seen from the class path
    one_jvm = _ONE_JVM.match(stated.get(settings.MASTER, "local")) and not stated.get(settings.JARS)
    key, separator = (settings.CLASS_PATH, os.pathsep) if one_jvm else (settings.JARS, ",")
    is_hidden = key in settings.submit_args()
    if settings.PACKAGES not in added or stated.get(settings.PACKAGES) or is_hidden:
        return dict(added)
    excludes = added.get(settings.EXCLUDES, stated.get(settings.EXCLUDES, ""))
    paths = _resolve_packages(stated, added[settings.PACKAGES], excludes)
    before = [stated[key]] if stated.get(key) else []
    rest = {
        name: value
        for name, value in added.items()
        if name not in {settings.PACKAGES, settings.EXCLUDES}
    }
    return rest | {key: separator.join([*before, *paths])}


def _folder(stated: Mapping[str, str]) -> Path:
    """Return the folder beside Ivy's jars for what later sessions reuse."""
    return ivy.home(stated) / "zadapter"


def _resolve_packages(stated: Mapping[str, str], packages: str, excludes: str) -> Sequence[str]:
    """Return the paths of the packages' jars and of all jars that these depend on."""
    asked = [packages, excludes, *(stated.get(key, "") for key in _SOURCES)]
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
    record = _folder(stated) / f"{digest}.json"
    if paths := _read_record(record, asked):
        return paths
    _logger.warning("resolving %s; the first start downloads jars", packages)
    with _alone(_folder(stated)):
        if paths := _read_record(record, asked):
            return paths
        paths = ivy.resolve(stated, packages, excludes)
        with suppress(OSError):  # without a record, the next start resolves again
            _keep(record, asked, paths)
    return paths


@contextmanager
def _alone(shared: Path) -> Iterator[None]:
    """Wait for other processes that download: Ivy's cache breaks if two of them write to it."""
    with ExitStack() as stack:
        with suppress(OSError, NotImplementedError):  # no folder, or no locks in this file system
            shared.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(shared / "lock"))
        yield


def _read_record(record: Path, asked: Sequence[str]) -> Sequence[str]:
    """Return the recorded paths, or none if a jar is missing or has changed."""
    try:
        kept = json.loads(record.read_text(encoding="utf-8"))
        sizes: dict[str, int] = kept["jars"]
        whole = all(Path(path).stat().st_size == size for path, size in sizes.items())
        return list(sizes) if kept["asked"] == asked and whole else []
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _keep(record: Path, asked: Sequence[str], paths: Sequence[str]) -> None:
    kept = {"asked": asked, "jars": {path: Path(path).stat().st_size for path in paths}}
    with NamedTemporaryFile("w", dir=record.parent, delete=False, encoding="utf-8") as file:
        file.write(json.dumps(kept, indent=1))
    Path(file.name).replace(record)
