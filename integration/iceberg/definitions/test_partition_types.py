"""Partitions of every type and transform, and specs that Iceberg's table ``files`` cannot show."""

from itertools import cycle

import pytest

import zadapter
from tests.kit.variants import slow
from zadapter import errors

VALUES = {
    "boolean": "i % 2 = 0",
    "int": "CAST(i - 3 AS INT)",
    "long": "i * 5000000000",
    "float": "element_at(array(-0.0F, 0.0F, float('NaN'), 1.5F), int(i % 4) + 1)",
    "double": "element_at(array(-0.0D, 0.0D, double('NaN'), -1.5D), int(i % 4) + 1)",
    "decimal(9, 2)": "CAST(i - 2.5 AS DECIMAL(9, 2))",
    "decimal(38, 10)": "CAST(i AS DECIMAL(38, 10)) * 1000000000000000000",
    "date": "date_add(date'1969-12-29', CAST(i AS INT))",
    "timestamp": "CAST(timestamp_seconds(i * 3600 - 9000) AS TIMESTAMP_NTZ)",
    "timestamptz": "timestamp_seconds(i * 3600 - 9000)",
    "string": "element_at(array('', 'a/b=c', 'ü%41', ' ', 'x'), int(i % 5) + 1)",
    "uuid": "concat('f0000000-0000-4000-8000-00000000000', i)",
    "fixed[4]": "unhex(concat('0a0b0cf', i))",
    "binary": "unhex(concat('0a0b0cf', i))",
}
"""An expression of ``i`` for each type, with a few values."""
DATES, TIMES = {"date", "timestamp", "timestamptz"}, {"timestamp", "timestamptz"}
TRANSFORMS = {
    "identity": {*VALUES},
    "bucket": {*VALUES} - {"boolean", "float", "double"},
    "truncate": {"int", "long", "decimal(9, 2)", "decimal(38, 10)", "string", "binary"},
    "year": DATES, "month": DATES, "day": DATES, "hour": TIMES,
    "alwaysNull": {*VALUES},
}  # fmt: skip
OFTEN = {("uuid", "identity"), ("uuid", "bucket"), ("fixed[4]", "bucket")}
EVERY = sorted((type_, name) for name, types in TRANSFORMS.items() for type_ in types)
VERSIONS = cycle((2, 3, 1))


def created(lake, type_, transform, version):
    """Create a table by Iceberg's own classes: Spark has no uuid."""
    iceberg = lake.jvm.org.apache.iceberg
    name = lake.make(lake.spark.range(0), files=1)
    lake.sql(f"DROP TABLE {name}")
    schema = iceberg.SchemaParser.fromJson(
        '{"type": "struct", "fields": ['
        '{"id": 1, "name": "k", "required": false, "type": "long"},'
        f'{{"id": 2, "name": "c", "required": false, "type": "{type_}"}}]}}'
    )
    builder = iceberg.PartitionSpec.builderFor(schema)
    sized = transform in {"bucket", "truncate"}
    spec = getattr(builder, transform)("c", *([3] if sized else [])).build()
    catalog = lake.session.sessionState().catalogManager().catalog("ice").icebergCatalog()
    array = lake.spark.sparkContext._gateway.new_array(lake.jvm.java.lang.String, 2)  # noqa: SLF001
    array[0], array[1] = name.split(".")[1:]
    mode = "copy-on-write" if version == 1 else "merge-on-read"
    properties = {"format-version": str(version), "write.delete.mode": mode}
    built = catalog.buildTable(iceberg.catalog.TableIdentifier.of(array), schema)
    built.withPartitionSpec(spec).withProperties(properties).create()
    return name


def filled(lake, name, value, *, deleted=True):
    """Append rows twice, the second time with nulls, and delete some."""
    rows = "id AS k", f"{value} AS c"
    for start in (0, 40):
        made = lake.spark.range(start, start + 40).selectExpr("id", "id % 5 AS i")
        made.selectExpr(*rows).createOrReplaceTempView("made")
        null = "c" if start == 0 else "IF(k % 9 = 0, NULL, c) AS c"
        lake.sql(f"INSERT INTO {name} SELECT k, {null} FROM made")
    if deleted:
        lake.sql(f"DELETE FROM {name} WHERE k % 10 = 7")


def kept(lake, name):
    return sorted(map(str, lake.load(name).collect()))


def folders(lake, name):
    """The partition of each file, as Iceberg names the folder, without the field's name.

    A table without partitions, or with void fields alone, has no such folders.
    """
    return [file.file_path.split("/")[-2].partition("=")[2] for file in lake.files(name)]


