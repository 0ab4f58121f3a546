"""Small files in an Iceberg table's folder, accessed through the table's FileIO."""

from zadapter_iceberg.jvm import JavaObject


class Store:
    """Files in one table's folder.

    Iceberg's ``remove_orphan_files`` ignores names that start with an underscore.
    """

    def __init__(self, table: JavaObject) -> None:
        self._io = table.io()
        self._location = table.location()

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        file = self._io.newInputFile(f"{self._location}/{path}")
        if not file.exists():
            return None
        stream = file.newStream()
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite a file."""
        stream = self._io.newOutputFile(f"{self._location}/{path}").createOrOverwrite()
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
