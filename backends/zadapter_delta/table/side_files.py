"""Small files in a Delta table's folder, accessed through Hadoop's FileSystem."""

from functools import cached_property

from zadapter.base.java_errors import causes
from zadapter.errors import CorruptLogError
from zadapter.spark.jvm.removal import find_files, remove_named
from zadapter.table.staged_files import SHORT, StagedFile, StagedWrite
from zadapter_delta.jvm import JavaObject, Jvm


def prefix_of(write: str) -> str:
    """Return the prefix of the names of all files of a write, by the write's id."""
    return f"zadapter-{write[:SHORT]}-"


class Store:
    """Files in one table's folder; VACUUM ignores names that start with an underscore."""

    def __init__(self, jvm: Jvm, log: JavaObject) -> None:
        self._jvm = jvm
        self._folder = log.dataPath()
        self.root = str(self._folder)
        self._files = self._folder.getFileSystem(log.newDeltaHadoopConf())

    @cached_property
    def uri(self) -> str:
        """The URI of the folder."""
        return str(self._folder.toUri())

    def _path(self, path: str) -> JavaObject:
        return self._jvm.path(f"{self.root}/{path}")

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        if not self._files.exists(self._path(path)):
            return None
        stream, content = (
            self._files.open(self._path(path)),
            self._jvm.root.java.io.ByteArrayOutputStream(),
        )
        try:
            stream.transferTo(content)
            # Py4j decodes an array byte by byte, and a text at once
            return str(content.toString("ISO-8859-1")).encode("latin-1")
        finally:
            stream.close()

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite a file."""
        stream = self._files.create(self._path(path), True)  # noqa: FBT003
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    def list_modification_times(self, folder: str) -> dict[str, int]:
        """Return when each file in a folder was modified, by name; none if it does not exist."""
        if not self._files.exists(self._path(folder)):
            return {}  # most tables have none, and PySpark converts exceptions in 20 to 50 ms
        try:
            found = self._files.listStatus(self._path(folder))
            return {str(f.getPath().getName()): int(f.getModificationTime()) for f in found}
        except Exception as error:
            if any("FileNotFoundException" in cause for cause in causes(error)):
                return {}  # the last run of others has ended meanwhile
            raise

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        self._files.delete(self._path(path), False)  # noqa: FBT003

    def list_staged(self, write: StagedWrite) -> list[StagedFile]:
        """Return the files of a write, which may lie in any partition's folder."""
        return [
            StagedFile(
                location=str(each.getPath().toString()),
                size=int(each.getLen()),
                modified=int(each.getModificationTime()),
            )
            for each in find_files(self._jvm.spark, self.root, prefix_of(write.id))
        ]

    def is_named(self, write: StagedWrite, after: int | None, until: int | None) -> bool:
        """Return whether a commit after a version, up to another one, names files of a write.

        Raises:
            CorruptLogError: One of the commits is gone.
        """
        for version in range(-1 if after is None else after, -1 if until is None else until):
            path = f"_delta_log/{version + 1:020d}.json"
            data = self.read(path)
            if data is None:
                raise CorruptLogError(
                    f"{path} is missing, so the files that it names are unknown; restore it"
                )
            if prefix_of(write.id).encode() in data:
                return True
        return False

    def remove(self, write: StagedWrite) -> None:
        """Delete the files of a write."""
        remove_named(self._jvm.spark, self.root, prefix_of(write.id))
