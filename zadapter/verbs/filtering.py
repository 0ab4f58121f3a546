"""The caller's condition, as this session of Spark reads it."""

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from zadapter.errors import UsageError
from zadapter.predicates import Predicate
from zadapter.sql import parse
from zadapter.thrown import first_line

_TIMEZONE = "spark.sql.session.timeZone"
_READ_OTHERWISE = (
    ("spark.sql.variable.substitute", ("${",)),
    ("spark.sql.parser.escapedStringLiterals", ("\\",)),
    ("spark.sql.ansi.doubleQuotedIdentifiers", ('"',)),
    ("spark.sql.legacy.consecutiveStringLiterals.enabled", ("''", '""')),
)
"""Settings, and what in a condition they give another meaning."""


def condition(where: str, schema: pa.Schema, spark: SparkSession) -> Predicate:
    """Return *where* as a predicate over the columns of *schema*.

    Raises:
        UsageError: It is no condition, or zadapter would take it for another one than Spark does.
    """
    if not isinstance(where, str):
        raise UsageError(f"where= takes SQL as text, not {where!r}")
    _refuse_other_meanings(where, spark)
    return parse(where, schema, timezone=spark.conf.get(_TIMEZONE) or "UTC")


def _refuse_other_meanings(where: str, spark: SparkSession) -> None:
    for setting, marks in _READ_OTHERWISE:
        mark = next((mark for mark in marks if mark in where), None)
        if mark is not None and spark.conf.get(setting) == "true":
            raise UsageError(
                f"where= holds {mark}, which Spark reads in a way of its own, since {setting} is "
                "true in this session; write the value itself, or set that to false"
            )
    # SqlBaseLexer.g4, SIMPLE_COMMENT
    if "--" in where and "\\\n" in where:
        raise UsageError(
            "where= holds a comment and a backslash at the end of a line, behind which Spark takes "
            "the next line for a comment, too; leave the comment out"
        )


def check_types(rows: DataFrame, where: str) -> None:
    """Have Spark look at the condition, without running it.

    Raises:
        UsageError: Spark would refuse it.
    """
    try:
        rows.where(where)
    except AnalysisException as error:
        raise UsageError(f"where: {first_line(error)}") from error
