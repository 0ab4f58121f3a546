"""All readers of manifests tell the same of a table's files: in bulk, Iceberg's own, pyiceberg."""

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from zadapter.table.file_stats import concat_files
from zadapter_iceberg import IcebergBackend
from zadapter_iceberg.stats import manifest_columns
from zadapter_iceberg.stats.manifest_columns import (
    LiveFiles,
    PartitionField,
    UnreadManifestsError,
)
from zadapter_iceberg.stats.manifest_stats import file_table
from zadapter_iceberg.table.files_table import (
    find_manifests,
    read_data_files,
    read_manifests,
    select_stats_columns,
)

COUNTS = pa.map_(pa.int32(), pa.int64())
BOUNDS = pa.map_(pa.int32(), pa.binary())


def by_pyiceberg(table, snapshot, columns):
    """The file table, made of what pyiceberg reads in the manifests."""
    found = table.inspect.data_files()
    names = {
        "lower_bounds": BOUNDS, "upper_bounds": BOUNDS,
        "null_value_counts": COUNTS, "nan_value_counts": COUNTS,
    }  # fmt: skip
    for name, type_ in names.items():
        at = found.schema.get_field_index(name)
        found = found.set_column(at, name, found[name].cast(type_))
    wanted = select_stats_columns(snapshot, columns)
    return file_table(found, wanted, snapshot.partition, {}, table.spec().spec_id)


@pytest.mark.parametrize("partition", ["", "days(t), bucket(3, a), s"])
def test_both_readers_give_the_same_table(lake, spark, partition):
    """Paths, sizes, rows, partitions, bounds and counts, before and after a rewrite."""
    rows = spark.range(2_000).selectExpr(
        "id * 7919 % 2003 AS a",
        "nullif(concat('text ', id % 7), 'text 5') AS s",
        "timestamp_seconds(1e9 + id % 3 * 1e5) AS t",
        "cast(id AS decimal(20, 3)) AS d",
        "if(id % 7 = 0, double('NaN'), id / 3) AS f",
        "named_struct('x', cast(id AS int), 'y', date_add(date'2024-01-01', cast(id AS int))) AS n",
    )
    name = lake.make(rows, partition)
    columns = [("a",), ("s",), ("t",), ("d",), ("f",), ("n", "x"), ("n", "y")]
    for _ in range(2):
        backend = IcebergBackend(spark)
        snapshot = backend.snapshot(name)

        ours = backend.files(snapshot, columns).sort_by("path")
        theirs = by_pyiceberg(lake.table(name), snapshot, columns).sort_by("path")

        assert ours.drop_columns("stats").equals(theirs.drop_columns("stats"))
        # as text, for NaN is no number that equals itself
        assert str(ours["stats"].to_pylist()) == str(theirs["stats"].to_pylist())
        lake.optimize(name, by=["a", "d"])


def changed(lake, spark, version):
    """A table whose columns, types and specs have changed, with deleted files and rows."""
    rows = spark.range(60).selectExpr(
        "cast(id AS int) AS a",
        "cast(id / 7 AS float) AS f",
        "cast(id - 30 AS decimal(9, 2)) AS d",
        "concat(repeat('prefix ', 9), nullif(id % 5, 3)) AS s",
        "cast(concat('x', id) AS binary) AS raw",
        "timestamp_seconds(1e9 + id % 3 * 1e5) AS t",
        "if(id % 4 = 0, double('NaN'), cast(id % 4 AS double)) AS x",
        "named_struct('n', date_add(date'1969-12-30', cast(id % 4 AS int))) AS st",
        "id % 2 = 0 AS flag",
    )
    modes = {"write.delete.mode": "merge-on-read"} if version != "1" else {}
    name = lake.make(rows, "days(t)", files=2, format_version=version, **modes)
    for change in (
        "ALTER COLUMN a TYPE bigint", "ALTER COLUMN f TYPE double",
        "ALTER COLUMN d TYPE decimal(20, 2)", "RENAME COLUMN s TO text",
        "ADD PARTITION FIELD x", "ADD PARTITION FIELD truncate(10, d) AS tens",
        "ADD PARTITION FIELD truncate(2, raw) AS cut", "ADD PARTITION FIELD bucket(3, text) AS b",
        "ADD PARTITION FIELD st.n", "ADD PARTITION FIELD flag", "ADD COLUMN late int",
    ):  # fmt: skip
        lake.sql(f"ALTER TABLE {name} {change}")
    lake.sql(
        f"INSERT INTO {name} SELECT a + (1L << 40), f / 3, d * 1000000000, text, raw, t, x, st, "
        f"flag, 1 FROM {name}"
    )
    lake.sql(f"DELETE FROM {name} WHERE a = 7")
    lake.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('write.delete.mode')")
    lake.sql(f"DELETE FROM {name} WHERE a = 8")  # replaces a file
    assert lake.load(f"{name}.entries").where("status = 2").head(1)
    return name


