"""Python file objects over remote files."""

from collections.abc import Callable
from typing import Any


class RangeFile:
    """A read-only file that fetches byte ranges."""

    closed = False

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        """Open a file of *size* bytes; *fetch* takes a start and a number of bytes."""
        self.size = size
        self._fetch = fetch
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to *offset*, relative to the start, the current position or the end."""
        self._at = (0, self._at, self.size)[whence] + offset
        return self._at

    def tell(self) -> int:
        """Return the current position."""
        return self._at

    def read(self, count: int = -1) -> bytes:
        """Return *count* bytes, or fewer at the end of the file; -1 returns all remaining bytes."""
        length = self.size - self._at if count < 0 else min(count, self.size - self._at)
        data = self._fetch(self._at, length) if length else b""
        self._at += len(data)
        return data

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: the file supports random access."""
        return True

    def writable(self) -> bool:
        """Return False: the file cannot be written."""
        return False

    def close(self) -> None:
        """Close the file."""
        self.closed = True


class JavaFile(RangeFile):
    """A read-only file over Hadoop's ``FSDataInputStream``."""

    def __init__(self, stream: Any, size: int) -> None:
        """Take over an open stream of a file of *size* bytes."""
        super().__init__(size, self._read)
        self._stream = stream

    def _read(self, start: int, length: int) -> bytes:
        self._stream.seek(start)
        return bytes(self._stream.readNBytes(length))

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
        super().close()
