"""``advise``: which key columns suit the queries of a log."""

from collections.abc import Sequence
from os import PathLike

from pyspark.sql import SparkSession

from zadapter.backend.contract import Factory
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import UsageError
from zadapter.inspection.advice import Advice
from zadapter.inspection.advise.choice import advise_on
from zadapter.inspection.measure.table_access import opening
from zadapter.inspection.query_log import HOLDOUT
from zadapter.inspection.querylog.sources import Queries
from zadapter.layout.filters import Keys
from zadapter.planning.options import By, Options, check_table


@translates_errors
def advise(
    table: str | PathLike[str],
    queries: Queries,
    *,
    candidates: Sequence[By] | None = None,
    holdout: float = HOLDOUT,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> Advice:
    """Predict which layout lets the queries of a log read least; write nothing.

    Layouts are learned from the older part of the log, and judged by the newer part. The rows that
    queries read are predicted from a sample.

    Example:
        ```python
        advice = zadapter.advise("lake/events", ["user_id = 7", "page = 'a'"])
        print(advice.best)
        ```

    Args:
        table: A path or an identifier.
        queries: A query log: a list of queries or conditions, oldest first; a list of pairs of such
            a text and a weight; a path; or a DataFrame with a column of texts. A path is a ``.sql``
            file, a CSV or Parquet file with a column of texts, lines of JSON with a key ``sql``,
            Spark's event log, or scan reports of Iceberg. Spark plans the queries and runs none.
        candidates: Further key columns to compare, each as ``by`` of :func:`zadapter.optimize`,
            such as ``[["event_time"]]``.
        holdout: Share of the log that layouts are judged by.
        backend: The format, or a backend's class. Detected by default.
        spark: A Spark session, whose views and catalogs the queries refer to. Defaults to the
            running session, or a new one.

    Raises:
        UsageError: The table does not exist, the log is empty or invalid, or no query filters the
            table by a column that can be a key.
    """
    if isinstance(candidates, str):
        raise UsageError(f"candidates= must be a list of key columns, not {candidates!r}")
    if not 0 < holdout < 1:
        raise UsageError(f"holdout= must be a share between 0 and 1, not {holdout!r}")
    asked = [
        Options(table=table, by=[by] if isinstance(by, str) else by) for by in candidates or ()
    ]
    with opening("advise", check_table(table), backend, spark, work="weigh") as opened:
        by_name = {
            f"candidate {number}": Keys(options.weights, options.filters)
            for number, options in enumerate(asked, 1)
        }
        return advise_on(opened, queries, Options(table=table), asked=by_name, holdout=holdout)
