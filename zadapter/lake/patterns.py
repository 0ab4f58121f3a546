"""Patterns of names and of paths, without a session.

A name's parts are separated by dots, and a pattern has as many of them as the names that it
matches: a wildcard stands for characters of one part. What is in backticks stands for itself.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import escape
from itertools import zip_longest

from zadapter.base import names
from zadapter.base.names import NameParts
from zadapter.errors import UsageError

_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
_OF_NAMES = re.compile(r"[*?\[]")
_OF_PATHS = re.compile(r"[*?\[\]{}]")
"""Characters of Hadoop's patterns."""
_ESCAPED = re.compile(r"\[([*?\[])\]")


def split(text: str) -> tuple[NameParts, NameParts]:
    """Return the parts of a pattern of names as they are written, and as patterns.

    >>> split("iceberg.`a.b*`.*")
    (('iceberg', 'a.b*', '*'), ('iceberg', 'a.b[*]', '*'))

    Raises:
        UsageError: Parts are empty, or a backtick is not closed.
    """
    quoted = _QUOTED.sub(lambda found: f"`{literal(found[1])}`", text)
    try:
        return names.split(text), names.split(quoted)
    except UsageError as error:
        raise UsageError(
            f"{text!r} is no pattern of tables; pass names such as 'sales.*', with odd names in "
            "backticks, or paths such as 's3://lake/raw/*'"
        ) from error


def literal(name: str) -> str:
    """Return a pattern that matches one name."""
    return escape(name)


def matches(pattern: Sequence[str], name: Sequence[str]) -> bool:
    """Return whether a name matches part by part, ignoring case, as Spark does for names."""
    if len(pattern) != len(name):
        return False
    return all(fnmatchcase(n.lower(), p.lower()) for p, n in zip(pattern, name, strict=True))


def may_meet(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether two patterns may match the same name; False is certain."""
    return len(first) == len(second) and all(map(_may_meet, first, second))


def _may_meet(first: str, second: str) -> bool:
    plain = [_ESCAPED.sub("", part) for part in (first, second)]
    if all(map(_OF_NAMES.search, plain)):
        return True
    one, other = (first, second) if _OF_NAMES.search(plain[1]) else (second, first)
    return matches([other], [_ESCAPED.sub(r"\1", one)])


def has_wildcards(text: str, *, is_path: bool) -> bool:
    """Return whether a pattern may match several tables."""
    if is_path:
        return _OF_PATHS.search(text) is not None
    return _OF_NAMES.search(_QUOTED.sub("", text)) is not None


def is_inner(pattern: str, path: str) -> bool:
    """Return whether a wildcard of a pattern stands for a folder that tables have inside.

    These are partitions (``day=1``), and folders that readers skip (``_delta_log``, ``.hoodie``).
    As with hidden files in a shell, they count only where the pattern spells their names.
    """
    pairs = zip_longest(*([n for n in text.split("/") if n][::-1] for text in (pattern, path)))
    return any(
        part and name and _OF_PATHS.search(part) and ("=" in name or name.startswith(("_", ".")))
        for part, name in pairs
    )
