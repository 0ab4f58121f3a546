"""The caller's condition, as this session of Spark reads it."""

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from zadapter.errors import UsageError
from zadapter.predicates import Predicate
from zadapter.sql import parse
from zadapter.thrown import first_line
from zadapter.wordings import other_meaning

_TIMEZONE = "spark.sql.session.timeZone"


def condition(where: str, schema: pa.Schema, spark: SparkSession) -> Predicate:
    """Return *where* as a predicate over the columns of *schema*.

    Raises:
        UsageError: It is no condition, or zadapter would take it for another one than Spark does.
    """
    if not isinstance(where, str):
        raise UsageError(f"where= takes SQL as text, not {where!r}")
    if other := other_meaning(where, schema, lambda setting: str(spark.conf.get(setting))):
        raise UsageError(f"where= holds {other}")
    return parse(where, schema, timezone=spark.conf.get(_TIMEZONE) or "UTC")


def check_types(rows: DataFrame, where: str) -> None:
    """Have Spark look at the condition, without running it.

    Raises:
        UsageError: Spark would refuse it.
    """
    try:
        rows.where(where)
    except AnalysisException as error:
        raise UsageError(f"where: {first_line(error)}") from error
