"""No column of the user's is taken for a helper's, whatever its name."""

import re
from contextlib import suppress

import pyarrow as pa
import pytest

import zadapter
from integration.kit.hostile import HELPERS, QUOTED, RESERVED, VALUES, numbers, sql
from tests.kit.variants import slow
from zadapter import errors
from zadapter_iceberg.table.specs import is_reserved


def text(rows):
    """Rows as sorted text, by the columns' names."""
    return sorted(str(sorted(row.items())) for row in rows)


def by_pyiceberg(lake, name):
    return text(lake.table(name).scan().to_arrow().to_pylist())


def check(lake, name, where, matches):
    """Optimize, and read by zadapter what pyiceberg saw before."""
    before = by_pyiceberg(lake, name)
    assert zadapter.read(name, where=where, spark=lake.spark).count() == matches
    report = lake.optimize(name, by=["key"])
    assert report.rows_added == len(before)
    assert by_pyiceberg(lake, name) == before
    assert text(zadapter.read(name, spark=lake.spark).toArrow().to_pylist()) == before
    assert zadapter.read(name, where=where, spark=lake.spark).count() == matches
    assert 0 < len(zadapter.files(name, where=where, spark=lake.spark)) < report.files_added


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3", *slow("2")])
def test_columns_of_any_name_keep_their_rows(lake, spark, version):
    """Of helpers, of other formats' metadata, and such as have to be quoted."""
    names = (
        "key",
        *HELPERS,
        *(n for n in QUOTED if n not in {"element.list", "${env}"}),
        "_change_type",
    )
    rows = spark.createDataFrame(pa.table(numbers(names, 2_000)))
    name = lake.make(rows, format_version=version)
    where = "key < 100 AND " + " AND ".join(f"{sql(name)} >= 0" for name in names)

    check(lake, name, where, 100)


@pytest.mark.parametrize("column", [*RESERVED[:4], *slow(*RESERVED[4:])])
def test_a_column_called_as_metadata_stays_or_is_refused(lake, spark, column):
    """Iceberg has columns of these names; with its own error, or zadapter's, nothing changes."""
    rows = spark.createDataFrame(pa.table(numbers(("key", column), 400)))
    name = None
    with suppress(Exception):  # Spark or Iceberg refuses such a table itself
        name = lake.make(rows)
    if name is None:
        return
    before = by_pyiceberg(lake, name)
    try:
        lake.optimize(name, by=["key"])
    except errors.ZadapterError:
        assert len(lake.history(name)) == 1

    assert by_pyiceberg(lake, name) == before


@pytest.mark.slow
def test_partition_fields_of_any_name_keep_their_rows(lake, spark):
    """Transforms are added as columns while rows are sorted, by the names of their fields."""
    names = ("key", "zadapter path", "place", "a.b")
    rows = spark.createDataFrame(pa.table(numbers(names, 2_000)))
    name = lake.make(rows, partition_by="bucket(2, key), truncate(1000, `zadapter path`)")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, `a.b`) AS `Place-1`")

    check(lake, name, "key < 100 AND `a.b` >= 0", 100)


@pytest.mark.slow
def test_partition_values_of_any_text_keep_their_rows(lake, spark):
    """Iceberg escapes folders, and Spark shows the paths as the manifests have them."""
    values = [*VALUES, "back\\\\slash", "..", ""]
    rows = pa.table({"key": range(20 * len(values)), "p": values * 20})
    name = lake.make(spark.createDataFrame(rows), partition_by="p", files=1)

    check(lake, name, "p = 'a/b' AND key >= 0", 20)

    found = zadapter.analyze(
        name, by=["key"], queries=["key >= 0", "p = 'a/b'"], matches=True, spark=spark
    )
    assert [query.matches.rows for query in found.queries] == [rows.num_rows, 20]
    assert zadapter.audit(name, deep=True, spark=spark).findings.num_rows == 0


def test_the_names_that_iceberg_reserves_are_known(spark):
    """A further release has no property that a migration would take for the user's."""
    java = spark._jvm.java.lang  # noqa: SLF001
    loader = java.Thread.currentThread().getContextClassLoader()
    properties = java.Class.forName("org.apache.iceberg.TableProperties", True, loader)  # noqa: FBT003
    names = [
        str(each.get(None))
        for each in properties.getFields()
        if each.getType().getSimpleName() == "String"
    ]
    # the others are values of properties
    names = [name for name in names if re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+\.?", name)]
    names += list(properties.getField("RESERVED_PROPERTIES").get(None))

    assert len(names) > 80
    # a prefix is followed by a column
    assert [
        name for name in names if not is_reserved(f"{name}a" if name[-1] == "." else name)
    ] == []


def test_a_column_that_comes_later_is_not_its_partition_field(lake, spark):
    """Of the same name as a field that is made of another column."""
    rows = spark.createDataFrame(pa.table(numbers(("key", "b"), 2_000)))
    name = lake.make(rows, partition_by="bucket(2, b)")
    with suppress(Exception):  # Iceberg may refuse it
        lake.sql(f"ALTER TABLE {name} ADD COLUMN B_bucket INT")
        lake.sql(f"INSERT INTO {name} VALUES (5000, 1, 77)")
    before = by_pyiceberg(lake, name)
    with suppress(errors.ZadapterError):
        lake.optimize(name, by=["key"])

    assert by_pyiceberg(lake, name) == before
