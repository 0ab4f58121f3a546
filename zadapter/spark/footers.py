"""Parquet footers, read wherever Spark can read."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from zadapter.footers import Footer, parse

THREADS = 16


def read(spark: SparkSession, uris: Sequence[str]) -> list[Footer]:
    """Read the footers of *uris*, through pyarrow on local disk and Hadoop's FileSystem elsewhere.

    Raises:
        FileNotFoundError: A file is not there.
        pyarrow.ArrowInvalid: A file is no Parquet file.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda uri: parse(*metadata(spark, uri)), uris))


def metadata(spark: SparkSession, uri: str) -> tuple[int, pq.FileMetaData]:
    """Return the bytes of a file and its footer as it is.

    Raises:
        FileNotFoundError: The file is not there.
        pyarrow.ArrowInvalid: It is no Parquet file.
    """
    parsed = urlparse(uri)
    if parsed.scheme in {"", "file"}:
        path = unquote(parsed.path) if parsed.scheme else uri
        with pa.OSFile(path) as source:
            return source.size(), pq.read_metadata(source)
    with closing(_HadoopFile(spark, uri)) as stream:
        return stream.size, pq.read_metadata(pa.PythonFile(stream, mode="r"))


class _HadoopFile:
    """Read-only file over Hadoop's FileSystem, for the few bytes that a footer takes."""

    closed = False

    def __init__(self, spark: SparkSession, uri: str) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
        conf = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
        files = path.getFileSystem(conf)
        self.size = int(files.getFileStatus(path).getLen())
        self._stream = files.open(path)
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = (0, self._at, self.size)[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int = -1) -> bytes:
        wanted = self.size - self._at if count < 0 else min(count, self.size - self._at)
        self._stream.seek(self._at)
        found = bytes(self._stream.readNBytes(wanted))
        self._at += len(found)
        return found

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        self._stream.close()
        self.closed = True
