"""Reading of Parquet footers from every store that Spark can read.

Tables from footers have only the columns that are certainly those of the table.
"""

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from zadapter.base.java_file import JavaFile
from zadapter.base.locations import map_files
from zadapter.base.names import Parts
from zadapter.filters.row_groups import Groups, groups_of
from zadapter.table.footers import Footer, file_table, parse, row_groups
from zadapter.table.snapshot import Snapshot

_FIELD_ID = b"PARQUET:field_id"


def read(spark: SparkSession, uris: Sequence[str]) -> list[Footer]:
    """Read the footers of *uris*, with pyarrow on local disk and Hadoop's FileSystem elsewhere.

    Raises:
        FileNotFoundError: A local file is missing.
        pyarrow.ArrowInvalid: A file is not a Parquet file.
    """
    return list(map_files(lambda uri: parse(*metadata(spark, uri)), uris))


def of_files(spark: SparkSession, snapshot: Snapshot, uris: Sequence[str]) -> pa.Table:
    """Return a file table from the footers of files; ``path`` has the numbers of *uris*."""
    found = map_files(lambda uri: _certain(snapshot, *_parsed(spark, uri)), uris)
    return file_table(snapshot, {str(number): footer for number, footer in enumerate(found)})


def of_row_groups(
    spark: SparkSession,
    snapshot: Snapshot,
    files: pa.Table,
    uris: Sequence[str],
    columns: Collection[Parts],
) -> Groups:
    """Return the row groups of *files*, with stats of the outermost columns of *columns*."""

    def read_groups(uri: str) -> list[Footer]:
        size, footer = metadata(spark, uri)
        return [_certain(snapshot, group, footer) for group in row_groups(size, footer)]

    names = {parts[0] for parts in columns}
    return groups_of(snapshot, files, list(map_files(read_groups, uris)), names)


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


def _parsed(spark: SparkSession, uri: str) -> tuple[Footer, pq.FileMetaData]:
    size, footer = metadata(spark, uri)
    return parse(size, footer), footer


def _certain(snapshot: Snapshot, footer: Footer, metadata: pq.FileMetaData) -> Footer:
    """Return a footer without columns that have the name of a table's column, but another id."""
    if not snapshot.field_ids:
        return footer
    ids = dict(_ids(metadata.schema.to_arrow_schema(), ()))
    wanted = {".".join(snapshot.physical.get(p, p)): n for p, n in snapshot.field_ids.items()}
    kept = {
        path: column
        for path, column in footer.columns.items()
        if ids.get(path) is None or ids.get(path) == wanted.get(path)
    }
    return replace(footer, columns=kept)


def _ids(fields: pa.Schema | pa.StructType, above: Parts) -> list[tuple[str, int]]:
    """Return the id of each column that has one, by its path in the file."""
    found = []
    for field in fields:
        path = (*above, field.name)
        number = (field.metadata or {}).get(_FIELD_ID)
        if number is not None:
            found.append((".".join(path), int(number)))
        if pa.types.is_struct(field.type):
            found += _ids(field.type, path)
    return found
