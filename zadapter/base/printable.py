"""Text that any terminal can print, in lines of a readable length."""

import sys
from collections.abc import Iterable
from itertools import takewhile

MOST = 10
"""Number of things that one line names."""


def printable(text: str) -> str:
    """Return *text* with escapes for the characters that standard output cannot encode.

    With UTF-8, only halves of surrogate pairs are escaped, which stand for bytes in file names.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def shared_folder(names: Iterable[str]) -> str:
    """Return the folder that all paths among *names* lie in; empty: there is none.

    >>> shared_folder(["/lake/raw/a", "/lake/raw/b", "sales.orders"])
    '/lake/raw/'
    """
    folders = [name.split("/")[:-1] for name in names if "/" in name]
    same = takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))
    return "".join(f"{level[0]}/" for level in same) if len(folders) > 1 else ""


def abridge(items: Iterable[object], separator: str = ", ") -> str:
    """Return *items* as one text, which counts those after the first ten.

    >>> abridge(range(12))
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more'
    """
    texts = list(map(str, items))
    shown = separator.join(texts[:MOST])
    return f"{shown} and {len(texts) - MOST:,} more" if len(texts) > MOST else shown


def append_notes(text: str, error: BaseException) -> str:
    """Return the text of an error with its notes, such as what was committed before."""
    return ". ".join([text, *map(str, getattr(error, "__notes__", []))])
