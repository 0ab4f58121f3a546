"""Files that the JVM has opened, read as Python reads its own."""

from typing import Any


class JavaFile:
    """A read-only file over Hadoop's ``FSDataInputStream``."""

    closed = False

    def __init__(self, stream: Any, size: int) -> None:
        """Take over an open stream of a file of *size* bytes."""
        self.size = size
        self._stream = stream
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to *offset*, counted from the start, the present place or the end."""
        self._at = (0, self._at, self.size)[whence] + offset
        return self._at

    def tell(self) -> int:
        """Return the present place."""
        return self._at

    def read(self, count: int = -1) -> bytes:
        """Return so many bytes, or fewer at the end; -1 is all that are left."""
        wanted = self.size - self._at if count < 0 else min(count, self.size - self._at)
        self._stream.seek(self._at)
        found = bytes(self._stream.readNBytes(wanted))
        self._at += len(found)
        return found

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be read from any place."""
        return True

    def writable(self) -> bool:
        """Tell that it cannot be written."""
        return False

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
        self.closed = True
