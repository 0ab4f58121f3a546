"""Footers of files, with only the columns that are certainly those of the table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from zadapter.base.locations import map_files
from zadapter.base.names import Parts
from zadapter.base.ranks import Ints
from zadapter.spark.footers import metadata
from zadapter.table.file_stats import replaced
from zadapter.table.footers import Footer, file_table, parse, row_groups
from zadapter.table.snapshot import Snapshot

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Row groups of some files, as a file table.

    Attributes:
        table: One row for each row group, with the partition values of its file.
        file_of: Index of each row group's file.
    """

    table: pa.Table
    file_of: Ints


def of_files(spark: SparkSession, snapshot: Snapshot, uris: Sequence[str]) -> pa.Table:
    """Return a file table from the footers of files; ``path`` has the numbers of *uris*."""
    found = map_files(lambda uri: _certain(snapshot, *_parsed(spark, uri)), uris)
    return file_table(snapshot, {str(number): footer for number, footer in enumerate(found)})


def _parsed(spark: SparkSession, uri: str) -> tuple[Footer, pq.FileMetaData]:
    size, footer = metadata(spark, uri)
    return parse(size, footer), footer


def of_row_groups(
    spark: SparkSession,
    snapshot: Snapshot,
    files: pa.Table,
    uris: Sequence[str],
    columns: Sequence[Parts],
) -> Groups:
    """Return the row groups of *files*, with stats of the outermost columns of *columns*."""

    def groups_of(uri: str) -> list[Footer]:
        size, footer = metadata(spark, uri)
        return [_certain(snapshot, group, footer) for group in row_groups(size, footer)]

    names = {parts[0] for parts in columns}
    narrow = replace(snapshot, schema=pa.schema([f for f in snapshot.schema if f.name in names]))
    read = list(map_files(groups_of, uris))
    file_of = np.repeat(np.arange(len(read)), [len(groups) for groups in read])
    every = [group for groups in read for group in groups]
    table = file_table(narrow, {str(number): group for number, group in enumerate(every)})
    values = files["partition"].combine_chunks().take(pa.array(file_of))
    return Groups(replaced(table, files.schema.field("partition"), values), file_of)


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
