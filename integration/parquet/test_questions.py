"""Calls that mean nothing, or to Spark something else: refused before anything is read by them."""

from functools import partial

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
def test_a_condition_that_spark_reads_otherwise_is_refused(lake, spark, setting, where):
    """Files that it is true for in this session would be left out."""
    rows = [("a\\tb", 1, "k"), ("a\tb", 2, "k"), ("zz", 6, "x"), ("prod", 7, "prod")]
    named = spark.createDataFrame(rows, "s string, a int, b string")
    days = "date_add(DATE'2024-01-01', a) AS d"
    table = lake.make(named.selectExpr("*", days, "timestamp(d) AS ts"), files=4)

    with settings(spark, setting):
        for call in (zadapter.read, zadapter.files, partial(zadapter.plan, by="a")):
            with pytest.raises(UsageError, match="where= holds"):
                call(table, where=where, backend="parquet", spark=spark)
        with pytest.raises(UsageError, match="where= holds"):
            zadapter.delete(table, where, backend="parquet", spark=spark)


def test_what_is_no_condition_table_or_frame_is_named(lake, spark):
    table = lake.make(spark.range(10).selectExpr("id AS a"), files=1)

    for wrong in (5, None):
        with pytest.raises(UsageError, match="where= "):
            zadapter.delete(table, wrong, backend="parquet", spark=spark)
        with pytest.raises(UsageError, match="is no table"):
            zadapter.read(wrong, backend="parquet", spark=spark)
        with pytest.raises(UsageError, match="rows are a DataFrame"):
            zadapter.append(table, wrong, backend="parquet", spark=spark)
    with pytest.raises(UsageError, match="where= takes SQL"):
        zadapter.files(table, where=True, backend="parquet", spark=spark)
    with pytest.raises(UsageError, match="is no table"):
        zadapter.delete("", "true", backend="parquet", spark=spark)
