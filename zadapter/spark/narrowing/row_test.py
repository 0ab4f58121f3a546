"""A self-test of narrowed rows: what a rewrite relies on beyond Spark's public functions.

A patch of Spark or a vendor's build may change how rows lie in memory. So with a release that the
tests do not list, once an application and its settings, a few rows of each kind of value are
shuffled, sorted and narrowed as those of a rewrite are, in tasks of Spark, and compared with values
that Python has computed. No file is read.
"""

import logging
from collections.abc import Sequence
from decimal import Decimal
from threading import Lock
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.interrupts import reraise
from zadapter.base.translate_errors import root_cause, texts
from zadapter.spark.compat.spark_api import repartition_by_id, to_arrow
from zadapter.spark.jvm.gateway import Py4JError, java_session
from zadapter.spark.narrowing.sort import sort_and_narrow

ROWS = 60
_FILES = 3
_STEP = 23
"""A generator of the numbers below ``_PRIME``: places are distinct, and in no order of the rows."""
_PRIME = 61
_COLUMNS = (
    "id AS number",
    "IF(id % 3 = 0, NULL, concat('text ', repeat(char(233), int(id)))) AS text",
    "id % 2 = 0 AS half",
    "double(id) / 4 AS quarter",
    "IF(id % 5 = 0, NULL, CAST(id AS DECIMAL(38, 2))) AS wide",
    "named_struct('a', id, 'b', array(id, NULL)) AS nested",
    "map(string(id), id) AS entries",
    "concat('part ', id % 4) AS part",
)
_ADDED = (
    "concat('computed ', id % 2) AS computed",
    f"int((id + 1) * {_STEP} % {_PRIME}) AS place",
    f"int(id % {_FILES}) AS file",
)
_ORDERS = (("place",), ("part", "computed", "place"))
"""By one integer, which Spark sorts by radix, and by columns that are kept and cut off."""
_COMPILED = "spark.sql.codegen."
_ADAPTIVE = "spark.sql.adaptive.enabled"
_CANCELLED = "cancelled"
_logger = logging.getLogger(__name__)
_found = dict[tuple[str, ...], str | None]()
"""What is wrong, by application and settings; None: nothing."""
_lock = Lock()


def failure(spark: SparkSession) -> str | None:
    """Return what is wrong with narrowed rows in a session, or None; test them if that is unknown.

    Args:
        spark: The session that rewrites.
    """
    key = _key(spark)
    with _lock:
        if key in _found:
            return _found[key]
        try:
            _found[key] = wrong = _test_rows(spark)
        except (Py4JError, PySparkException, TypeError, ValueError) as error:
            reraise(error)
            messages = texts(error)
            if any(_CANCELLED in text for text in messages):
                raise  # by the user
            wrong = root_cause(messages)  # it may pass the next time
    if wrong is not None:
        _logger.warning(
            "Spark %s failed the self-test of narrowed rows: %s; rows are placed by plain Spark "
            "operations and compared by a checksum, which reads them two more times",
            spark.version,
            wrong,
        )
    return wrong


def _key(spark: SparkSession) -> tuple[str, ...]:
    """Return the application, and the settings of a clone that change how rows are sorted.

    Other settings of a clone have their defaults (:mod:`zadapter.spark.clone`).
    """
    session: Any = spark
    conf = java_session(session).sessionState().conf()
    stated = str(conf.getAllConfs().mkString("\n")).splitlines()
    compiled = sorted(line for line in stated if line.startswith(_COMPILED))
    return str(spark.sparkContext.applicationId), str(spark.conf.get(_ADAPTIVE)), *compiled


def _test_rows(spark: SparkSession) -> str | None:
    """Return what is wrong with narrowed rows, or None."""
    rows = spark.range(0, ROWS, 1, 2).selectExpr(*_COLUMNS, *_ADDED)
    shuffled = repartition_by_id(rows, _FILES, F.col("file"))
    for order in _ORDERS:
        found = sort_and_narrow(shuffled, order, {"computed", "place", "file"})
        if isinstance(found, str):
            return found
        if _collect_rows(found) != expected_rows(order):
            return f"rows sorted by {', '.join(order)} differ"
    return None


def _collect_rows(rows: DataFrame) -> list[dict[str, Any]]:
    """Return rows as tasks of Spark read them, partition by partition."""
    return list(to_arrow(rows).to_pylist())


def expected_rows(order: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows in their order, by file first."""
    added = {
        number: {
            "file": number % _FILES,
            "computed": f"computed {number % 2}",
            "place": (number + 1) * _STEP % _PRIME,
        }
        for number in range(ROWS)
    }
    every = [(_row(number), added[number]) for number in range(ROWS)]
    every.sort(key=lambda each: [(each[0] | each[1])[name] for name in ("file", *order)])
    return [row for row, _ in every]


def _row(number: int) -> dict[str, Any]:
    return {
        "number": number,
        "text": None if number % 3 == 0 else "text " + chr(233) * number,
        "half": number % 2 == 0,
        "quarter": number / 4,
        "wide": None if number % 5 == 0 else Decimal(number),
        "nested": {"a": number, "b": [number, None]},
        "entries": [(str(number), number)],
        "part": f"part {number % 4}",
    }
