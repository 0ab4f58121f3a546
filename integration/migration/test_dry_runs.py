"""What would become of a table is told beforehand, and nothing is written."""

from pathlib import Path

import pytest

from integration.migration.tables import FORMATS
from zadapter.table.spec import Status


def items(report, status):
    """What has a status, as text."""
    return "; ".join(f"{each.what}: {each.how}" for each in report.items if each.status is status)


def tell(lakes, format_, table, to, **arguments):
    """A dry run that is checked to write nothing, neither here nor there."""
    target = lakes.name(to)
    before = history(lakes, format_, table)

    report = lakes.migrate(format_, table, to, target, dry_run=True, **arguments)

    assert (report.target_version, report.proof) == (None, None)
    assert "nothing" in str(report)
    assert history(lakes, format_, table) == before
    if to == "iceberg":
        assert not lakes.exists(to, target)
        assert not list(Path(lakes.catalog.properties["warehouse"][7:]).rglob(target[7:]))
    else:
        assert not Path(target).exists()
    return report


def history(lakes, format_, table):
    if format_ == "iceberg":
        return lakes.iceberg(table).metadata_location
    return sorted(str(path) for path in Path(table).rglob("*"))


@pytest.fixture(scope="module")
def delta(lakes):
    """A Delta table with all that other formats do not have."""
    table = lakes.name("delta")
    lakes.sql(
        f"CREATE TABLE delta.`{table}` (id bigint NOT NULL COMMENT 'the key', v varchar(9), "
        "twice bigint GENERATED ALWAYS AS (id * 2)) USING delta PARTITIONED BY (v) "
        "COMMENT 'all of it' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        "'delta.deletedFileRetentionDuration' = 'interval 2 days', 'mine' = 'yes')"
    )
    lakes.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT positive CHECK (id >= 0)")
    lakes.sql(f"INSERT INTO delta.`{table}` (id, v) VALUES (1, 'x')")
    return table


@pytest.fixture(scope="module")
def iceberg(lakes):
    """An Iceberg table with all that other formats do not have."""
    table = lakes.name("iceberg")
    lakes.sql(
        f"CREATE TABLE {table} (id bigint NOT NULL COMMENT 'the key', t timestamp, v string) "
        "USING iceberg PARTITIONED BY (days(t), bucket(4, id), v) "
        "COMMENT 'all of it' TBLPROPERTIES ('mine' = 'yes', 'write.wap.enabled' = 'false', "
        "'write.target-file-size-bytes' = '67108864')"
    )
    lakes.sql(f"INSERT INTO {table} VALUES (1, TIMESTAMP'2026-11-21 20:04:53', 'x')")
    lakes.sql(f"ALTER TABLE {table} WRITE ORDERED BY id")
    lakes.sql(f"ALTER TABLE {table} SET IDENTIFIER FIELDS id")
    lakes.sql(f"ALTER TABLE {table} CREATE BRANCH audit")
    return table


@pytest.mark.slow
@pytest.mark.parametrize("to", FORMATS[1:])
def test_what_delta_alone_has_is_named(lakes, delta, to):
    """Generated columns, constraints and the change feed go; the rest comes along."""
    report = tell(lakes, "delta", delta, to)

    lost = items(report, Status.LOST)
    for word in ("column twice", "CHECK (id >= 0)", "delta.enableChangeDataFeed"):
        assert word in lost
    assert ("NOT NULL" in lost) == (to == "parquet")
    carried = items(report, Status.CARRIED)
    for word in ("partition field v", "property mine", "table comment", "1 column comments"):
        assert word in carried
    assert not report.refused


@pytest.mark.parametrize("to", ["delta", "parquet"])
def test_what_iceberg_alone_has_is_named(lakes, iceberg, to):
    """Hidden partitions are translated; branches, sort orders and identifiers go."""
    report = tell(lakes, "iceberg", iceberg, to)

    translated = items(report, Status.TRANSLATED)
    for word in ("partition field day(t)", "partition field bucket[4](id)", "field ids"):
        assert word in translated
    lost = items(report, Status.LOST)
    for word in ("branches and tags audit", "WRITE ORDERED BY", "identifier fields", "write.wap"):
        assert word in lost
    assert "partition field v" in items(report, Status.CARRIED)


@pytest.mark.parametrize("mode", ["copy", "in_place", "auto"])
def test_nothing_is_written_in_any_mode(lakes, spark, mode):
    table = lakes.make("delta", spark.range(10))

    report = tell(lakes, "delta", table, "iceberg", mode=mode)

    assert report.mode.value == ("copy" if mode == "copy" else "in_place")
    assert report.file_count == report.files.num_rows == 2


def test_what_was_carried_is_there(lakes, delta, iceberg):
    """Comments, properties and NOT NULL, as Spark and pyiceberg see them."""
    made = lakes.iceberg(lakes.migrate("delta", delta, "iceberg").target)
    key = made.schema().find_field("id")
    assert (key.required, key.doc) == (True, "the key")
    assert made.properties["mine"] == "yes"
    assert made.properties["comment"] == "all of it"
    assert made.properties["history.expire.max-snapshot-age-ms"] == str(2 * 86_400_000)
    assert [each.name for each in made.spec().fields] == ["v"]

    target = lakes.migrate("iceberg", iceberg, "delta").target
    said = lakes.sql(f"DESCRIBE DETAIL delta.`{target}`").first()
    assert said.description == "all of it"
    assert said.partitionColumns == ["v"]
    assert said.properties["mine"] == "yes"
    (field, *_) = lakes.load("delta", target).schema.fields
    assert field.metadata["comment"] == "the key"
    assert '"name":"id","type":"long","nullable":false' in schema_text(target)


def schema_text(target):
    return Path(target, "_delta_log", f"{0:020d}.json").read_text().replace("\\", "")