def check(lake, name):
    """All public functions work, rows stay, and each partition becomes one file."""
    before, partitions = kept(lake, name), {*folders(lake, name)}
    zadapter.plan(name, by="k", force=True, spark=lake.spark)

    report = lake.optimize(name, by=["k"], force=True)

    assert report.rows_added == len(before)
    assert kept(lake, name) == before
    after = folders(lake, name)
    assert {*after} <= partitions
    assert len(after) == len({*after}) or {*after} == {""}
    for each in (zadapter.analyze, zadapter.audit):
        each(name, spark=lake.spark)
    assert zadapter.explain(name, where="k = 3", spark=lake.spark)


@pytest.mark.parametrize(
    "case", [*sorted(OFTEN), *slow(*(each for each in EVERY if each not in OFTEN))], ids="-".join
)
def test_a_partition_of_any_type_and_transform(lake, case):
    """Of tables of all format versions, with row-level deletes where these have them."""
    name = created(lake, *case, next(VERSIONS))
    filled(lake, name, VALUES[case[0]])

    check(lake, name)


@pytest.mark.parametrize("type_", ["uuid", "fixed[4]"])
def test_a_type_that_spark_lacks_is_no_key_by_its_own_name(lake, type_):
    """Spark's string or binary would mislead."""
    name = created(lake, type_, "alwaysNull", 2)
    filled(lake, name, VALUES[type_])

    with pytest.raises(errors.UsageError, match=type_.partition("[")[0]):
        lake.optimize(name, by=["c"])


def appended(lake, name):
    lake.sql(f"INSERT INTO {name} SELECT id, timestamp_seconds(id * 5000), id % 3 FROM range(90)")


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [("2", "part"), *slow(("1", "part"), ("3", "part"), ("2", "Part"), ("3", "Part"))]
)
def test_two_specs_with_a_field_of_one_name(lake, case):
    """Files of the older spec move into the newer one; a condition finds all rows of both.

    In version 1 a dropped field stays, so Spark cannot read names that differ in case alone.
    """
    version, again = case
    name = lake.make(lake.spark.range(0), format_version=version)
    lake.sql(f"ALTER TABLE {name} ADD COLUMNS (ts TIMESTAMP, b BIGINT)")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD day(ts) AS part")
    appended(lake, name)
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD part")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id) AS {again}")
    appended(lake, name)
    before = kept(lake, name)

    found = zadapter.read(name, where="id = 7 AND b = 1", spark=lake.spark)
    assert found.count() == 2
    report = lake.optimize(name, by=["id"], force=True)

    assert report.rows_added == 180
    assert kept(lake, name) == before
    assert {file.spec_id for file in lake.files(name)} == {lake.table(name).spec().spec_id}


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, *slow(1, 3)])
def test_a_field_whose_column_was_dropped(lake, version):
    """It was dropped from the spec before, and files of the older spec have its values.

    With row-level deletes in such files, Iceberg itself cannot read the table.
    """
    name = created(lake, "uuid", "identity", version)
    filled(lake, name, VALUES["uuid"], deleted=False)
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD c")
    lake.sql(f"ALTER TABLE {name} DROP COLUMN c")
    lake.sql(f"INSERT INTO {name} SELECT id FROM range(100, 120)")
    before = kept(lake, name)

    lake.optimize(name, by=["k"], force=True)

    assert kept(lake, name) == before
    assert {file.spec_id for file in lake.files(name)} == {lake.table(name).spec().spec_id}


def test_a_renamed_field(lake):
    """Its values are found by its id."""
    name = created(lake, "uuid", "bucket", 2)
    filled(lake, name, VALUES["uuid"])
    lake.java(name).updateSpec().renameField("c_bucket", "k_of_c").commit()
    lake.sql(f"REFRESH TABLE {name}")

    check(lake, name)


def test_uuids_of_many_manifests(lake):
    """Each file has its own value, whatever file lists it."""
    name = created(lake, "uuid", "identity", 2)
    for _ in range(3):
        filled(lake, name, VALUES["uuid"])

    files = zadapter.files(name, where=f"c = {uuid(3)!r}", spark=lake.spark)

    assert files.num_rows > 2
    assert all(f"c={uuid(3)}" in path for path in files["path"].to_pylist())
    assert zadapter.read(name, where=f"c = {uuid(3)!r}", spark=lake.spark).count() == sum(
        row.c == uuid(3) for row in lake.load(name).collect()
    )


def uuid(number):
    return f"f0000000-0000-4000-8000-00000000000{number}"
