"""Reading of Parquet footers from every store that Spark can read.

Tables from footers have only the columns that are certainly those of the table.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from zadapter.backend.contract import Backend
from zadapter.base.interrupts import ignoring_errors, reraise
from zadapter.base.locations import map_files
from zadapter.base.names import NameParts
from zadapter.base.translate_errors import is_foreign, texts, translate_error
from zadapter.errors import DataFileError
from zadapter.predicates.row_groups import Groups, groups_of
from zadapter.spark.jvm.gateway import hadoop_conf
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.java_file import JavaFile
from zadapter.table.file_stats import spread
from zadapter.table.footers import Footer, file_table, parse, row_groups
from zadapter.table.snapshot import Snapshot

_FIELD_ID = b"PARQUET:field_id"
_STATS = 20_000
"""Maximum number of stats in the footers that a prediction reads: one for each column in each row
group."""


def read(spark: SparkSession, uris: Sequence[str]) -> list[Footer]:
    """Read the footers of *uris*, with pyarrow on local disk and Hadoop's FileSystem elsewhere.

    Raises:
        FileNotFoundError: A local file is missing.
        pyarrow.ArrowInvalid: A file is not a Parquet file.
    """
    return list(map_files(lambda uri: parse(*metadata(spark, uri)), uris))


@dataclass(frozen=True, slots=True, eq=False)
class FooterStats:
    """What footers say of files.

    Attributes:
        table: The file table; ``path`` has the number of each file.
        lost: Why other files cannot be read, by number.
    """

    table: pa.Table
    lost: Mapping[int, str]


def read_file_table(spark: SparkSession, snapshot: Snapshot, uris: Sequence[str]) -> FooterStats:
    """Return a file table from the footers of the files that are there and are undamaged."""

    def read_footer(uri: str) -> Footer | DataFileError:
        try:
            return _certain(snapshot, *_read_footer(spark, uri))
        except Exception as error:
            reraise(error)
            found = translate_error(snapshot.table, texts(error)) if is_foreign(error) else error
            if isinstance(found, DataFileError):
                return found
            raise

    read = dict(enumerate(map_files(read_footer, uris)))
    known = {str(number): each for number, each in read.items() if isinstance(each, Footer)}
    lost = {number: str(each) for number, each in read.items() if isinstance(each, DataFileError)}
    return FooterStats(file_table(snapshot, known), lost)


def read_row_group_table(
    spark: SparkSession | None,
    snapshot: Snapshot,
    files: pa.Table,
    uris: Sequence[str],
    columns: Collection[NameParts],
) -> Groups:
    """Return the row groups of *files*, with stats of the outermost columns of *columns*."""

    def read_groups(uri: str) -> list[Footer]:
        size, footer = metadata(spark, uri)
        return [_certain(snapshot, group, footer) for group in row_groups(size, footer)]

    names = {parts[0] for parts in columns}
    return groups_of(snapshot, files, list(map_files(read_groups, uris)), names)


def read_row_groups(
    backend: Backend, snapshot: Snapshot, files: pa.Table, columns: Collection[NameParts]
) -> pa.Table | None:
    """Return the row groups of *files* as a file table.

    Returns:
        None if a footer cannot be read; the reader of the rows raises a better error for it.
    """
    with ignoring_errors():
        uris = backend.uris(snapshot, files["path"].to_pylist())
        is_local = all(_local_path(uri) is not None for uri in uris)
        spark = None if is_local else backend.read(snapshot, files.slice(0, 0)).sparkSession
        return read_row_group_table(spark, snapshot, files, uris, columns).table
    return None


def pick_files(snapshot: Snapshot, files: pa.Table, most: int, row_groups: int) -> pa.Table:
    """Return evenly spread *files* whose footers a prediction reads.

    Args:
        snapshot: The table's version.
        files: The file table.
        most: Maximum number of files; fewer of a table with many columns.
        row_groups: Expected number of row groups in a file.
    """
    affordable = _STATS // (len(snapshot.schema) * row_groups)
    return spread(files, max(1, min(most, affordable)))


def metadata(spark: SparkSession | None, uri: str) -> tuple[int, pq.FileMetaData]:
    """Return the size of a file in bytes, and its footer.

    Args:
        spark: A session; files on the local disk need none.
        uri: The file.

    Raises:
        FileNotFoundError: The local file is missing.
        pyarrow.ArrowInvalid: The file is not a Parquet file.
    """
    if (path := _local_path(uri)) is not None:
        with pa.OSFile(path) as source:
            return source.size(), pq.read_metadata(source)
    with closing(_open_file(spark, uri)) as stream:
        return stream.size, pq.read_metadata(pa.PythonFile(stream, mode="r"))


def _local_path(uri: str) -> str | None:
    """Return the path of a file on the local disk, or None for a file elsewhere."""
    parsed = urlparse(uri)
    if parsed.scheme in {"", "file"}:
        return unquote(parsed.path) if parsed.scheme else uri
    return None


def _open_file(spark: SparkSession | None, uri: str) -> JavaFile:
    jvm = java_classes(spark)
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
    files = path.getFileSystem(hadoop_conf(spark))
    size = int(files.getFileStatus(path).getLen())
    return JavaFile(files.open(path), size)


def _read_footer(spark: SparkSession, uri: str) -> tuple[Footer, pq.FileMetaData]:
    size, footer = metadata(spark, uri)
    return parse(size, footer), footer


def _certain(snapshot: Snapshot, footer: Footer, metadata: pq.FileMetaData) -> Footer:
    """Return a footer without columns that have the name of a table's column, but another id."""
    if not snapshot.field_ids:
        return footer
    ids = dict(_field_ids_by_path(metadata.schema.to_arrow_schema(), ()))
    wanted = {".".join(snapshot.physical.get(p, p)): n for p, n in snapshot.field_ids.items()}
    kept = {
        path: column
        for path, column in footer.columns.items()
        if ids.get(path) is None or ids.get(path) == wanted.get(path)
    }
    return replace(footer, columns=kept)


def _field_ids_by_path(
    fields: pa.Schema | pa.StructType, above: NameParts
) -> list[tuple[str, int]]:
    """Return the id of each column that has one, by its path in the file."""
    found = []
    for field in fields:
        path = (*above, field.name)
        number = (field.metadata or {}).get(_FIELD_ID)
        if number is not None:
            found.append((".".join(path), int(number)))
        if pa.types.is_struct(field.type):
            found += _field_ids_by_path(field.type, path)
    return found
