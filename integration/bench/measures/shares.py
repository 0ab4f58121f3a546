"""Shares of the table that min/max pruning cannot exclude, from the footers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tests.kit.builders import snapshot
from zadapter.predicates.predicate import Predicate
from zadapter.predicates.pruning import matching
from zadapter.spark.where import condition
from zadapter.table import footers
from zadapter.table.footers import Footer
from zadapter.table.spark_schema import arrow_schema

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shares:
    """Data that each filter has to read, as shares of the table; arrays have one entry per filter.

    Attributes:
        filters: The conditions.
        files: Number of files.
        row_groups: Number of row groups.
        size: Bytes of all files.
        rows: Rows of all files, including those that a log has deleted.
        in_files: Rows in files that are not excluded.
        bytes_in_files: Bytes of these files.
        in_row_groups: Rows in row groups that are not excluded.
        bytes_in_row_groups: Bytes of these row groups.
        touched: Number of files that are not excluded.
    """

    filters: Sequence[str]
    files: int
    row_groups: int
    size: int
    rows: int
    in_files: Numbers
    bytes_in_files: Numbers
    in_row_groups: Numbers
    bytes_in_row_groups: Numbers
    touched: Numbers


@dataclass(frozen=True)
class Filters:
    """Conditions on a table, analysed by Spark.

    Attributes:
        texts: The conditions.
        predicates: The conditions as predicates.
        schema: Schema of the table.
    """

    texts: Sequence[str]
    predicates: Sequence[Predicate]
    schema: pa.Schema


def filters(rows: DataFrame, conditions: Sequence[str]) -> Filters:
    """Analyse conditions on the columns of *rows* with Spark."""
    empty = rows.sparkSession.createDataFrame([], rows.schema)
    schema = arrow_schema(rows.schema.jsonValue())
    read = [condition(text, empty, schema, later=False).predicate for text in conditions]
    return Filters(texts=conditions, predicates=read, schema=schema)


def shares(paths: Sequence[str], asked: Filters) -> Shares:
    """Prune files of any writer by conditions.

    Footers are more precise than logs: readers of logs that truncate long strings read more files.
    """
    found = [(path, Path(path).stat().st_size, pq.ParquetFile(path)) for path in paths]
    version = snapshot(asked.schema)
    whole = {path: _without_nans(footers.parse(size, file.metadata)) for path, size, file in found}
    parts = {
        f"{path}#{number}": _without_nans(footer)
        for path, size, file in found
        for number, footer in enumerate(footers.row_groups(size, file.metadata))
    }
    files, groups = (footers.file_table(version, each) for each in (whole, parts))
    hit = _hit(files, asked)
    rows, sizes = (files[name].to_numpy().astype(np.float64) for name in ("rows", "size"))
    group_rows = groups["rows"].to_numpy().astype(np.float64)
    group_sizes = np.array([size for _, _, file in found for size in _sizes(file.metadata)])
    hit_groups = _hit(groups, asked)
    return Shares(
        filters=asked.texts,
        files=len(found),
        row_groups=len(parts),
        size=int(sizes.sum()),
        rows=int(rows.sum()),
        in_files=hit @ rows / rows.sum(),
        bytes_in_files=hit @ sizes / sizes.sum(),
        in_row_groups=hit_groups @ group_rows / group_rows.sum(),
        bytes_in_row_groups=hit_groups @ group_sizes / group_sizes.sum(),
        touched=hit.sum(axis=1),
    )


def _hit(files: pa.Table, asked: Filters) -> Numbers:
    return np.array([matching(predicate, files) for predicate in asked.predicates], np.float64)


def _sizes(metadata: pq.FileMetaData) -> list[int]:
    """Return the compressed bytes of each row group."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [
        sum(group.column(number).total_compressed_size for number in range(group.num_columns))
        for group in groups
    ]


def _without_nans(footer: Footer) -> Footer:
    """Add NaN counts of 0, since the tables have no NaN and some writers omit the counts."""
    columns = {path: replace(column, nans=0) for path, column in footer.columns.items()}
    return replace(footer, columns=columns)
