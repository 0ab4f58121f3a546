"""Rows of Spark on the driver, in parts: each part is the result of a job of its own.

``DataFrame.toArrow`` is one job, and ``spark.driver.maxResultSize`` (1 GB) limits the result of a
job. So are the rows that the driver's JVM has in memory at a time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark import util
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame

from zadapter.spark.compat.spark_api import arrow_schema, has_large_types, to_arrow
from zadapter.spark.jvm.java_classes import java_classes

AT_ONCE = 200_000
"""Rows that one job returns without another look at their size, and those of the first part."""
A_PART = 64 << 20
"""Bytes of a part, if one partition of the rows has no more."""


def arrow_parts(rows: DataFrame, expected: int) -> Iterator[pa.Table]:
    """Yield *rows* as Arrow tables, at least one, in their order.

    Args:
        rows: The rows. Partitions are computed one by one, so they must not need a shuffle.
        expected: About how many rows there are. A few are returned by one job.
    """
    if expected <= AT_ONCE:
        yield to_arrow(rows)
        return
    schema, java = _schema(rows), _java(rows)
    count, start = int(java.getNumPartitions()), 0
    taken = max(1, count * AT_ONCE // expected)
    yield schema.empty_table()
    while start < count:
        stop = min(count, start + taken)
        batches = list(_batches(rows, java, range(start, stop)))
        size = sum(map(len, batches))
        messages = (pa.ipc.read_record_batch(pa.py_buffer(each), schema) for each in batches)
        yield pa.Table.from_batches(list(messages), schema)
        start, taken = stop, max(1, (stop - start) * A_PART // max(1, size))


def _schema(rows: DataFrame) -> pa.Schema:
    """Return the schema of Spark's batches."""
    return arrow_schema(rows, large=has_large_types(rows.sparkSession))


def _java(rows: DataFrame) -> Any:
    """Return an RDD of the rows as Arrow's messages, a batch each."""
    plain: Any = rows
    return plain._jdf.toArrowBatchRdd().toJavaRDD()  # noqa: SLF001 - no public door


def _batches(rows: DataFrame, java: Any, partitions: range) -> Iterator[bytes]:
    """Yield the batches of some partitions, which one job computes."""
    spark: Any = rows.sparkSession
    jvm, context = java_classes(spark), spark._jsc.sc()  # noqa: SLF001
    numbers = jvm.java.util.ArrayList()
    for number in partitions:
        numbers.add(number)
    with _settings(spark):
        socket = jvm.PythonRDD.runJob(context, java, numbers)
    yield from _messages(socket)


def serve(spark: Any, items: Any) -> Iterator[bytes]:
    """Yield arrays of bytes of a ``java.util.Iterator``, while a thread of the JVM goes on.

    They end early if the iterator throws an exception.
    """
    jvm = java_classes(spark)
    scala_items = jvm.scala.collection.JavaConverters.asScalaIterator(items)
    yield from _messages(jvm.PythonRDD.serveIterator(scala_items, "serve zadapter"))


def _messages(socket: Any) -> Iterator[bytes]:
    new = hasattr(util, "_load_from_socket")  # PySpark 4.0 and later
    loading: Any = util if new else import_module("pyspark.rdd")
    yield from loading._load_from_socket(socket, NoOpSerializer())  # noqa: SLF001


@contextmanager
def _settings(spark: Any) -> Iterator[None]:
    """Pass the session's settings to tasks, as each of Spark's queries does.

    See ``SQLExecution.withSQLConfPropagated``. A job of an RDD would have Spark's defaults.
    """
    context = spark._jsc.sc()  # noqa: SLF001 - no public door
    before = context.getLocalProperties()
    changed = before.clone()
    scala_map = spark._jsparkSession.sessionState().conf().getAllConfs()  # noqa: SLF001
    changed.putAll(java_classes(spark).scala.collection.JavaConverters.mapAsJavaMap(scala_map))
    context.setLocalProperties(changed)
    try:
        yield
    finally:
        context.setLocalProperties(before)
