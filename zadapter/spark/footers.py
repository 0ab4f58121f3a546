"""Reading of Parquet footers from every store that Spark can read."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from zadapter.base.java_file import JavaFile
from zadapter.base.locations import map_files
from zadapter.table.footers import Footer, parse, row_groups


def read(spark: SparkSession, uris: Sequence[str]) -> list[Footer]:
    """Read the footers of *uris*, with pyarrow on local disk and Hadoop's FileSystem elsewhere.

    Raises:
        FileNotFoundError: A local file is missing.
        pyarrow.ArrowInvalid: A file is not a Parquet file.
    """
    return list(map_files(lambda uri: parse(*metadata(spark, uri)), uris))


def read_row_groups(spark: SparkSession, uris: Sequence[str]) -> list[list[Footer]]:
    """Read one footer per row group of the files *uris*, with the errors of :func:`read`."""
    return list(map_files(lambda uri: row_groups(*metadata(spark, uri)), uris))


def metadata(spark: SparkSession, uri: str) -> tuple[int, pq.FileMetaData]:
    """Return the size of a file in bytes, and its footer.

    Raises:
        FileNotFoundError: The local file is missing.
        pyarrow.ArrowInvalid: The file is not a Parquet file.
    """
    parsed = urlparse(uri)
    if parsed.scheme in {"", "file"}:
        path = unquote(parsed.path) if parsed.scheme else uri
        with pa.OSFile(path) as source:
            return source.size(), pq.read_metadata(source)
    with closing(_opened(spark, uri)) as stream:
        return stream.size, pq.read_metadata(pa.PythonFile(stream, mode="r"))


def _opened(spark: SparkSession, uri: str) -> JavaFile:
    jvm: Any = spark._jvm  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
    files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
    size = int(files.getFileStatus(path).getLen())
    return JavaFile(files.open(path), size)
