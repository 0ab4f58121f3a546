"""Reads and writes of rows through Spark's Parquet reader and writer."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.base import locations as places
from zadapter.base.names import quote
from zadapter.errors import SessionError
from zadapter.spark.compat.spark_api import MOVING, find_rebasing, metadata_column
from zadapter.spark.jvm.gateway import java_session
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.spark_classes import read_parquet
from zadapter.table.encoding import Encoding
from zadapter.table.spec import atoms
from zadapter_parquet.store.hive_names import NULL

_TIMESTAMP_TYPE = "spark.sql.parquet.outputTimestampType"
_STRICT = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
}


def uris(spark: SparkSession, locations: Iterable[str]) -> list[str]:
    """Return unescaped locations as the URIs that Spark uses for files."""
    return places.uris(locations, places.hadoop_qualifier(java_classes(spark), java_session(spark)))


def read(
    spark: SparkSession,
    columns: T.StructType,
    locations: Sequence[str],
    partition: Mapping[str, pa.Array],
) -> DataFrame:
    """Return the rows of files.

    Args:
        spark: A session.
        columns: All columns of the table; columns that a file lacks are null.
        locations: Locations of the files, unescaped.
        partition: Value in each file of each partition column, which the files do not contain.

    Raises:
        SessionError: The session rebases dates or timestamps.
    """
    if not locations:
        _refuse_moving(spark, columns)
        nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in columns]
        return spark.range(0).select(*nulls)
    stored_columns = T.StructType([field for field in columns if field.name not in partition])
    rows = read_stored(spark, stored_columns, locations)
    if not partition:
        return rows
    joined = _with_values(spark, rows, uris(spark, locations), partition)
    selected = [
        joined.values.get(field.name, F.col(quote((field.name,))))
        .cast(field.dataType)
        .alias(field.name)
        for field in columns
    ]
    return joined.rows.select(*selected)


def read_stored(spark: SparkSession, columns: T.StructType, locations: Sequence[str]) -> DataFrame:
    """Return the stored *columns* of files, without partition columns.

    Raises:
        SessionError: The session rebases dates or timestamps.
    """
    _refuse_moving(spark, columns)
    paths = list(map(_escape_glob, locations))
    return read_parquet(spark, columns.json(), _STRICT, paths)


def _refuse_moving(spark: SparkSession, columns: T.StructType) -> None:
    """Refuse a session that rebases dates or timestamps of *columns*.

    Raises:
        SessionError: A setting makes Spark read values other than the stored ones.
    """
    setting = find_rebasing(spark.conf.get, set(atoms(columns.jsonValue())))
    if setting is not None:
        raise SessionError(
            f"{setting} is {MOVING[setting][0]} in this session, so Spark reads other dates and "
            "timestamps than the files and their bounds contain; unset it, or, if the files are "
            "wrong, rewrite them with Spark first"
        )


def file_of_row(rows: DataFrame) -> Column:
    """Return the file of each stored row, in the form of ``locations.bare``."""
    # not by name: a table column may be called _metadata
    return F.regexp_replace(metadata_column(rows, "_metadata")["file_path"], places.STORE, "")


@dataclass(frozen=True, slots=True)
class _Joined:
    """Rows with additional columns under unique names.

    Attributes:
        rows: The rows.
        values: Value of each partition column, as a string.
    """

    rows: DataFrame
    values: Mapping[str, Column]


def _with_values(
    spark: SparkSession, rows: DataFrame, files: Sequence[str], partition: Mapping[str, pa.Array]
) -> _Joined:
    token = uuid4().hex
    path, marker = f"path-{token}", f"known-{token}"
    names = {name: f"value-{number}-{token}" for number, name in enumerate(partition)}
    texts = {path: [places.bare(uri) for uri in files]}
    texts |= {names[name]: a.cast(pa.string()).to_pylist() for name, a in partition.items()}
    fields = ", ".join(f"{quote((name,))}: string" for name in texts)
    value_rows = [dict(zip(texts, row, strict=True)) for row in zip(*texts.values(), strict=True)]
    array = F.from_json(F.lit(json.dumps(value_rows)), f"array<struct<{fields}>>")
    by_file = spark.range(1).select(F.inline(array)).withColumn(marker, F.lit(True))  # noqa: FBT003
    joined = rows.withColumn(path, file_of_row(rows)).join(F.broadcast(by_file), path, "left")
    error = F.raise_error(F.concat(F.lit("partition values are unknown for "), F.col(path)))
    values = {
        name: F.when(F.col(marker), F.col(value)).otherwise(error) for name, value in names.items()
    }
    return _Joined(joined, values)


def _escape_glob(location: str) -> str:
    """Escape a location, which Spark reads as a glob pattern.

    The option ``__globPaths__`` is no alternative: with it, Spark 4.1 reads each of *n* files *n*
    times.
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", location)


def schema_of(spark: SparkSession, location: str) -> str:
    """Return the columns of one file as Spark's schema JSON."""
    return spark.read.options(**_STRICT).parquet(_escape_glob(location)).schema.json()


def write(
    rows: DataFrame,
    location: str,
    partition: Mapping[str, str],
    encoding: Encoding,
    *,
    int96: bool,
) -> None:
    """Write each partition of *rows* as one file per partition value.

    Args:
        rows: The rows.
        location: Location of a new folder, unescaped.
        partition: Partition columns by the names that their folders use.
        encoding: Parquet encoding of the rows.
        int96: Whether timestamps are stored as INT96, as in the table's other files. DuckDB reads
            INT96 without a time zone, and shifts timestamps if files differ.
    """
    options = {
        "maxRecordsPerFile": "0",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        **encoding.settings({}),
    }
    output = _with_folders(rows, partition) if partition else rows
    writer = output.write.mode("error").options(**options).partitionBy(*partition)
    spark = rows.sparkSession
    previous = str(spark.conf.get(_TIMESTAMP_TYPE))
    spark.conf.set(_TIMESTAMP_TYPE, "INT96" if int96 else "TIMESTAMP_MICROS")
    try:
        writer.parquet(location)
    finally:
        spark.conf.set(_TIMESTAMP_TYPE, previous)


def _with_folders(rows: DataFrame, partition: Mapping[str, str]) -> DataFrame:
    """Return *rows* with their partition columns last, by the names of their folders."""
    others = [F.col(quote((name,))) for name in rows.columns if name not in partition.values()]
    folders = [_partition_column(rows, name).alias(folder) for folder, name in partition.items()]
    return rows.select(*others, *folders)


def _partition_column(rows: DataFrame, name: str) -> Column:
    """Return a partition column that raises an error for values that a folder cannot represent.

    Spark writes an empty string as null. A backslash or ``..`` would lead out of the table.
    """
    column = F.col(quote((name,)))
    if not isinstance(rows.schema[name].dataType, T.StringType):
        return column
    unsupported = column.isin("", NULL) | column.rlike(r"\\|(^|/)\.\.(/|$)")
    message = F.lit(f"a folder name cannot represent this value of partition column {name!r}: ")
    message = F.concat(message, column)
    return F.when(unsupported, F.raise_error(message)).otherwise(column)
