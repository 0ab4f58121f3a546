"""Small files in a Delta table's folder, accessed through Hadoop's FileSystem."""

from zadapter_delta.jvm import JavaObject, Jvm


class Store:
    """Files in one table's folder; VACUUM ignores names that start with an underscore."""

    def __init__(self, jvm: Jvm, log: JavaObject) -> None:
        self._jvm = jvm
        self._root = str(log.dataPath())
        self._files = log.dataPath().getFileSystem(log.newDeltaHadoopConf())

    def _path(self, path: str) -> JavaObject:
        return self._jvm.path(f"{self._root}/{path}")

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        if not self._files.exists(self._path(path)):
            return None
        stream = self._files.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite a file."""
        stream = self._files.create(self._path(path), True)  # noqa: FBT003
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
