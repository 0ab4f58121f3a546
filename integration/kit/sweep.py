"""Effects of every Spark setting on a folder of Parquet files.

``python -m integration.kit.sweep`` tries each value of each setting of Spark 4.1, many at a time.
If a result differs, it bisects the settings until one is left. pyarrow compares rows, types and
the keys of the footers' metadata.
"""

import re
import shutil
import sys
import tempfile
from contextlib import suppress
from datetime import datetime, timezone
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import zadapter
from integration.parquet.lake import paths
from tests.kit import extremes
from zadapter.spark.compat.spark_api import MOVING

_ONE_OF = re.compile(r"It should be one of '([^']*)'")
_TYPE = re.compile(r"It should be a/an '([^']*)' value")
_LEFT_OUT = re.compile(
    r"spark\.sql\.(catalog|defaultCatalog|artifact|hive|streaming|pipelines|thriftServer"
    r"|parquet\.compression\.codec|planChange|.*[lL]og\.?[lL]evel|debug|ui\.)"
)
"""Settings that are left out: locations of tables, logging, and codecs of files."""
_BEARABLE = {"spark.sql.files.maxPartitionBytes": ["10000", "1000000"]}
"""Values that Spark supports: tasks of one byte cause a stack overflow."""

HADOOP = {
    "parquet.block.size": "2048",
    "parquet.column.statistics.enabled": "false",
    "parquet.columnindex.truncate.length": "1",
    "parquet.compression": "gzip",
    "parquet.enable.dictionary": "false",
    "parquet.filter.columnindex.enabled": "false",
    "parquet.filter.record-level.enabled": "true",
    "parquet.page.row.count.limit": "3",
    "parquet.page.size": "128",
    "parquet.statistics.truncate.length": "2",
    "parquet.strings.signed-min-max.enabled": "true",
    "parquet.task.side.metadata": "false",
    "parquet.writer.version": "PARQUET_2_0",
    "spark.sql.parquet.binaryAsString": "true",
}
"""Settings of Hadoop and parquet-java, which a session may have as well."""
_OF_FILES = re.compile(r"spark\.sql\.(legacy\.)?(parquet|files|sources|variant)\.")


def of_files(settings):
    """Return those of *settings* that affect reads of files."""
    return {key: value for key, value in settings.items() if _OF_FILES.match(key)}


