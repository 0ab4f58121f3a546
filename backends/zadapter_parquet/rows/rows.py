"""Rows of a table, read and written by Spark's own Parquet reader and writer."""

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
from zadapter.table.encoding import Encoding
from zadapter.table.rebase_settings import MOVING, moving
from zadapter.table.spec import atoms
from zadapter_parquet.store.hive_names import NULL

_MOMENTS = "spark.sql.parquet.outputTimestampType"
_STRICT = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
}


def uris(spark: SparkSession, locations: Iterable[str]) -> list[str]:
    """Return locations, which are written as they are, as the URIs that Spark names files by."""
    return places.uris(locations, places.by_hadoop(spark._jvm, spark._jsparkSession))  # noqa: SLF001


def read(
    spark: SparkSession,
    columns: T.StructType,
    locations: Sequence[str],
    partition: Mapping[str, pa.Array],
) -> DataFrame:
    """Return the rows of some files.

    Args:
        spark: A session.
        columns: All columns of the table; those that a file lacks are null.
        locations: Where the files lie, unescaped.
        partition: For each partition column, which no file has, its value in each file.
    """
    _refuse_moving(spark, columns)
    if not locations:
        nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in columns]
        return spark.range(0).select(*nothing)
    within = T.StructType([field for field in columns if field.name not in partition])
    rows = stored(spark, within, locations)
    if not partition:
        return rows
    joined = _with_values(spark, rows, uris(spark, locations), partition)
    picked = [
        joined.values.get(field.name, F.col(quote((field.name,))))
        .cast(field.dataType)
        .alias(field.name)
        for field in columns
    ]
    return joined.rows.select(*picked)


def stored(spark: SparkSession, columns: T.StructType, locations: Sequence[str]) -> DataFrame:
    """Return *columns* of the rows of files, as they are stored, without partition columns.

    Raises:
        SessionError: Spark would read other days and moments than are stored.
    """
    _refuse_moving(spark, columns)
    return spark.read.schema(columns).options(**_STRICT).parquet(*map(_no_pattern, locations))


def _refuse_moving(spark: SparkSession, columns: T.StructType) -> None:
    """Refuse a session that reads days and moments other than as they are stored."""
    setting = moving(spark.conf.get, set(atoms(columns.jsonValue())))
    if setting is not None:
        raise SessionError(
            f"{setting} is {MOVING[setting][0]} in this session, so Spark takes days and moments "
            "for others than the files and their bounds say; set it back, or, if it is the files "
            "that are wrong, have Spark write them anew first"
        )


def file_of_row(rows: DataFrame) -> Column:
    """Tell of which file a stored row is, as ``locations.bare`` does."""
    # not by name: a column of the table may have that name, too
    return F.regexp_replace(rows.metadataColumn("_metadata")["file_path"], places.STORE, "")


@dataclass(frozen=True, slots=True)
class _Joined:
    """Rows with a few columns more, under names that no table has.

    Attributes:
        rows: The rows.
        values: For each partition column its value, as text.
    """

    rows: DataFrame
    values: Mapping[str, Column]


def _with_values(
    spark: SparkSession, rows: DataFrame, files: Sequence[str], partition: Mapping[str, pa.Array]
) -> _Joined:
    """Join the partition values of its file to each row."""
    token = uuid4().hex
    path, known = f"path-{token}", f"known-{token}"
    names = {name: f"value-{number}-{token}" for number, name in enumerate(partition)}
    texts = {path: [places.bare(each) for each in files]}
    texts |= {names[name]: a.cast(pa.string()).to_pylist() for name, a in partition.items()}
    fields = ", ".join(f"{quote((name,))}: string" for name in texts)
    listed = [dict(zip(texts, row, strict=True)) for row in zip(*texts.values(), strict=True)]
    told = F.from_json(F.lit(json.dumps(listed)), f"array<struct<{fields}>>")
    of_file = spark.range(1).select(F.inline(told)).withColumn(known, F.lit(True))  # noqa: FBT003
    joined = rows.withColumn(path, file_of_row(rows)).join(F.broadcast(of_file), path, "left")
    lost = F.raise_error(F.concat(F.lit("no partition values are known of "), F.col(path)))
    values = {
        name: F.when(F.col(known), F.col(value)).otherwise(lost) for name, value in names.items()
    }
    return _Joined(joined, values)


def _no_pattern(location: str) -> str:
    """Return a location that Spark, which takes it for a pattern, finds this one file by.

    The option ``__globPaths__`` is no way out: Spark 4.1 then reads each such file as many times
    as there are files.
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", location)


def schema_of(spark: SparkSession, location: str) -> str:
    """Return the columns of one file, as Spark's JSON."""
    return spark.read.options(**_STRICT).parquet(_no_pattern(location)).schema.json()


def write(
    rows: DataFrame,
    location: str,
    partition: Mapping[str, str],
    encoding: Encoding,
    *,
    int96: bool,
) -> None:
    """Write each partition of *rows* as one file for each of its partition values.

    Args:
        rows: The rows.
        location: A folder that is not there yet, unescaped.
        partition: Columns that become folders, by what the folders name them.
        encoding: How the rows are put into Parquet.
        int96: Whether moments are, as those of other files are: DuckDB takes INT96 for a time
            without a zone, and shifts one or the other where files differ.
    """
    options = {
        "maxRecordsPerFile": "0",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        **encoding.settings({}),
    }
    others = [F.col(quote((name,))) for name in rows.columns if name not in partition.values()]
    folders = [_no_lost_text(rows, name).alias(folder) for folder, name in partition.items()]
    placed = rows.select(*others, *folders) if partition else rows
    writer = placed.write.mode("error").options(**options).partitionBy(*partition)
    spark = rows.sparkSession
    before = str(spark.conf.get(_MOMENTS))
    spark.conf.set(_MOMENTS, "INT96" if int96 else "TIMESTAMP_MICROS")
    try:
        writer.parquet(location)
    finally:
        spark.conf.set(_MOMENTS, before)


def _no_lost_text(rows: DataFrame, name: str) -> Column:
    """Return a partition column that is an error where its folder's name would say another value.

    Spark writes empty texts as null; a backslash or a step upwards is no name within a table.
    """
    column = F.col(quote((name,)))
    if not isinstance(rows.schema[name].dataType, T.StringType):
        return column
    lost = column.isin("", NULL) | column.rlike(r"\\|(^|/)\.\.(/|$)")
    what = F.lit(f"no folder can hold this value of the partition column {name!r}: ")
    what = F.concat(what, column)
    return F.when(lost, F.raise_error(what)).otherwise(column)
