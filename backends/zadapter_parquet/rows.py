"""Rows of a table, read and written by Spark's own Parquet reader and writer."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter import locations as places
from zadapter.definition import atoms
from zadapter.encoding import Encoding
from zadapter.errors import SessionError
from zadapter.names import quote
from zadapter_parquet.folders import NULL

_PATH, _KNOWN, _VALUE = "zadapter path", "zadapter known", "zadapter value {}"
_MOVED = (
    ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY", {"date", "timestamp"}),
    ("spark.sql.parquet.int96RebaseModeInRead", "LEGACY", {"timestamp"}),
    ("spark.sql.parquet.int96TimestampConversion", "TRUE", {"timestamp"}),
)
"""Settings by which Spark takes values of these types for others than are stored."""
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
    if not locations:
        nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in columns]
        return spark.range(0).select(*nothing)
    within = T.StructType([field for field in columns if field.name not in partition])
    rows = stored(spark, within, locations)
    if not partition:
        return rows
    of_file = _values(spark, uris(spark, locations), partition)
    known = rows.withColumn(_PATH, file_of_row()).join(F.broadcast(of_file), _PATH, "left")
    lost = F.raise_error(F.concat(F.lit("no partition values are known of "), F.col(_PATH)))
    values = {
        name: F.when(F.col(_KNOWN), F.col(_VALUE.format(number))).otherwise(lost)
        for number, name in enumerate(partition)
    }
    return known.select(
        *(
            values.get(field.name, F.col(quote((field.name,))))
            .cast(field.dataType)
            .alias(field.name)
            for field in columns
        )
    )


def stored(spark: SparkSession, columns: T.StructType, locations: Sequence[str]) -> DataFrame:
    """Return *columns* of the rows of files, as they are stored, without partition columns.

    Raises:
        SessionError: Spark would read other days and moments than are stored.
    """
    types = set(atoms(columns.jsonValue()))
    for setting, moving, moved in _MOVED:
        if types & moved and str(spark.conf.get(setting)).strip().upper() == moving:
            raise SessionError(
                f"{setting} is {moving} in this session, so Spark takes days and moments for "
                "others than the files and their bounds say; set it back, or, if it is the files "
                "that are wrong, have Spark write them anew first"
            )
    return spark.read.schema(columns).options(**_STRICT).parquet(*map(_no_pattern, locations))


def file_of_row() -> Column:
    """Tell of which file a stored row is, as ``locations.bare`` does."""
    return F.regexp_replace(F.col("_metadata.file_path"), places.STORE, "")


def _values(
    spark: SparkSession, files: Sequence[str], partition: Mapping[str, pa.Array]
) -> DataFrame:
    """Return the partition values of each file, as text."""
    paths = [places.bare(each) for each in files]
    arrays = {_VALUE.format(number): values for number, values in enumerate(partition.values())}
    texts = {_PATH: paths} | {name: a.cast(pa.string()).to_pylist() for name, a in arrays.items()}
    fields = ", ".join(f"{quote((name,))}: string" for name in texts)
    listed = [dict(zip(texts, row, strict=True)) for row in zip(*texts.values(), strict=True)]
    told = F.from_json(F.lit(json.dumps(listed)), f"array<struct<{fields}>>")
    return spark.range(1).select(F.inline(told)).withColumn(_KNOWN, F.lit(True))  # noqa: FBT003


def _no_pattern(location: str) -> str:
    """Return a location that Spark, which takes it for a pattern, finds this one file by.

    The option ``__globPaths__`` is no way out: Spark 4.1 then reads each such file as many times
    as there are files.
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", location)


def schema_of(spark: SparkSession, location: str) -> str:
    """Return the columns of one file, as Spark's JSON."""
    return spark.read.options(**_STRICT).parquet(_no_pattern(location)).schema.json()


def write(rows: DataFrame, location: str, partition: Mapping[str, str], encoding: Encoding) -> None:
    """Write each partition of *rows* as one file for each of its partition values.

    Args:
        rows: The rows.
        location: A folder that is not there yet, unescaped.
        partition: Columns that become folders, by what the folders name them.
        encoding: How the rows are put into Parquet.
    """
    options = {
        "maxRecordsPerFile": "0",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        **encoding.settings({}),
    }
    others = [F.col(quote((name,))) for name in rows.columns if name not in partition.values()]
    folders = [_no_lost_text(rows, name).alias(folder) for folder, name in partition.items()]
    placed = rows.select(*others, *folders) if partition else rows
    placed.write.mode("error").options(**options).partitionBy(*partition).parquet(location)


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
