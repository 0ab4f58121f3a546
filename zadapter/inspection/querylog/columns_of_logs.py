"""Logs that are tables: which column has the texts, the weights and the times."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.names import quote
from zadapter.base.printable import listed
from zadapter.errors import UsageError
from zadapter.inspection.querylog.entries import SCANS

_TEXTS = ("sql", "query", "text", "query_text", "statement", "statement_text", "querytext")
_COUNT = "count"
_WEIGHTS = ("weight", _COUNT, "seconds")
_TIMES = (
    "time", "timestamp", "ts", "start_time", "query_start_time", "event_time", "started",
    "started_at", "created", "created_at", "executed_at", "date",
)  # fmt: skip
_DIGITS = r"^[+-]?[0-9]+([.][0-9]+)?$"
_TEMPORAL = (T.TimestampType, T.TimestampNTZType, T.DateType)


def entries_of(rows: DataFrame, shown: str) -> DataFrame:
    """Return the entries of a table of texts, in the form of ``querylog.entries``.

    Args:
        rows: A column ``sql``, ``query``, ``text``, ``query_text`` or ``statement``, or one column
            of texts; at will ``weight``, ``count`` or ``seconds``, and a time.
        shown: The log, as messages name it.

    Raises:
        UsageError: There is no column of texts.
    """
    names = rows.columns
    texts = [f.name for f in rows.schema.fields if isinstance(f.dataType, T.StringType)]
    text = _named(_TEXTS, texts)
    if text is None:
        others = [name for name in texts if name.lower() not in (*_WEIGHTS, *_TIMES)]
        if len(others) != 1:
            raise UsageError(
                f"{shown} has no column of texts among {listed(names) or 'no columns'}; name "
                f"it one of: {', '.join(_TEXTS)}"
            )
        text = others[0]
    weight = _named(_WEIGHTS, [name for name in names if name != text])
    moment, second = _times(rows, text)
    counts = weight is None or weight.lower() == _COUNT
    return rows.select(
        F.trim(F.coalesce(F.col(quote((text,))), F.lit(""))).alias("text"),
        F.expr(f"CAST(array() AS {SCANS})").alias("scans"),
        (F.lit(1.0) if weight is None else _number(weight)).alias("weight"),
        moment.alias("moment"),
        (second if counts else _no_number()).alias("second"),
    )


def _named(choices: tuple[str, ...], names: list[str]) -> str | None:
    """Return the first of *choices* that is a column's name, as it is spelled."""
    lowered = {name.lower(): name for name in names}
    return next((lowered[choice] for choice in choices if choice in lowered), None)


def _number(name: str) -> Column:
    return F.expr(f"try_cast({quote((name,))} AS double)")


def _times(rows: DataFrame, text: str) -> tuple[Column, Column]:
    """Return a number that orders the entries by time, and the same as seconds since 1970.

    Both are null where there is no time, seconds also where it is a number in an unknown unit.
    """
    temporal = [f.name for f in rows.schema.fields if isinstance(f.dataType, _TEMPORAL)]
    names = [name for name in rows.columns if name != text]
    name = _named(_TIMES, temporal) or (temporal[0] if len(temporal) == 1 else None)
    name = name or _named(_TIMES, names)
    if name is None:
        return _no_number(), _no_number()
    if isinstance(rows.schema[name].dataType, T.NumericType):
        return _number(name), _no_number()
    second = F.expr(f"CAST(try_cast({quote((name,))} AS timestamp) AS double)")
    if not isinstance(rows.schema[name].dataType, T.StringType):
        return second, second
    # a CSV file has texts alone, and Spark takes four to six digits for a year
    is_number = F.coalesce(F.trim(F.col(quote((name,)))).rlike(_DIGITS), F.lit(False))  # noqa: FBT003
    second = F.when(~is_number, second)
    return F.when(is_number, _number(name)).otherwise(second), second


def _no_number() -> Column:
    return F.lit(None).cast("double")
