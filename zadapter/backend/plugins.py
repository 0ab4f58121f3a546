"""Discovery of installed backends by entry points of the group ``zadapter.backends``."""

import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from zadapter.backend.contract import Factory
from zadapter.backend.format import Format
from zadapter.base.distribution import NAME, install_command
from zadapter.errors import MissingBackendError, UsageError

GROUP = "zadapter.backends"


def names() -> list[str]:
    """Return the names of all installed backends."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(name: str) -> Factory:
    """Return the factory of the backend registered as *name*.

    Raises:
        MissingBackendError: No installed package provides the backend, more than one does, or a
            dependency of the backend is missing.
    """
    return _load(_entry(name))


def check(name: object) -> str:
    """Return the name of a backend that one installed package provides, without importing it.

    Raises:
        UsageError: *name* is not text.
        MissingBackendError: No installed package provides the backend, or more than one does.
    """
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not the name of a format")
    return _entry(name).name


def _entry(name: str) -> EntryPoint:
    return _find(name, tuple(sys.path))


@cache
def _find(name: str, path: tuple[str, ...]) -> EntryPoint:  # noqa: ARG001 - what was found depends on it
    """Return the entry point of a backend; all packages of *path* are searched, in milliseconds.

    An error is not kept: the package may be installed meanwhile.
    """
    entries = list(entry_points(group=GROUP, name=name))
    if not entries:
        raise MissingBackendError(
            f"unknown backend {name!r}; installed: {', '.join(names()) or 'none'}"
        )
    if len({entry.value for entry in entries}) > 1:
        raise MissingBackendError(
            f"{len(entries)} packages provide backend {name!r}: "
            f"{', '.join(entry.value for entry in entries)}; uninstall all but one"
        )
    return entries[0]


def _load(entry: EntryPoint) -> Factory:
    try:
        loaded: Any = entry.load()
    except ImportError as error:
        own = (entry.dist and entry.dist.name) == NAME
        hint = install_command(entry.name) if own else f"install {error.name}"
        raise MissingBackendError(
            f"backend {entry.name!r} requires {error.name}; {hint}"
        ) from error
    except Exception as error:  # a plug-in may raise anything, and must not stop the others
        raise MissingBackendError(
            f"backend {entry.name!r} cannot be loaded: {error}; reinstall "
            "its package, or uninstall it"
        ) from error
    if not isinstance(getattr(loaded, "format", None), Format):
        raise MissingBackendError(
            f"backend {entry.name!r} has no attribute format of type "
            "zadapter.backend.format.Format; install a version of it that supports this version "
            "of zadapter"
        )
    return cast("Factory", loaded)


def formats() -> dict[str, Format]:
    """Return the formats of all installed backends that can be loaded, by name."""
    loaded = {}
    for entry in entry_points(group=GROUP):
        with suppress(MissingBackendError):
            loaded[entry.name] = _load(entry).format
    return loaded
