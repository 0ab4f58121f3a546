"""Files of a table on HDFS, through Hadoop's FileSystem.

An atomic create writes a temporary file and renames it by ``FileContext.rename`` without
``OVERWRITE``, which is atomic in the namenode (``FSNamesystem.renameTo``; Delta's ``HDFSLogStore``
relies on it, too). Many of Hadoop's other file systems check first and rename then, which no probe
can detect, so they raise an error.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.base.interrupts import ignoring_errors, reraise
from zadapter.base.java_errors import first_line, java_exception
from zadapter.errors import CorruptLogError, StoreError, UnknownTableError
from zadapter.spark.jvm.gateway import gateway_of, hadoop_conf
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.java_file import JavaFile
from zadapter_parquet.format.entries import LARGEST
from zadapter_parquet.format.paths import ASIDE, check_path
from zadapter_parquet.store.contract import ListedFile, Outcome

SCHEME = "hdfs"

JavaObject = Any

_ABSENT = "FileNotFoundException"
_EXISTS = "FileAlreadyExistsException"
_REFUSED = ("AccessControlException", "SafeModeException")


class HadoopFiles:
    """Files of a table on HDFS."""

    root = None

    def __init__(self, spark: SparkSession, uri: str, *, make: bool = False) -> None:
        """Open the table's root folder.

        Args:
            spark: A session, which provides the Hadoop settings.
            uri: ``hdfs://…``, unescaped.
            make: Whether to create a missing folder.

        Raises:
            UnknownTableError: The folder does not exist.
        """
        self.uri = uri.rstrip("/")
        jvm = java_classes(spark)
        self._fs: JavaObject = jvm.org.apache.hadoop.fs
        self._gateway: Any = gateway_of(spark.sparkContext)
        conf = hadoop_conf(spark)
        self._root = self._fs.Path(self.uri)
        self._files = self._root.getFileSystem(conf)
        self._names = self._fs.FileContext.getFileContext(self._files.getUri(), conf)
        if make:
            self._files.mkdirs(self._root)
        if not self._files.exists(self._root):
            raise UnknownTableError(f"{uri}: folder not found; check the path")

    def create(self, path: str, data: bytes) -> Outcome:
        """Create a file atomically unless it exists.

        Raises:
            StoreError: HDFS has not created the file.
        """
        temporary, target = self._path(f"{ASIDE}/{uuid4().hex}"), self._path(path)
        options = self._gateway.new_array(self._fs.Options.Rename, 0)
        with self._store_errors(path, "created"):
            self._put(temporary, data)
            self._files.mkdirs(target.getParent())
            try:
                self._names.rename(temporary, target, options)
            except Exception as error:
                reraise(error)
                if _threw(error, *_REFUSED):
                    raise
                if not _threw(error, _EXISTS):
                    return Outcome.UNKNOWN
                with ignoring_errors():
                    self._files.delete(temporary, False)  # noqa: FBT003 - not recursively
                return Outcome.EXISTS
            return Outcome.CREATED

    def _put(self, target: JavaObject, data: bytes) -> None:
        stream = self._files.create(target, True)  # noqa: FBT003 - overwrite
        with closing(stream):
            stream.write(bytearray(data))
            stream.hsync()

    @contextmanager
    def _store_errors(self, path: str, action: str) -> Iterator[None]:
        """Translate errors of HDFS to ``StoreError``."""
        try:
            yield
        except Exception as error:
            reraise(error)
            message = f"{self.uri}/{path} cannot be {action}: {first_line(error)}"
            raise StoreError(message) from error

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist.

        Raises:
            CorruptLogError: The file is larger than any file of the log.
        """
        size = self.size(path)
        if size is None:
            return None
        if size > LARGEST:
            raise CorruptLogError(f"{self.uri}/{path} is too large: {size} bytes")
        with closing(self._open(path, size)) as file:
            return file.read()

    def has(self, path: str) -> bool:
        """Return whether a file exists."""
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes, or None if it does not exist.

        Raises:
            ConnectionError: HDFS does not answer.
        """
        try:
            return int(self._files.getFileStatus(self._path(path)).getLen())
        except Exception as error:
            if _threw(error, _ABSENT):
                return None
            raise ConnectionError(f"{self.uri}/{path}: {first_line(error)}") from error

    def open_file(self, path: str) -> pa.NativeFile:
        """Open a file for random access; only the requested ranges are read."""
        size = self.size(path)
        if size is None:
            raise FileNotFoundError(f"{self.uri}/{path}")
        return pa.PythonFile(self._open(path, size), mode="r")

    def _open(self, path: str, size: int) -> JavaFile:
        return JavaFile(self._files.open(self._path(path)), size)

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite a file.

        Raises:
            StoreError: HDFS has not written the file.
        """
        with self._store_errors(path, "written"):
            self._put(self._path(path), data)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing files are ignored.

        Raises:
            StoreError: HDFS has not deleted a file.
        """
        for path in paths:
            with self._store_errors(path, "deleted"):
                self._files.delete(self._path(path), False)  # noqa: FBT003 - not recursively

    def has_after(self, path: str) -> bool:
        """Return whether a file in the same folder with the same suffix sorts after *path*.

        Names are numbers of equal length, which a glob pattern compares.
        """
        folder, _, name = path.rpartition("/")
        number, _, suffix = name.partition(".")
        larger = [
            f"{number[:at]}[{int(digit) + 1}-9]{'?' * (len(number) - at - 1)}"
            for at, digit in enumerate(number)
            if digit != "9"
        ]
        parent = re.sub(r"([\\*?\[\]{}])", r"\\\1", f"{self.uri}/{check_path(folder)}")
        pattern = self._fs.Path(f"{parent}/{{{','.join(larger)}}}.{suffix}")
        return bool(larger) and len(self._files.globStatus(pattern) or ()) > 0

    def list_files(self, folder: str = "") -> Iterator[ListedFile]:
        """Yield all files in *folder*, recursively."""
        start = self._path(folder) if folder else self._root
        root = str(self._files.makeQualified(self._root).toUri().getPath()).rstrip("/")
        try:
            statuses = self._files.listFiles(start, True)  # noqa: FBT003 - recursively
        except Exception as error:
            if _threw(error, _ABSENT):
                return
            raise
        while statuses.hasNext():
            status = statuses.next()
            path = str(status.getPath().toUri().getPath()).removeprefix(f"{root}/")
            modified = int(status.getModificationTime()) * 1_000
            yield ListedFile(path=path, size=int(status.getLen()), modified=modified)

    def location(self, path: str) -> str:
        """Return the location of a file, unescaped."""
        return f"{self.uri}/{path}"

    def move(self, names: Mapping[str, str]) -> None:
        """Rename files to unused paths; missing files count as renamed.

        Raises:
            StoreError: HDFS has not renamed a file.
        """
        for old, new in names.items():
            with self._store_errors(old, "renamed"):
                self._files.mkdirs(self._path(new).getParent())
                renamed = self._files.rename(self._path(old), self._path(new))
                if not renamed and self._files.exists(self._path(old)):
                    raise StoreError(
                        f"{self.uri}/{new} already exists; remove one of the two files"
                    )

    def sync(self, paths: Iterable[str]) -> None:
        """Do nothing: HDFS has stored closed files."""

    def _path(self, path: str) -> JavaObject:
        return self._fs.Path(f"{self.uri}/{check_path(path)}")


def _threw(error: Exception, *names: str) -> bool:
    """Return whether *error*, or one of its causes, is of a Java class with one of *names*."""
    thrown = java_exception(error)
    while thrown is not None:
        if str(thrown.getClass().getSimpleName()) in names:
            return True
        thrown = thrown.getCause()
    return False
