"""Damaged files, full disks and settings that cannot work: one message, and nothing is changed.

Each story is about tables of the format that ``--format`` names.
"""

import resource
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

import zadapter
from integration.kit.kills import data_files
from integration.kit.lakes import settings
from tests.kit.variants import slow
from zadapter.errors import (
    DataFileError,
    ForeignChangeError,
    SessionError,
    StoreError,
    ZadapterError,
)

_numbers = count()


class Table:
    """A table of any format, and the files it lies in."""

    def __init__(self, spark, table_format, folder, warehouse):
        self.spark, self.format = spark, table_format
        self.name, self.folder = str(folder / "events"), folder / "events"
        rows = spark.range(40_000).selectExpr(
            "id * 7919 % 40009 AS a", "id AS c", "sha2(string(id), 256) AS s"
        )
        rows = rows.repartition(3)
        if table_format == "iceberg":
            last = f"t{next(_numbers)}"
            self.name, self.folder = f"ice.damages.{last}", warehouse / "damages" / last
            spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.damages")
            rows.writeTo(self.name).using("iceberg").create()
        else:
            rows.write.format(table_format).save(self.name)
        self.before = data_files(self.folder)

    def files(self):
        found = zadapter.files(self.name, backend=self.format, spark=self.spark)
        return [Path(path.removeprefix("file:")) for path in found["path"].to_pylist()]

    def optimize(self):
        return zadapter.optimize(
            self.name, by=["a"], target_file_size="256KB", backend=self.format, spark=self.spark
        )

    def migrate(self, target):
        to = "parquet" if self.format == "delta" else "delta"
        return zadapter.migrate(
            self.name, to=to, target=target, backend=self.format, spark=self.spark
        )

    def changed(self, file):
        """Have the store take a file as it is now: Hadoop's checksum would tell."""
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        self.before = data_files(self.folder)


@pytest.fixture
def table(spark, table_format, tmp_path, warehouse):
    return Table(spark, table_format, tmp_path, warehouse)


def check_refused(table, act, error, *says):
    """The error says it all, and no file has come or gone."""
    with pytest.raises(ZadapterError) as refused:
        act()

    assert isinstance(refused.value, error), refused.value
    assert [text for text in says if text not in str(refused.value)] == [], refused.value
    assert "\n" not in str(refused.value)
    assert data_files(table.folder) == table.before


def test_flipped_bits_in_a_data_file(table, tmp_path):
    """The file is named, by every verb that reads it; Iceberg's readers name it in a log alone."""
    file = table.files()[0]
    data = bytearray(file.read_bytes())
    data[100:20_000] = bytes(each ^ 0x55 for each in data[100:20_000])
    file.write_bytes(data)
    table.changed(file)

    named = "(see the log of Spark)" if table.format == "iceberg" else file.name
    check_refused(table, table.optimize, DataFileError, named, "damaged", "restore")
    check_refused(table, lambda: table.migrate(tmp_path / "new"), DataFileError, named)


def stale(file):
    """Leave a checksum file as it is after another program has rewritten the file beside it."""
    checksums = file.with_name(f".{file.name}.crc")
    data = checksums.read_bytes()
    checksums.write_bytes(data[:8] + bytes(each ^ 0x55 for each in data[8:]))
    return checksums


def test_a_stale_checksum_file(table, tmp_path):
    """The message names it and says what to do, and then everything works."""
    checksums = [stale(file) for file in table.files()]

    for act in (table.optimize, lambda: table.migrate(tmp_path / "new")):
        check_refused(table, act, DataFileError, "part-" if table.format != "iceberg" else "")
        with pytest.raises(DataFileError, match=r"does not match \..*\.crc.* delete \..*\.crc"):
            act()
    for path in checksums:
        path.unlink()
    assert table.optimize().rows_added == 40_000


# Iceberg reads a metadata file twenty times, for more than a minute, before it gives up
@pytest.mark.parametrize("metadata", ["*.avro", *slow("*.json")])
def test_a_stale_checksum_file_of_a_log(table, metadata):
    """Of Delta's log, and of Iceberg's manifests and metadata; zadapter's own log has none."""
    logs = {
        "delta": "_delta_log/*.json",
        "iceberg": f"metadata/{metadata}",
        "parquet": "_zadapter/log/*",
    }
    read = [file for file in table.folder.glob(logs[table.format]) if file.is_file()]
    with_checksums = [file for file in read if file.with_name(f".{file.name}.crc").exists()]
    if table.format == "parquet":
        table.optimize()
        assert not list((table.folder / "_zadapter").rglob(".*.crc"))
        return
    checksums = [stale(file) for file in with_checksums]
    if table.format == "delta":  # the session remembers what it has read of the log
        table.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # noqa: SLF001

    with pytest.raises(ZadapterError, match=r"does not match \..*\.crc.* delete \..*\.crc"):
        table.optimize()
    for path in checksums:
        path.unlink()
    assert table.optimize().rows_added == 40_000


def test_a_data_file_is_missing(table, tmp_path):
    """The log names it, the store does not have it."""
    if table.format == "parquet":
        table.optimize()
    file = table.files()[0]
    file.unlink()
    table.changed(file)

    def again():
        zadapter.optimize(
            table.name, by=["c"], target_file_size="256KB", backend=table.format, spark=table.spark
        )

    error = ForeignChangeError if table.format == "parquet" else DataFileError
    check_refused(table, again, error, file.name)
    check_refused(table, lambda: table.migrate(tmp_path / "new"), error, file.name)


@contextmanager
def no_file_larger(spark, most):
    """Have the kernel refuse what the JVM writes into a file beyond so many bytes."""
    pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def test_no_room(table, spark):
    """What was written before the disk was full is removed, or it would stay full."""
    with no_file_larger(spark, 30_000):
        check_refused(table, table.optimize, StoreError, "no space left", "free space")

    assert not table.optimize().nothing_to_do


CODEC = "org.apache.hadoop.io.compress.BrotliCodec"


@pytest.mark.parametrize(
    ("key", "value", "error", "says"),
    [
        ("spark.sql.parquet.compression.codec", "brotli", SessionError, CODEC),
        ("parquet.page.size", "1", SessionError, "IllegalArgumentException"),
    ],
)
def test_a_setting_that_cannot_work(table, spark, key, value, error, says):
    """The message is the library's, the setting the user's to change."""
    if table.format == "iceberg":  # which has properties for them
        of = {"parquet.page.size": "write.parquet.page-size-bytes"}
        name = of.get(key, "write.parquet.compression-codec")
        spark.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('{name}'='{value}')")
    with settings(spark, {key: value}):
        check_refused(table, table.optimize, error, says)
