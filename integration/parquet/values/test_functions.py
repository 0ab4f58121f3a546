"""Functions of the user's own, under names of Spark's own."""

import pytest

import zadapter
from integration.parquet.lake import live
from zadapter import errors

TAKEN = {
    "isnull(a)": "isnull",
    "NOT isNotNull(a)": "isnotnull",
    "startswith(b, 'v9')": "startswith",
    "bigint('5')": "bigint",
    "a IN (1, 2) AND exists(array(double(a)), x -> isnan(x))": "isnan",
}


@pytest.fixture
def other(spark):
    """A session with functions of its own."""
    return spark.newSession()


def numbers(spark):
    return spark.range(4_000).selectExpr("id AS a", "concat('v', id % 97) AS b")


def test_a_function_that_is_not_sparks_is_refused(lake, spark):
    """Where zadapter writes, Spark's own would be called; where it reads, the user's is."""
    table = lake.make(numbers(spark))
    lake.optimize(table, by="b")

    for where, name in TAKEN.items():
        other = spark.newSession()
        other.udf.register(name, lambda *values: True, "boolean")
        with pytest.raises(
            errors.UsageError, match=f"(?i){name}.*a function of this session replaces"
        ):
            zadapter.delete(table, where=where, spark=other)
        if "->" not in where:  # Spark runs no Python within lambdas
            asked = zadapter.read(table, where=where, spark=other)
            assert asked.count() == zadapter.read(table, spark=other).where(where).count()
        for verb in (zadapter.optimize, zadapter.plan):
            with pytest.raises(errors.UsageError, match="under another name"):
                verb(table, by="b", where=where, spark=other)

    assert live(table).num_rows == 4_000


@pytest.mark.slow
def test_an_operator_is_no_call(lake, spark, other):
    """What it is written with stays Spark's own."""
    table = lake.make(numbers(spark))
    lake.optimize(table)
    other.udf.register("isnull", lambda value: True, "boolean")

    assert zadapter.read(table, where="a IS NULL", spark=other).count() == 0
    assert zadapter.delete(table, "a IS NULL OR a = 3", spark=other).rows_deleted == 1


def test_a_function_of_another_name_is_called(lake, spark, other):
    """It excludes no file, and decides about rows."""
    table = lake.make(numbers(spark))
    lake.optimize(table)
    other.udf.register("mine", lambda value: value == 5, "boolean")

    assert zadapter.read(table, where="mine(a)", spark=other).count() == 1
    assert zadapter.delete(table, "mine(a) AND isnotnull(a)", spark=other).rows_deleted == 1
    assert 5 not in live(table)["a"].to_pylist()


@pytest.mark.slow
def test_zadapter_calls_sparks_own_functions(lake, spark, other):
    """Operators are functions, too: whatever the session calls by their names, rows stay."""
    rows = numbers(spark).selectExpr("*", "int(a % 3) AS p", "double(a) AS f")
    table = lake.make(rows, "p")
    before = lake.read(table)
    for name in ("coalesce", "hex", "get", "isnull", "regexp_replace", "concat", "count_if", "not"):
        other.udf.register(name, lambda *values: None, "string")

    zadapter.optimize(table, by=["b", "f"], backend="parquet", target_file_size="9KB", spark=other)
    assert lake.read(table) == before
    assert zadapter.read(table, where="a < 40 AND p = 1", spark=other).count() == 13
    assert zadapter.delete(table, "a < 40 AND p = 1", spark=other).rows_deleted == 13
    assert len(lake.read(table)) == len(before) - 13
