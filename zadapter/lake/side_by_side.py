"""Calls for several tables of a lake, side by side."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Protocol, TypeVar

from pyspark.sql import SparkSession

from zadapter.base.interrupts import POLL, Watch
from zadapter.base.outcome import stating
from zadapter.base.translate_errors import translate_errors
from zadapter.spark.jvm.gateway import has_own_threads, scala_context

LOGGER = logging.getLogger("zadapter.lake")


class Named(Protocol):
    """What has the name of a table."""

    @property
    def table(self) -> str:
        """Path or identifier."""


T = TypeVar("T", bound=Named)
R = TypeVar("R")


def run_side_by_side(
    spark: SparkSession,
    tables: Sequence[T],
    work: Callable[[T], R],
    *,
    concurrent: int,
    watch: Watch,
) -> list[R | Exception | None]:
    """Return results or errors of calls in threads, in the order of the tables; None: not run.

    Args:
        spark: A session; threads have the local properties of the caller.
        tables: The tables.
        work: The call.
        concurrent: Number of tables side by side.
        watch: After a signal that it has noted, no call starts. Those under way end first.
    """
    if not has_own_threads(spark):
        if concurrent > 1 and len(tables) > 1:
            LOGGER.warning(
                "tables run one after another without PySpark's pinned threads; unset "
                "PYSPARK_PIN_THREAD"
            )
        return [None if watch.is_ending else _attempt(work, table) for table in tables]
    properties = scala_context(spark.sparkContext).getLocalProperties()

    def attempt(table: T) -> R | Exception | None:
        # the caller's group and pool are those of the thread's jobs, too
        scala_context(spark.sparkContext).setLocalProperties(properties.clone())
        return _attempt(work, table)

    with ThreadPoolExecutor(concurrent) as pool:
        futures = [pool.submit(copy_context().run, attempt, table) for table in tables]
        try:
            while wait(futures, POLL).not_done and not watch.is_ending:
                pass
        finally:
            under_way = [each for each in futures if not (each.cancel() or each.done())]
            if under_way:
                LOGGER.warning(
                    "the run ends after what is under way; tables under way: %d", len(under_way)
                )
    return [None if each.cancelled() else each.result() for each in futures]


def _attempt(work: Callable[[T], R], table: T) -> R | Exception:
    try:
        with stating(), translate_errors(table.table):
            return work(table)
    except Exception as error:  # noqa: BLE001 - a failure stays with its table
        return error
