"""Calls that mean nothing are refused; what conditions mean is the session's business."""

import pytest

import zadapter
from integration.kit.lakes import settings
from zadapter.errors import UsageError

TEXTS = {
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true",
    "spark.sql.ansi.enabled": "false",
}


@pytest.mark.parametrize(
    ("setting", "where"),
    [
        ({"wanted": "prod"}, "s = '${wanted}'"),
        ({"spark.sql.parser.escapedStringLiterals": "True"}, r"s = 'a\tb'"),
        ({"spark.sql.parser.escapedStringLiterals": "true"}, "s = 'it''s'"),
        ({"spark.sql.ansi.doubleQuotedIdentifiers": " TRUE "}, 's = "b"'),
        ({"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"}, "s = 'pr''od'"),
        (TEXTS, "d < '2024-1-1'"),
        ({"spark.sql.timestampType": "TIMESTAMP_NTZ"}, "ts = '2024-01-01 12:00:00Z'::timestamp"),
        ({}, "a > 1 -- one \\\n AND a < 3"),
    ],
)
def test_a_condition_means_what_the_session_says(lake, spark, setting, where):
    """Files are left out by the words as this session reads them."""
    rows = [("a\\tb", 1, "k"), ("a\tb", 2, "k"), ("zz", 6, "x"), ("prod", 7, "prod")]
    named = spark.createDataFrame(rows, "s string, a int, b string")
    days = "date_add(DATE'2024-01-01', a) AS d"
    table = lake.make(named.selectExpr("*", days, "timestamp(d) AS ts"), files=4)

    with settings(spark, setting):
        every = zadapter.read(table, backend="parquet", spark=spark)
        found = sorted(row.a for row in every.where(where).collect())
        asked = zadapter.read(table, where=where, backend="parquet", spark=spark)
        assert sorted(row.a for row in asked.collect()) == found
        kept = zadapter.files(table, where=where, backend="parquet", spark=spark)
        assert sum(kept["rows"].to_pylist()) >= len(found)
        assert zadapter.delete(table, where, backend="parquet", spark=spark).rows_deleted == len(
            found
        )
    assert len(lake.read(table)) == 4 - len(found)


def test_what_is_no_condition_table_or_frame_is_named(lake, spark):
    table = lake.make(spark.range(10).selectExpr("id AS a"), files=1)

    for wrong in (5, None):
        with pytest.raises(UsageError, match="where= "):
            zadapter.delete(table, wrong, backend="parquet", spark=spark)
        with pytest.raises(UsageError, match="is not a table"):
            zadapter.read(wrong, backend="parquet", spark=spark)
        with pytest.raises(UsageError, match="rows must be a Spark DataFrame"):
            zadapter.append(table, wrong, backend="parquet", spark=spark)
    with pytest.raises(UsageError, match="where= must be a SQL string"):
        zadapter.files(table, where=True, backend="parquet", spark=spark)
    with pytest.raises(UsageError, match="is not a table"):
        zadapter.delete("", "true", backend="parquet", spark=spark)
