"""Columns that have changed their names, or have come and gone, and names that are odd."""

import pytest

from integration.migration.tables import FORMATS, by_log, quoted, texts
from zadapter.errors import UnsupportedError

ODD_NAMES = ["a.b", "c d", "e`f", "UPPER", "größe", "x=y;z"]


def said(*rows, names=("id", "v")):
    """Rows as the witnesses write them."""
    return texts([dict(zip(names, row, strict=True)) for row in rows])


def mapped(lakes):
    """A Delta table with column mapping."""
    table = lakes.name("delta")
    lakes.sql(
        f"CREATE TABLE delta.`{table}` (id bigint, v string) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    lakes.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'x'), (2, NULL)")
    return table


def plain(lakes):
    """An Iceberg table."""
    table = lakes.name("iceberg")
    lakes.sql(f"CREATE TABLE {table} (id bigint, v string) USING iceberg")
    lakes.sql(f"INSERT INTO {table} VALUES (1, 'x'), (2, NULL)")
    return table


def spelled(format_, table):
    return f"delta.`{table}`" if format_ == "delta" else table


MAKERS = {"delta": mapped, "iceberg": plain}
PAIRS = [(f, to) for f in MAKERS for to in FORMATS if f != to]


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_renamed_columns_keep_their_values(lakes, format_, to):
    """Copied by their names of now; in place refused, for files have the old ones."""
    table = MAKERS[format_](lakes)
    name = spelled(format_, table)
    lakes.sql(f"ALTER TABLE {name} RENAME COLUMN v TO `w.new`")
    lakes.sql(f"INSERT INTO {name} VALUES (3, 'y')")

    report = lakes.migrate(format_, table, to)

    wanted = said((1, "x"), (2, None), (3, "y"), names=("id", "w.new"))
    assert read(lakes, to, report.target) == wanted
    if to != "parquet":
        with pytest.raises(UnsupportedError, match=r"name.*mode='copy'"):
            lakes.migrate(format_, table, to, mode="in_place")
        assert lakes.migrate(format_, table, to, mode="auto").mode.value == "copy"


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_a_column_that_was_dropped_and_added_anew_has_no_old_values(lakes, format_, to):
    """The values of before are in the files still, by the same name in Iceberg's case."""
    table = MAKERS[format_](lakes)
    name = spelled(format_, table)
    lakes.sql(f"ALTER TABLE {name} DROP COLUMN v")
    lakes.sql(f"ALTER TABLE {name} ADD COLUMN v string")
    lakes.sql(f"INSERT INTO {name} VALUES (3, 'y')")

    report = lakes.migrate(format_, table, to)

    assert read(lakes, to, report.target) == said((1, None), (2, None), (3, "y"))
    if to != "parquet":
        with pytest.raises(UnsupportedError, match="mode='copy'"):
            lakes.migrate(format_, table, to, mode="in_place")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy", "in_place"])
@pytest.mark.parametrize(("format_", "to"), [("delta", "iceberg"), ("iceberg", "delta")])
def test_an_added_column_is_null_in_older_files(lakes, spark, format_, to, mode):
    """In the old table, in the new one, and whoever reads it."""
    table = lakes.make(format_, spark.range(2), files=1)
    lakes.sql(f"ALTER TABLE {spelled(format_, table)} ADD COLUMN v string")
    lakes.sql(f"INSERT INTO {spelled(format_, table)} VALUES (2, 'y')")

    report = lakes.migrate(format_, table, to, mode=mode)

    wanted = said((0, None), (1, None), (2, "y"))
    assert texts(lakes.load(to, report.target).toArrow()) == wanted
    assert read(lakes, to, report.target) == wanted


@pytest.mark.slow
def test_files_without_ids_survive_a_rename(lakes, spark):
    """Adopted files know no field ids, so the table says which names had which."""
    report = lakes.migrate("delta", lakes.make("delta", spark.range(9)), "iceberg", mode="in_place")

    lakes.sql(f"ALTER TABLE {report.target} RENAME COLUMN id TO number")
    lakes.sql(f"ALTER TABLE {report.target} ADD COLUMN other bigint")

    wanted = said(*((n, None) for n in range(9)), names=("number", "other"))
    assert texts(lakes.load("iceberg", report.target).toArrow()) == wanted
    assert lakes.read("iceberg", report.target) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_", "to", "mode"),
    [(f, to, "copy") for f in FORMATS for to in FORMATS if f != to]
    + [("iceberg", "delta", "in_place"), ("parquet", "iceberg", "in_place")],
)
def test_odd_names_are_names(lakes, spark, format_, to, mode):
    """Dots, blanks, backticks and capitals, of columns and of partitions."""
    columns = [f"id % 3 AS {quoted(name)}" for name in ODD_NAMES]
    rows = spark.range(30).selectExpr("id", *columns)
    odd = {"columnMapping.mode": "name"} if format_ == "delta" else {}
    table = lakes.make(format_, rows, "c d", "UPPER", **odd)
    if mode == "in_place" and to == "delta":
        with pytest.raises(UnsupportedError, match="column names"):
            lakes.migrate(format_, table, to, mode=mode)
        return

    report = lakes.migrate(format_, table, to, mode=mode)

    assert set(lakes.load(to, report.target).columns) == {"id", *ODD_NAMES}
    assert read(lakes, to, report.target) == texts(rows.toArrow())


def read(lakes, to, table):
    """By the table's log if deltalake does not know how its columns are called in files."""
    return texts(by_log(table)) if to == "delta" else lakes.read(to, table)
