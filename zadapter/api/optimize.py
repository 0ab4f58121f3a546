"""``optimize`` and ``plan``: signatures and documentation; ``run_optimize`` has what they do."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from inspect import signature
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from pyspark.sql import SparkSession

from zadapter.api.run_optimize import run_optimize, run_plan
from zadapter.backend.contract import Factory
from zadapter.base.commit_attempts import Backoff
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import UsageError
from zadapter.inspection.querylog.sources import Queries
from zadapter.planning.cost import GivenPrices
from zadapter.planning.options import AUTO, MAX_REBASE, RENAMED, By, Options
from zadapter.planning.tiers import GivenTiers
from zadapter.report.optimize_report import Report
from zadapter.report.plan import Plan

P = ParamSpec("P")
R = TypeVar("R")


def _calling(run: Callable[[Options, Any, Any], R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that makes a signature a function.

    The arguments become :class:`~zadapter.planning.options.Options`, which check them. So no
    argument is passed on by name. A keyword that was renamed raises an error with the new name.

    Args:
        run: What the function does, with the options, the backend and the session.
    """

    def decorate(declared: Callable[P, R]) -> Callable[P, R]:
        expected = signature(declared)

        @wraps(declared)
        def function(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in kwargs.keys() & RENAMED.keys():
                raise UsageError(f"{old}= was renamed; pass {RENAMED[old]}=")
            try:
                given = expected.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise TypeError(f"{declared.__name__}(): {error}") from None
            backend, spark = given.pop("backend", None), given.pop("spark", None)
            return run(Options(**given), backend, spark)

        return function

    return decorate


@translates_errors
@_calling(run_optimize)
def optimize(  # noqa: PLR0913 - the public call, all by keyword
    table: str | PathLike[str],
    *,
    by: By | None = None,
    queries: Queries | None = None,
    bloom_filters: Sequence[str] | None = None,
    backend: str | Factory | None = None,
    where: str | None = None,
    curve: str = "adaptive",
    target_file_size: str | int = AUTO,
    row_groups: int = 16,
    max_job_bytes: str | int = "256GB",
    max_bytes: str | int | None = None,
    max_files: int | None = None,
    max_seconds: float | None = None,
    max_concurrent_jobs: int = 1,
    min_age: str | timedelta | None = None,
    tiers: GivenTiers | None = None,
    collect_stats: bool = False,
    force: bool = False,
    verify: str = "counts",
    max_rebase: float = MAX_REBASE,
    price: GivenPrices | None = None,
    backoff: Backoff | None = None,
    spark: SparkSession | None = None,
) -> Report:
    """Cluster *table* so that filters on *by* read fewer files and row groups.

    Example:
        ``zadapter.optimize("lake/events", by=["event_time", "user_id"])``

    Args:
        table: A path, ``delta.`path` ``, or an identifier in the session's catalog.
        by: Key columns, or their weights. Defaults to the table's; without any, it is compacted.
        queries: A query log, as for advise; by=auto takes the keys that suit it best.
        bloom_filters: Columns with a Bloom filter in each row group. Defaults to the table's.
        backend: ``"delta"``, ``"iceberg"``, ``"parquet"`` or a backend's class. Detected if None.
        where: A SQL condition. Files that cannot hold a matching row are not rewritten.
        curve: Shape of the layout: adaptive, zorder, hilbert or linear.
        target_file_size: Size of written files, such as 128MB; auto chooses it from the table.
        row_groups: Target number of row groups in a written file.
        max_job_bytes: Maximum bytes of a job; larger partitions are clustered box by box.
        max_bytes: Maximum bytes of the files that a call rewrites; the next call continues.
        max_files: Maximum number of files that a call rewrites; the next call continues.
        max_seconds: Time after which no further job starts; at least one job runs.
        max_concurrent_jobs: Number of jobs that run side by side; each needs memory of its own.
        min_age: Age, such as 10 minutes; younger files are skipped.
        tiers: Ages of a column's values: hot files are skipped, cold ones become larger.
        collect_stats: Collect stats of key columns that have none, by a table property.
        force: Fit new cuts, also to files that are clustered or predicted to gain nothing.
        verify: counts compares row counts; checksum all values, with one more read.
        max_rebase: Largest share of the rows of replaced files that may leave them during the call.
        price: Prices, such as put=0.005,core_hour=0.05; the report has the sum.
        backoff: Retry policy for commits that lose a race. Defaults to Backoff().
        spark: A classic Spark session. Defaults to the active session, or a new local one.

    Raises:
        ZadapterError: Its class says why, its attributes what was committed and whether to retry.
    """
    raise NotImplementedError  # `_calling` passes the arguments to run_optimize


@translates_errors
@_calling(run_plan)
def plan(  # noqa: PLR0913 - the public call, all by keyword
    table: str | PathLike[str],
    *,
    by: By | None = None,
    queries: Queries | None = None,
    bloom_filters: Sequence[str] | None = None,
    backend: str | Factory | None = None,
    where: str | None = None,
    curve: str = "adaptive",
    target_file_size: str | int = AUTO,
    row_groups: int = 16,
    max_job_bytes: str | int = "256GB",
    max_bytes: str | int | None = None,
    max_files: int | None = None,
    max_seconds: float | None = None,
    max_concurrent_jobs: int = 1,
    min_age: str | timedelta | None = None,
    tiers: GivenTiers | None = None,
    collect_stats: bool = False,
    force: bool = False,
    verify: str = "counts",
    max_rebase: float = MAX_REBASE,
    price: GivenPrices | None = None,
    spark: SparkSession | None = None,
) -> Plan:
    """Predict the effect of :func:`optimize` with the same arguments, and write nothing.

    Reads the table's log and a sample of the key columns. With ``collect_stats``, the prediction
    assumes that the stats exist, and changes no table property.

    Example:
        ```python
        plan = zadapter.plan("lake/events", by={"event_time": 2, "user_id": 1})
        if not plan.nothing_to_do:
            report = plan.run()
        ```

    Raises:
        UsageError: An argument is invalid for this table.
        SessionError: The Spark session, its jars or Java are not supported.
        UnsupportedError: The table uses a feature that zadapter cannot preserve.
        MissingStatsError: The table collects no stats for a key column.
    """
    raise NotImplementedError  # `_calling` passes the arguments to run_plan
