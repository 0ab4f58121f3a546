"""``explain``: which files a condition reads, and why."""

from os import PathLike

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.api.analyze import SAMPLE_FILES, check_sample
from zadapter.backend.contract import Factory
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import UsageError
from zadapter.inspection.conjuncts import conjunct_facts, explain_files
from zadapter.inspection.explanation import Explanation, with_engine
from zadapter.inspection.measure.engine import ask
from zadapter.inspection.measure.table_access import Opened, opening
from zadapter.inspection.reads import GroupsRead, totals
from zadapter.planning.options import check_flags, check_table, check_where
from zadapter.predicates.predicate import Predicate
from zadapter.predicates.predicate import columns as columns_of
from zadapter.predicates.pruning import matching
from zadapter.spark.footer_reader import read_row_group_table
from zadapter.table.file_stats import row_counts, spread


@translates_errors
def explain(
    table: str | PathLike[str],
    where: str,
    *,
    row_groups: bool = False,
    sample_files: int = SAMPLE_FILES,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> Explanation:
    """Report which files of *table* a query with the condition *where* reads, and why.

    Example:
        ```python
        explanation = zadapter.explain("lake/events", "user_id < 1000")
        print(explanation)
        ```

    Args:
        table: A path or an identifier.
        where: A condition in Spark SQL.
        row_groups: Also read footers, and count the row groups that may contain matching rows.
        sample_files: Maximum number of files whose footers are read.
        backend: The format, or a backend's class. Detected by default.
        spark: A Spark session. Defaults to the running session, or a new one.

    Returns:
        Each file with the reason why it is kept or skipped, the files that bounds allow to skip,
        and the files that Spark plans to read.

    Raises:
        UsageError: The table or a column does not exist, or the condition is invalid.
    """
    check_where(where)
    if where is None:
        raise UsageError("where= is missing; pass a condition in Spark's SQL")
    check_flags(row_groups=row_groups)
    check_sample(sample_files)
    with opening("explain", check_table(table), backend, spark) as opened:
        predicate = opened.condition(where).predicate
        columns = tuple(sorted(columns_of(predicate)))
        files = opened.backend.files(opened.snapshot, columns)
        found = explain_files(predicate, files)
        kept = files.filter(found["kept"])
        planned = ask(opened, where, files, found)
        return Explanation(
            table=opened.snapshot.table,
            format=opened.snapshot.format,
            version=opened.snapshot.version,
            where=where,
            totals=totals(files),
            kept=totals(kept),
            parts=conjunct_facts(predicate, files),
            row_groups=_groups(opened, kept, predicate, sample_files) if row_groups else None,
            engine=planned.read,
            boxes=files,
            files=with_engine(found, planned.mask),
        )


def _groups(opened: Opened, kept: pa.Table, predicate: Predicate, count: int) -> GroupsRead:
    """Read footers of kept files, and count the row groups that may hold matching rows."""
    picked = spread(kept, count)
    columns = tuple(columns_of(predicate))
    table = read_row_group_table(
        opened.session, opened.snapshot, picked, opened.uris(picked), columns
    ).table
    may = matching(predicate, table)
    return GroupsRead(
        files=picked.num_rows,
        of=kept.num_rows,
        kept=int(may.sum()),
        row_groups=table.num_rows,
        rows=int(row_counts(table)[np.flatnonzero(may)].sum()),
    )
