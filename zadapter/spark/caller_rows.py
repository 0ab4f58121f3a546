"""Rows that a caller passes, as rows of a table."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.names import quote
from zadapter.base.printable import abridge
from zadapter.errors import UsageError
from zadapter.spark.jvm.gateway import java_rows, java_session, query_execution


def attach_rows(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """Return *rows* as a DataFrame of *spark*; their own session still evaluates them."""
    evaluated = query_execution(rows).toRdd()
    session = java_session(spark)
    java = session.internalCreateDataFrame(evaluated, java_rows(rows).schema(), False)  # noqa: FBT003
    return DataFrame(java, spark)


def fitting(rows: DataFrame, like: DataFrame) -> DataFrame:
    """Return *rows* with the columns of *like*, in the same order.

    Raises:
        UsageError: *rows* has repeated columns, unknown columns, or columns of other types.
    """
    types = {field.name: field.dataType.simpleString() for field in like.schema}
    given = {field.name: field.dataType.simpleString() for field in rows.schema}
    if len(given) < len(rows.columns):
        raise UsageError(f"duplicate columns: {abridge(rows.columns)}; pass each column once")
    for name, type_ in given.items():
        if name not in types:
            raise UsageError(f"the table has no column {name!r}; available: {abridge(list(types))}")
        if type_ != types[name]:
            raise UsageError(f"column {name!r} is {type_}, but {types[name]} in the table; cast it")

    def column(name: str) -> Column:
        return F.col(quote((name,))) if name in given else F.lit(None).cast(types[name]).alias(name)

    return rows.select(*map(column, types))