def entries(spark):
    """Return the names and defaults of Spark's modifiable settings."""
    jvm = spark._jvm  # noqa: SLF001
    registry = getattr(getattr(jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
    found = {e.key(): e.defaultValueString() for e in registry.getConfigEntries().toArray()}
    return {
        key: default
        for key, default in sorted(found.items())
        if key.startswith("spark.sql.") and spark.conf.isModifiable(key)
    }


def values(spark, key, default):
    """Return other values of a setting."""
    if key in _BEARABLE:
        return _BEARABLE[key]
    if default in {"true", "false"}:
        return [str(default == "false").lower()]
    try:
        spark.conf.set(key, "no such value")
    except Exception as error:  # noqa: BLE001 - its text says what would be right
        text = str(error).split("JVM stacktrace")[0]
    else:  # any string is valid
        spark.conf.unset(key)
        return []
    if listed := _ONE_OF.search(text):
        return [each for each in sorted(listed[1].split(", ")) if each != default]
    type_ = _TYPE.search(text)
    return {"boolean": ["true", "false"]}.get(type_[1], ["1", "1000000"]) if type_ else []


def rounds(spark):
    """Return settings that differ from the defaults: all values, in as few rounds as possible."""
    found = {
        key: values(spark, key, default)
        for key, default in entries(spark).items()
        if key not in MOVING and not _LEFT_OUT.match(key)
    }
    columns = [[(key, value) for value in each] for key, each in found.items()]
    return [dict(filter(None, row)) for row in zip_longest(*columns)]


def rows():
    """Return rows of every type that Parquet and Spark share."""
    table = extremes.table()
    count = range(table.num_rows)
    moments = table["ntz"].to_pylist()
    struct = pa.struct([("f", pa.int32()), ("t", pa.timestamp("us"))])
    more = {
        "millis": pa.array(count, pa.timestamp("ms", "UTC")),
        "bare_millis": pa.array(count, pa.timestamp("ms")),
        "u8": pa.array([i % 256 for i in count], pa.uint8()),
        "u32": pa.array([2**32 - 1 - i for i in count], pa.uint32()),
        "u64": pa.array([2**64 - 1 - i for i in count], pa.uint64()),
        "fixed": pa.array([bytes([i % 256] * 4) for i in count], pa.binary(4)),
        "nothing": pa.array([{"f": None, "t": None} if i % 2 else None for i in count], struct),
        "struct": pa.array([{"f": i, "t": moments[i]} for i in count], struct),
        "list": pa.array([[i, None] if i % 3 else [] for i in count], pa.list_(pa.int64())),
        "map": pa.array([[("k", t)] for t in moments], pa.map_(pa.string(), pa.timestamp("us"))),
    }
    for name, column in more.items():
        table = table.append_column(name, column)
    return table


class Folders:
    """Copies of one folder, each processed in its own session."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.made = spark, Path(folder), 0
        self.origin = self.folder / "origin"
        table = rows()
        half = table.num_rows // 2
        for name, part in (("one", table.slice(0, half)), ("two", table.slice(half))):
            (self.origin / f"p={name}").mkdir(parents=True)
            pq.write_table(part, self.origin / f"p={name}" / "file.parquet")
        self.more = spark.read.parquet(str(self.origin)).where("row < 9").localCheckpoint()

    def outcome(self, settings):
        """Return the content of a folder after zadapter's writes."""
        asked = {"backend": "parquet", "spark": self.session(settings)}
        table = self.copied()
        zadapter.optimize(table, by=["row", "text"], target_file_size="20KB", **asked)
        zadapter.append(table, self.more, **asked)
        zadapter.delete(table, "row = 11", **asked)
        return held(table)

    def as_read(self, settings):
        """Return rows and types of a folder and of a table, as read by zadapter."""
        asked = {"backend": "parquet", "spark": self.session(settings)}
        table = self.copied()
        zadapter.append(table, self.more, **asked)
        found = [zadapter.read(each, **asked) for each in (self.origin, table)]
        return [
            (each.schema.json(), sorted(map(repr, each.toArrow().to_pylist()))) for each in found
        ]

    def session(self, settings):
        """Return a session with the valid ones of *settings*."""
        session = self.spark.newSession()
        session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        for key, value in settings.items():
            with suppress(Exception):  # some values are valid only together with others
                session.conf.set(key, value)
        return session

    def copied(self):
        """Return a new copy of the folder."""
        self.made += 1
        return str(shutil.copytree(self.origin, self.folder / f"copy{self.made}"))


def held(table):
    """Return rows, types and metadata keys of a folder, read by pyarrow."""
    found, types, keys = [], set(), set()
    for path in paths(table):
        file = pq.ParquetFile(path)
        types.add(str(file.schema).partition("\n")[2])
        keys.add(str(sorted(file.metadata.metadata)))
        at = path.partition("p=")[2].partition("/")[0]
        found += [repr([at, *map(_plain, row.values())]) for row in file.read().to_pylist()]
    return {"rows": sorted(found), "types": sorted(types), "keys": sorted(keys)}


def _plain(value):
    return value.astimezone(timezone.utc) if isinstance(value, datetime) and value.tzinfo else value


def guilty(outcome, settings, expected):
    """Return the settings that change the outcome.

    Args:
        outcome: Returns the result for given settings.
        settings: All settings to try.
        expected: Result for the default settings.
    """
    try:
        if outcome(settings) == expected:
            return {}
    except Exception as error:  # noqa: BLE001 - all are reported
        print(f"  {str(error)[:200]}", flush=True)
    if len(settings) == 1:
        return settings
    items = list(settings.items())
    halves = dict(items[: len(items) // 2]), dict(items[len(items) // 2 :])
    found = [guilty(outcome, half, expected) for half in halves]
    return found[0] | found[1] or settings


def main():
    """Try every setting."""
    import zadapter.spark

    spark = zadapter.spark.session({"spark.master": "local[2]"}, formats=["parquet"])
    with tempfile.TemporaryDirectory() as folder:
        folders = Folders(spark, folder)
        for settings in (*rounds(spark), HADOOP):
            print(f"{len(settings)} settings", flush=True)
            for outcome, some in (
                (folders.outcome, settings),
                (folders.as_read, of_files(settings)),
            ):
                found = guilty(outcome, some, outcome({}))
                print("".join(f"  {key}={value}\n" for key, value in found.items()), flush=True)
    spark.stop()


if __name__ == "__main__":
    sys.exit(main())
