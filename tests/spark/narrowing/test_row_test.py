"""The self-test of narrowed rows: what passes, what fails, and how often it is asked."""

import logging

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import functions as F

from zadapter.spark.clone import scratch
from zadapter.spark.narrowing import row_test, sort


@pytest.fixture(autouse=True)
def _unknown(monkeypatch):
    monkeypatch.setattr(row_test, "_found", {})


@pytest.fixture
def clone(spark):
    """A session as rewrites have it."""
    with scratch(spark) as made:
        yield made


def lines(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("compiled", ["true", "false"])
def test_the_rows_of_this_spark_pass(clone, compiled, caplog):
    """With code that Spark generates, and without."""
    clone.conf.set("spark.sql.codegen.wholeStage", compiled)

    assert row_test.failure(clone) is None
    assert lines(caplog) == []


def test_expected_rows_are_in_an_order_that_is_not_that_of_the_input():
    """Else a sort that does nothing would pass."""
    orders = [
        [row["number"] for row in row_test.expected_rows(order)]
        for order in row_test._ORDERS  # noqa: SLF001
    ]

    assert [sorted(order) for order in orders] == [list(range(row_test.ROWS))] * 2
    assert orders[0] != orders[1]
    assert all(order != sorted(order, key=lambda n: (n % 3, n)) for order in orders)


def shifted(jvm, exchange, at):
    """Read a column behind the kept ones where its neighbour is."""
    last = exchange.output().size() - 1
    return sort_by_ordinal(jvm, exchange, at - 1 if at == last else at + 1)


def swapped(rows, *_):
    """Read a field where another one is."""
    return rows.drop("computed", "place", "file").withColumn("nested", F.lit(None))


sort_by_ordinal = sort._by_ordinal  # noqa: SLF001
PLAIN = sort.sort_and_narrow
BROKEN = {
    "sort keys are elsewhere": (sort, "_by_ordinal", shifted, "rows sorted by place differ"),
    "values are elsewhere": (row_test, "sort_and_narrow", swapped, "rows sorted by place differ"),
    "a row is lost": (
        row_test, "sort_and_narrow", lambda *asked: PLAIN(*asked).limit(59),
        "rows sorted by place differ",
    ),
    "a row is doubled": (
        row_test, "sort_and_narrow", lambda *asked: PLAIN(*asked).union(PLAIN(*asked).limit(1)),
        "rows sorted by place differ",
    ),
    "an operator is a vendor's": (
        sort, "find_untested_operator", lambda _: "the operator com.example.Scan",
        "the operator com.example.Scan",
    ),
    "tasks fail": (
        row_test, "sort_and_narrow",
        lambda *asked: PLAIN(*asked).selectExpr("raise_error('index 9 should be below 8')"),
        "index 9 should be below 8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_what_a_spark_has_changed_is_noticed_and_said_once(clone, monkeypatch, caplog, broken):
    """The line says what is wrong, and what it costs."""
    module, name, replacement, says = BROKEN[broken]
    monkeypatch.setattr(module, name, replacement)

    found = row_test.failure(clone)

    assert says in found
    (line,) = lines(caplog)
    assert line == (
        f"Spark {clone.version} failed the self-test of narrowed rows: {found}; rows are placed by "
        "plain Spark operations and compared by a checksum, which reads them two more times"
    )


def test_a_class_that_is_gone_is_noticed(clone, monkeypatch):
    """It is what py4j says when a class of Spark has moved."""
    gone = TypeError("'JavaPackage' object is not callable")
    monkeypatch.setattr(row_test, "sort_and_narrow", raising(gone))

    assert "'JavaPackage' object is not callable" in row_test.failure(clone)


def raising(error):
    def raises(*_):
        raise error

    return raises


class SoftTimeLimit(Exception):  # noqa: N818 - its name there
    """As Celery raises it into whatever runs."""


@pytest.mark.parametrize("error", [SoftTimeLimit(), Py4JError("Job 3 cancelled by the user")])
def test_what_a_user_has_stopped_is_stopped(clone, monkeypatch, error):
    """It says nothing about Spark."""
    monkeypatch.setattr(row_test, "sort_and_narrow", raising(error))

    with pytest.raises(type(error)):
        row_test.failure(clone)


def test_it_runs_once_an_application_and_its_settings(spark, monkeypatch):
    """A second clone has what the first one has found; other compiled code is looked at again."""
    asked = []
    monkeypatch.setattr(row_test, "_test_rows", asked.append)

    for compiled in (None, None, "false", None):
        with scratch(spark) as clone:
            if compiled:
                clone.conf.set("spark.sql.codegen.wholeStage", compiled)
            for _ in range(2):
                assert row_test.failure(clone) is None

    assert len(asked) == 2
