"""What the user has set changes nothing in a folder; ``integration.kit.sweep`` tries all of it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zadapter
from integration.kit.sweep import HADOOP, Folders, guilty, of_files, rounds
from integration.parquet.lake import live

ROUNDS = 3
"""Of the first, all booleans are turned; of the others, settings have one more value each."""


@pytest.fixture(scope="module")
def folders(spark, tmp_path_factory):
    return Folders(spark, tmp_path_factory.mktemp("folders"))


@pytest.mark.slow
def test_no_setting_changes_what_is_written(spark, folders):
    """Rows, their types and footers are the same by pyarrow, whatever the session was told."""
    expected = folders.outcome({})

    for settings in (*rounds(spark)[:ROUNDS], HADOOP):
        assert guilty(folders.outcome, settings, expected) == {}


@pytest.mark.slow
def test_no_setting_of_files_changes_what_is_read(spark, folders):
    """Nor the types of columns, in a folder that is no table yet and in one that is."""
    expected = folders.as_read({})

    for settings in rounds(spark)[:ROUNDS]:
        assert guilty(folders.as_read, of_files(settings), expected) == {}


def test_rows_are_appended_as_their_own_session_has_them(lake, spark):
    """They are evaluated by its settings, and written by none of them."""
    table = lake.folder / "events"
    table.mkdir()
    # not by Spark, which would note its own types
    pq.write_table(pa.table({"b": [b"x"] * 5, "t": ["1"] * 5}), table / "0.parquet")
    table = str(table)
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    session.conf.set("spark.sql.parquet.binaryAsString", "true")
    rows = session.read.parquet(table).limit(1)
    assert rows.schema["b"].dataType.simpleString() == "string"
    more = rows.selectExpr(
        "cast(b AS binary) AS b",
        # a pattern of the old parser alone; null where casts may fail
        "concat(date_format(to_date('Mon 05/2024', 'EEE MM/yyyy'), 'yyyy-MM'), "
        "coalesce(cast('x' AS int), 7)) AS t",
    )

    zadapter.append(table, more, backend="parquet", spark=spark)

    assert sorted(live(table)["t"].to_pylist()) == ["1"] * 5 + ["2024-057"]
    assert set(live(table)["b"].to_pylist()) == {b"x"}


def test_conditions_are_read_as_the_session_reads_them(lake, spark):
    """What is deleted is what Spark, in this session, finds."""
    table = lake.make(spark.range(9).selectExpr("id AS a", "concat(id, 'x') AS t"))
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")

    assert zadapter.read(table, where="t = 3", backend="parquet", spark=session).count() == 0
    assert zadapter.delete(table, "coalesce(cast(t AS int), a) > 6", backend="parquet",
                           spark=session).rows_deleted == 2  # fmt: skip
