"""Conditions in the JVM: relations without known rows to plan them over, and predicates."""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from zadapter.predicates import spark_tree
from zadapter.predicates.predicate import Predicate
from zadapter.spark.jvm.gateway import java_rows, java_session

JavaObject = Any
_SEPARATOR = "\0"


def unknown_rows(rows: DataFrame) -> DataFrame:
    """Return a relation with the columns of *rows*, whose rows the optimiser does not know.

    The contents of a table so do not simplify the conditions that are planned over it.
    """
    session = rows.sparkSession
    java: Any = java_session(session)
    no_rows = java.emptyDataFrame().queryExecution().toRdd()
    converted = java.internalCreateDataFrame(no_rows, java_rows(rows).schema(), False)  # noqa: FBT003
    return DataFrame(converted, session)


def predicate_of(condition: JavaObject, schema: pa.Schema) -> Predicate:
    """Convert an optimised Catalyst condition on columns of *schema* to a predicate."""
    return spark_tree.predicate(json.loads(condition.toJSON()), schema, _Expressions(condition))


@dataclass(frozen=True, slots=True)
class _Expressions:
    """Nodes of an expression tree in the JVM."""

    tree: JavaObject

    def value(self, number: int) -> Any:
        """Return the internal value of a literal."""
        return self.tree.apply(number).value()

    def members(self, number: int) -> tuple[list[str], bool] | None:
        """Return the non-null values of an ``InSet``, and whether it contains null.

        The values cross to Python as one string, since there may be a million of them. The result
        is None if a value contains the separator.
        """
        values = self.tree.apply(number).hset()
        has_null = bool(values.contains(None))
        if has_null:
            values = getattr(values, "$minus")(None)
        texts = str(values.mkString(_SEPARATOR)).split(_SEPARATOR)
        return (texts, has_null) if len(texts) == values.size() else None

    def escape(self, number: int) -> str:
        """Return the escape character of a ``Like``."""
        return str(self.tree.apply(number).escapeChar())

    def sql(self, number: int) -> str:
        """Return a node as SQL."""
        return str(self.tree.apply(number).sql())
