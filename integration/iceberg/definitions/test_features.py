"""Features of tables: what was tested is rewritten, all else is refused by its name."""

import json

import pytest

import zadapter
from zadapter import errors

UNTESTED = {
    "time": '"time"',
    "timestamp_ns": '"timestamp_ns"',
    "geometry": '"geometry"',
    "geography": '"geography"',
    "unknown": '"unknown"',
    "list": '{"type": "list", "element-id": 7, "element-required": false, "element": "time"}',
}


def field(number, name, type_):
    return f'{{"id": {number}, "name": "{name}", "required": false, "type": {type_}}}'


def created(lake, type_):
    """Create a table of format version 3 by Iceberg's own classes."""
    iceberg = lake.jvm.org.apache.iceberg
    name = lake.make(lake.spark.range(0))
    lake.sql(f"DROP TABLE {name}")
    fields = ", ".join((field(1, "a", json.dumps("long")), field(2, "c", type_)))
    schema = iceberg.SchemaParser.fromJson(f'{{"type": "struct", "fields": [{fields}]}}')
    catalog = lake.session.sessionState().catalogManager().catalog("ice").icebergCatalog()
    array = lake.spark.sparkContext._gateway.new_array(lake.jvm.java.lang.String, 2)  # noqa: SLF001
    array[0], array[1] = name.split(".")[1:]
    built = catalog.buildTable(iceberg.catalog.TableIdentifier.of(array), schema)
    built.withProperty("format-version", "3").create()
    return name


@pytest.mark.parametrize("type_", UNTESTED)
def test_a_type_that_was_not_tested_is_refused(lake, type_):
    """By the column's name and its type, also within another type."""
    name = created(lake, UNTESTED[type_])
    inner = json.loads(UNTESTED[type_])
    stated = inner if isinstance(inner, str) else inner["element"]

    with pytest.raises(errors.UnsupportedError, match=rf"column c.* of the type {stated}, .*drop"):
        zadapter.plan(name, by="a", spark=lake.spark)


def test_a_variant_keeps_its_values(lake):
    """It is no key, and other columns are."""
    name = created(lake, '"variant"')
    lake.sql(
        f"INSERT INTO {name} SELECT id * 37 % 101, parse_json(concat('{{\"k\": ', id, '}}')) "
        "FROM range(200)"
    )
    rows = f"SELECT a, to_json(c) FROM {name}"
    before = sorted(lake.sql(rows).collect())

    lake.optimize(name, by=["a"])

    assert sorted(lake.sql(rows).collect()) == before


def test_defaults_of_columns_are_kept(lake):
    """Old files lack the column, and get its value of that time; later rows get the later one."""
    name = lake.make(lake.spark.range(100).toDF("a"), format_version=3)
    table = lake.java(name)
    types = lake.jvm.org.apache.iceberg.types.Types
    literal = lake.jvm.org.apache.iceberg.expressions.Expressions.lit
    number = types.IntegerType.get()
    table.updateSchema().addColumn("d", number, None, literal(7)).commit()
    table.updateSchema().updateColumnDefault("d", literal(8)).commit()
    lake.sql(f"REFRESH TABLE {name}")
    before = sorted(lake.load(name).collect())
    assert {row.d for row in before} == {7}

    lake.optimize(name, by=["a"])

    assert sorted(lake.load(name).collect()) == before
    schema = lake.java(name).schema().findField("d")
    assert (schema.initialDefault(), schema.writeDefault()) == (7, 8)


def test_statistics_files_stay(lake):
    """They belong to the snapshot that they were computed of."""
    name = lake.make(lake.spark.range(100).toDF("a"))
    lake.sql(f"CALL ice.system.compute_table_stats(table => '{name.removeprefix('ice.')}')")
    stated = [str(each.path()) for each in lake.java(name).statisticsFiles()]

    lake.optimize(name, by=["a"])

    assert stated
    assert [str(each.path()) for each in lake.java(name).statisticsFiles()] == stated


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("write.location-provider.impl", "a.b.C", "a.b.C"),
        ("write.parquet.shred-variants", "true", "the property .*=true, .* remove it"),
    ],
)
def test_a_property_that_was_not_tested_is_refused(lake, key, value, says):
    """Iceberg itself refuses a class that is not there."""
    name = lake.make(lake.spark.range(10).toDF("a"))
    lake.java(name).updateProperties().set(key, value).commit()
    lake.sql(f"REFRESH TABLE {name}")

    with pytest.raises(errors.ZadapterError, match=says):
        zadapter.plan(name, by="a", spark=lake.spark)
