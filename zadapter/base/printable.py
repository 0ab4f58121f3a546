"""Text that any terminal can print."""

import sys


def printable(text: str) -> str:
    """Return *text* with escapes for the characters that standard output cannot encode.

    With UTF-8, only halves of surrogate pairs are escaped, which stand for bytes in file names.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