COLUMNS = [("a",), ("f",), ("d",), ("text",), ("raw",), ("t",), ("x",), ("st", "n"), ("late",)]


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_manifests_read_in_bulk_are_the_metadata_table(lake, spark, version, monkeypatch):
    """Bounds of older types, other names, partitions of all kinds, deleted files, any parts."""
    name = changed(lake, spark, version)
    with closing(IcebergBackend(spark)) as backend:
        snapshot = backend.snapshot(name)
        table, wanted = snapshot.handle, select_stats_columns(snapshot, COLUMNS)
        spec = int(table.pinned.spec().specId())

        def collect(parts):
            each = (file_table(part, wanted, snapshot.partition, {}, spec) for part in parts)
            return concat_files(each).sort_by("path")

        theirs = collect(read_data_files(table.jvm, table, wanted))
        whole = collect(read_manifests(table, wanted, snapshot.partition))
        monkeypatch.setattr(manifest_columns, "_MOST_FILES", 3)
        in_parts = collect(read_manifests(table, wanted, snapshot.partition))

    assert theirs.num_rows > 10
    assert theirs["partition"].null_count > 0
    assert str(whole.to_pylist()) == str(in_parts.to_pylist())
    assert whole.schema == theirs.schema
    # as text, for NaN is no number that equals itself
    assert str(whole.to_pylist()) == str(theirs.to_pylist())


def test_messages_are_small_however_many_columns_a_table_has(lake, spark, monkeypatch):
    """The driver has one in memory, twice: as columns, and as what it sends."""
    names = [f"c{number}" for number in range(40)]
    name = lake.make(spark.range(8).selectExpr(*(f"id AS {each}" for each in names)), files=2)
    monkeypatch.setattr(manifest_columns, "_MOST_BYTES", 1 << 16)
    with closing(IcebergBackend(spark)) as backend:
        snapshot = backend.snapshot(name)
        version = snapshot.handle
        wanted = select_stats_columns(snapshot, [(each,) for each in names])
        manifests = find_manifests(version, {})
        one = list(manifests.items)[:1]
        many = manifests._replace(items=version.jvm.list(one * 100))

        parts = list(LiveFiles(version.jvm, many, [column.id for column in wanted]))

    assert len(parts) > 2
    assert max(part.nbytes for part in parts) < 2 << 16


def test_no_manifest_stays_open_where_the_bulk_reader_stops(lake, spark):
    """A store may give out few connections at a time."""
    name = lake.make(spark.range(8).selectExpr("id AS a"))
    with closing(IcebergBackend(spark)) as backend:
        version = backend.snapshot(name).handle
        no_field = PartitionField("p", 9_999, pa.int64(), is_uuid=False)
        manifests = find_manifests(version, {})._replace(fields=[no_field])
        system = version.jvm.root.java.lang.management.ManagementFactory
        before = system.getOperatingSystemMXBean().getOpenFileDescriptorCount()
        for _ in range(20):
            with pytest.raises(UnreadManifestsError):
                list(LiveFiles(version.jvm, manifests, ()))
        after = system.getOperatingSystemMXBean().getOpenFileDescriptorCount()

    assert after < before + 20


def open_manifests(jvm):
    """How many manifests the driver has open."""
    pid = jvm.root.java.lang.ProcessHandle.current().pid()
    links = Path(f"/proc/{pid}/fd").iterdir()
    return sum(each.readlink().name.endswith("-m0.avro") for each in links if each.is_symlink())


def test_no_manifest_stays_open_where_its_reader_is_left(lake, spark, monkeypatch):
    """An error or an interrupt of Python ends the reading of manifests that have no end."""
    name = lake.make(spark.range(8).selectExpr("id AS a"))
    monkeypatch.setattr(manifest_columns, "_MOST_FILES", 3)
    with closing(IcebergBackend(spark)) as backend:
        version = backend.snapshot(name).handle
        manifests = find_manifests(version, {})
        (one,) = manifests.items
        endless = version.jvm.root.java.util.Collections.nCopies((1 << 31) - 1, one)
        parts = iter(LiveFiles(version.jvm, manifests._replace(items=endless), ()))

        assert next(parts).num_rows == 3
        parts.close()

        assert open_manifests(version.jvm) == 0


def test_no_manifest_stays_open_that_is_no_avro(lake, spark):
    """Another program has overwritten it; the error of Iceberg's own reader says so."""
    name = lake.make(spark.range(8).selectExpr("id AS a"))
    with closing(IcebergBackend(spark)) as backend:
        version = backend.snapshot(name).handle
        manifests = find_manifests(version, {})
        (one,) = manifests.items
        path = Path(str(one.path()).removeprefix("file:"))
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        path.write_bytes(b"no avro!" * (one.length() // 8 + 1))

        for _ in range(3):
            with pytest.raises(UnreadManifestsError):
                list(LiveFiles(version.jvm, manifests, ()))

        assert open_manifests(version.jvm) == 0


def test_manifests_that_cannot_be_read_in_bulk_are_read_by_iceberg(lake, spark, monkeypatch):
    """What the bulk reader throws ends it, and Iceberg's own readers tell the same."""
    name = lake.make(spark.range(50).selectExpr("id AS a"))
    with closing(IcebergBackend(spark)) as backend:
        snapshot = backend.snapshot(name)
        version = snapshot.handle
        expected = backend.files(snapshot, [("a",)]).sort_by("path")
        manifests = find_manifests(version, {})
        another = manifests._replace(items=version.jvm.list(["no manifest"]))
        with pytest.raises(UnreadManifestsError):
            list(LiveFiles(version.jvm, another, ()))

        def stop(*_):
            raise UnreadManifestsError

        monkeypatch.setattr(LiveFiles, "__iter__", stop)
        found = backend.files(snapshot, [("a",)]).sort_by("path")

    assert expected.num_rows == 4
    assert found.equals(expected)
