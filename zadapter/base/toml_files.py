"""Files of settings in TOML, whose mistakes are listed all at once, one a line."""

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from zadapter.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Readers = Mapping[str, Callable[[Any], Any]]
"""Functions from the value of a key to what it means; they raise :class:`UsageError`."""


class Mistakes:
    """The mistakes that were found so far."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._lines)

    @contextmanager
    def at(self, *where: str) -> Iterator[None]:
        """Note what the block refuses, a mistake a line, with the place that it is about."""
        try:
            yield
        except UsageError as error:
            for line in str(error).splitlines() or [repr(error)]:
                self.add(*where, line)

    def add(self, *parts: str) -> None:
        """Note a mistake, with the place that it is about before it."""
        self._lines.append(": ".join(parts))

    def refuse(self) -> None:
        """Raise an error if there are mistakes.

        Raises:
            UsageError: There are; the message lists all of them.
        """
        if self._lines:
            raise UsageError("\n".join(self._lines))


@contextmanager
def prefix_lines(where: str) -> Iterator[None]:
    """Name the place that a refusal is about in each line of it.

    Raises:
        UsageError: The block has raised one.
    """
    mistakes = Mistakes()
    with mistakes.at(where):
        yield
    mistakes.refuse()


def parse_file(path: Path) -> dict[str, Any]:
    """Return the content of a file.

    Raises:
        UsageError: The file cannot be read, or it is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: the file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: the file is not UTF-8: {error.reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: the file is not TOML: {error}") from error


def parse_value(text: str) -> Any:
    """Return a value in the notation of a file; a text that is none in it stands for itself."""
    with suppress(tomllib.TOMLDecodeError, RecursionError):
        found = tomllib.loads(f"value = {text}")
        if found.keys() == {"value"}:
            return found["value"]
    return text


def read_table(
    given: Mapping[str, Any],
    readers: Readers,
    *,
    needed: Collection[str] = (),
    reasons: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return what the keys of a table of TOML mean.

    Args:
        given: The table.
        readers: A function for each known key.
        needed: Keys that the table must have.
        reasons: Why some keys are unknown, as for `check_keys`.

    Raises:
        UsageError: The table has mistakes; the message lists all of them.
    """
    mistakes, found = Mistakes(), dict[str, Any]()
    with mistakes.at():
        check_keys(given, readers, reasons)
    for key in [key for key in given if key in readers]:
        with mistakes.at(key), _unnamed(key):
            found[key] = readers[key](given[key])
    for key in [key for key in needed if key not in given]:
        mistakes.add(f"the key {key!r} is missing")
    mistakes.refuse()
    return found


@contextmanager
def _unnamed(key: str) -> Iterator[None]:
    """Leave a key out at the start of a refusal, since its place is named before it.

    Raises:
        UsageError: The block has raised one.
    """
    try:
        yield
    except UsageError as error:
        argument = re.escape(key.rpartition(".")[2])
        raise UsageError(re.sub(rf"\A{argument}(=:|=|:) ", "", str(error))) from error


def check_keys(
    given: Mapping[str, Any], known: Collection[str], reasons: Mapping[str, str] | None = None
) -> None:
    """Refuse keys that are not known, each with a near one, or with what to write instead.

    Args:
        given: A table.
        known: The known keys.
        reasons: Why some keys are unknown: the end of a sentence that begins with the key.

    Raises:
        UsageError: There are unknown keys.
    """
    mistakes = Mistakes()
    for key in [key for key in given if key not in known]:
        name = str(key).replace("-", "_")
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(known)}"
        reason = (reasons or {}).get(name)
        mistakes.add(f"the key {key!r} {reason}" if reason else f"unknown key {key!r}; {hint}")
    mistakes.refuse()


def table_at(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table of options that a file has as *key*; empty if it has none.

    Raises:
        UsageError: It is something else.
    """
    found = content.get(key, {})
    if not isinstance(found, Mapping):
        raise UsageError(f"{key} must be a table of options: [{key}], not {found!r}")
    return found


def tables_at(content: Mapping[str, Any], key: str, example: str) -> Sequence[Mapping[str, Any]]:
    """Return the list of tables that a file has as *key*.

    Raises:
        UsageError: There is none, or it is something else.
    """
    found = content.get(key)
    is_list = isinstance(found, list | tuple) and all(isinstance(t, Mapping) for t in found)
    if not is_list or not found:
        raise UsageError(f"the file lists no {key}; write {example}")
    return list(found)
