"""Tables of all formats, written by Spark and read by others."""

import json
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from urllib.parse import unquote, urlparse

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

import zadapter
from integration.kit.lakes import settings

FORMATS = ("delta", "iceberg", "parquet")
NULL = "__HIVE_DEFAULT_PARTITION__"
MICROS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
"""Spark's default are 96 bits, which no other format takes."""
PARTITION_TYPES = {
    "string": pa.string(), "date": pa.date32(), "integer": pa.int32(), "long": pa.int64(),
}  # fmt: skip
_numbers = count()


class Lakes:
    """Tables of all formats in one folder and in the catalog ``ice``."""

    def __init__(self, spark, catalog, folder):
        self.spark, self.catalog, self.folder = spark, catalog, Path(folder)
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")

    def sql(self, text):
        return self.spark.sql(text)

    def name(self, format_):
        """A name that no table has yet."""
        number = next(_numbers)
        return f"ice.db.m{number}" if format_ == "iceberg" else str(self.folder / f"m{number}")

    def make(self, format_, rows, *partition_by, files=2, **properties):
        """Write *rows* as a table and return its name; times as numbers of 64 bits.

        Where *files* is 0, there is one for each of the rows' own partitions.
        """
        name = self.name(format_)
        rows = rows.repartition(files) if files else rows
        with settings(self.spark, MICROS):
            if format_ == "iceberg":
                self._iceberg(name, rows, partition_by, properties)
            else:
                writer = rows.write.format(format_).partitionBy(*partition_by)
                writer.options(**{f"delta.{k}": v for k, v in properties.items()}).save(name)
        return name

    def _iceberg(self, name, rows, partition_by, properties):
        columns = ", ".join(f"{quoted(f.name)} {f.dataType.simpleString()}" for f in rows.schema)
        cut = f"PARTITIONED BY ({', '.join(map(quoted, partition_by))})" if partition_by else ""
        said = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        with_ = f"TBLPROPERTIES ({said})" if said else ""
        self.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {cut} {with_}")
        rows.writeTo(name).append()

    def append(self, format_, table, rows):
        """Write more rows, as the format's users do."""
        if format_ == "iceberg":
            rows.writeTo(table).append()
        elif format_ == "delta":
            with settings(self.spark, MICROS):
                rows.write.format("delta").mode("append").save(table)
        else:
            zadapter.append(table, rows, backend="parquet", spark=self.spark)

    def overwrite(self, format_, table, rows):
        """Replace all rows, as the format's users do."""
        if format_ == "iceberg":
            rows.writeTo(table).overwrite(F.expr("true"))
        elif format_ == "delta":
            with settings(self.spark, MICROS):
                rows.write.format("delta").mode("overwrite").save(table)
        else:
            zadapter.overwrite(table, rows, backend="parquet", spark=self.spark)

    def migrate(self, format_, table, to, target=None, **arguments):
        """Migrate to a new name; the report says which."""
        target = target or self.name(to)
        said = {"to": to, "target": target, "backend": format_, "spark": self.spark}
        return zadapter.migrate(table, **said | arguments)

    def load(self, format_, table):
        """All rows by Spark; of a catalog's table as others have left it."""
        if format_ == "parquet":
            return zadapter.read(table, backend="parquet", spark=self.spark)
        if format_ == "delta":
            return self.spark.read.format("delta").load(table)
        self.sql(f"REFRESH TABLE {table}")
        return self.spark.table(table)

    def read(self, format_, table):
        """All rows by a reader that is neither Spark nor zadapter, as sorted text."""
        return texts(getattr(self, f"_{format_}_rows")(table))

    def _delta_rows(self, table):
        known = deltalake.DeltaTable(table)
        paths = known.get_add_actions()["path"].to_pylist()
        # deltalake does not know that files may lie anywhere
        return by_log(table) if any(map(is_uri, paths)) else known.to_pyarrow_table()

    def _iceberg_rows(self, table):
        return self.iceberg(table).scan().to_arrow()

    def _parquet_rows(self, table):
        types = zadapter.read(table, backend="parquet", spark=self.spark).limit(0).toArrow().schema
        found = [_file(path, table, types) for path in self.paths(table)]
        return pa.concat_tables(found) if found else types.empty_table()

    def paths(self, table):
        """The live files of a folder of Parquet files."""
        known = zadapter.files(table, backend="parquet", spark=self.spark)
        return known["path"].to_pylist()

    def iceberg(self, table):
        """The table, as pyiceberg sees it."""
        return self.catalog.load_table(table.removeprefix("ice."))

    def exists(self, format_, table):
        """Whether there is a table, by what lies there."""
        if format_ == "iceberg":
            return self.catalog.table_exists(table.removeprefix("ice."))
        log = {"delta": "_delta_log", "parquet": "_zadapter/log"}[format_]
        entries = sorted(Path(table, log).glob("*.json"))
        return bool(entries) and '"operation":"drop"' not in entries[-1].read_text()


def quoted(name):
    return f"`{name.replace('`', '``')}`"


def is_uri(path):
    return bool(urlparse(path).scheme)


def log(table):
    """The actions of each version of a Delta table."""
    entries = sorted(Path(table, "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in each.read_text().splitlines()] for each in entries]


def by_log(table):
    """All rows of a Delta table whose files may lie anywhere and name columns otherwise.

    By PROTOCOL.md and pyarrow alone, for tables that deltalake does not read.
    """
    live, schema = {}, []
    for action in (action for version in log(table) for action in version):
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])["fields"]
        if "add" in action:
            live[action["add"]["path"]] = action["add"]["partitionValues"]
        if "remove" in action:
            del live[action["remove"]["path"]]
    key = "delta.columnMapping.physicalName"
    names = {each["metadata"].get(key, each["name"]): each for each in schema}
    return [row for path, values in live.items() for row in _by_log(table, path, values, names)]


def _by_log(table, path, values, names):
    place = unquote(urlparse(path).path if is_uri(path) else f"{table}/{path}")
    cut = {
        file: pa.scalar(value).cast(PARTITION_TYPES[names[file]["type"]]).as_py()
        for file, value in values.items()
    }
    for row in pq.ParquetFile(place).read().to_pylist():
        yield {each["name"]: cut.get(file, row.get(file)) for file, each in names.items()}


def _file(path, table, types):
    """The rows of a file, values of its partition by the names of its folders."""
    rows = pq.ParquetFile(path).read()
    for part in Path(path).relative_to(table).parts[:-1]:
        key, cut, value = map(unquote, part.partition("="))
        if cut and key not in rows.column_names:
            said = None if value == NULL else value
            column = pa.array([said] * rows.num_rows, pa.string())
            rows = rows.append_column(key, column.cast(types.field(key).type))
    return rows.select(types.names).cast(types)


def texts(rows):
    """Rows as sorted text, in which equal values are written alike whoever has read them."""
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return sorted(repr(sorted((key, _text(value)) for key, value in row.items())) for row in listed)


def _text(value):
    if isinstance(value, dict):
        return {key: _text(each) for key, each in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_text(each) for each in value]
    if isinstance(value, datetime):
        return (value.astimezone(timezone.utc) if value.tzinfo else value).isoformat()
    return repr(value)
