"""Small files beside an Iceberg table, through the table's own FileIO."""

from zadapter_iceberg.jvm import JavaObject


class Store:
    """The folder of one table.

    Names that start with an underscore are hidden from Iceberg's ``remove_orphan_files``.
    """

    def __init__(self, table: JavaObject) -> None:
        self._io = table.io()
        self._location = table.location()

    def read(self, path: str) -> bytes | None:
        """Return what a file holds, None where there is none."""
        file = self._io.newInputFile(f"{self._location}/{path}")
        if not file.exists():
            return None
        stream = file.newStream()
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, path: str, data: bytes) -> None:
        """Write a file, or write it anew."""
        stream = self._io.newOutputFile(f"{self._location}/{path}").createOrOverwrite()
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
