"""Conditions that depend on the clock."""

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zadapter.base.key_types import DATE, TIMESTAMP, kind_of
from zadapter.spark.jvm.gateway import java_rows
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.spark_classes import column

JavaObject = Any
_WORDS = re.compile(r"""['"]\s*(now|today|tomorrow|yesterday)\b|\$\{""", re.IGNORECASE)
_TIMES = re.compile(r"""['"]\s*T?\d{1,2}:""", re.IGNORECASE)


def reads_clock(text: str, types: list[pa.DataType]) -> bool:
    """Return whether Spark may read a constant in a condition by the clock.

    Spark converts ``'now'``, ``'today'`` and times without a date, such as ``'12:00'``, when it
    parses or optimises a condition. The converted constants do not show that, and neither does the
    text where a variable is replaced.

    Args:
        text: The condition.
        types: Types of the columns that the condition references.
    """
    return bool(
        _WORDS.search(text)
        or (any(kind_of(type_) in {DATE, TIMESTAMP} for type_ in types) and _TIMES.search(text))
    )


def calls_clock(spark: SparkSession, tree: JavaObject) -> bool:
    """Return whether an analysed plan or expression calls a function such as ``current_date``."""
    jvm = java_classes(spark)
    return bool(
        tree.containsPattern(jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE())
    )


def without_clock(rows: DataFrame, analysed: JavaObject) -> DataFrame | None:
    """Filter rows by the conjuncts that do not call such functions.

    Args:
        rows: The rows that *analysed* filters.
        analysed: The analysed plan of the condition; None is returned if it is no plain filter.
    """
    if analysed.nodeName() != "Filter":
        return None
    jvm = java_classes(rows.sparkSession)
    java = java_rows(rows)
    for part in _conjuncts(analysed.condition()):
        if not calls_clock(rows.sparkSession, part):
            java = java.where(column(jvm, part))
    return DataFrame(java, rows.sparkSession)


def _conjuncts(expression: JavaObject) -> Iterator[JavaObject]:
    pending = [expression]
    while pending:
        part = pending.pop()
        if part.nodeName() == "And":
            pending += (part.right(), part.left())
        else:
            yield part
