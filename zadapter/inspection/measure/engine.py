"""What Spark plans to read of a table, beside what bounds allow."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from zadapter.backend.contract import is_inspected
from zadapter.base.interrupts import reraise
from zadapter.base.java_errors import first_line_of
from zadapter.base.locations import path_of
from zadapter.base.translate_errors import texts
from zadapter.inspection.explanation import EngineRead, differences
from zadapter.inspection.measure.table_access import Opened
from zadapter.inspection.reads import totals
from zadapter.spark.clone import to_rows
from zadapter.spark.jvm.gateway import analyzed_plan
from zadapter.spark.jvm.spark_classes import leaves_of
from zadapter.table.column_bounds import Mask

MOST_FILES = 50_000
"""Number of files above which Spark's plan is not asked: each file of a plan costs a call."""
_OPENS = (
    "Spark's Parquet reader excludes files by partition only; it opens each file and skips row "
    "groups by their bounds"
)
_OTHER_STATS = "the engine uses fewer kinds of conditions, or fewer stats, than zadapter"


class Planned(NamedTuple):
    """The engine's choice of files."""

    read: EngineRead
    mask: Mask | None
    """Which files it reads; None if it is unknown."""


def ask(opened: Opened, where: str, files: pa.Table, explained: pa.Table) -> Planned:
    """Ask Spark to plan a query with the condition, and compare its files.

    Args:
        opened: The table.
        where: The condition.
        files: The file table.
        explained: The same files, explained by their bounds.
    """
    if not is_inspected(opened.backend):
        return _without_plan(
            f"the backend of {opened.snapshot.format} does not tell what Spark plans"
        )
    if files.num_rows > MOST_FILES:
        return _without_plan(f"not asked, since the table has more than {MOST_FILES:,} files")
    try:
        plan = analyzed_plan(opened.backend.scan(opened.snapshot))
        rows = to_rows(opened.session, plan).where(where)
        found = {path_of(uri) for uri in opened.backend.list_scanned_files(rows)}
        operators = [str(leaf.nodeName()).strip() for leaf in leaves_of(rows)]
    except Exception as error:  # noqa: BLE001 - the rest of the explanation stands without it
        reraise(error)
        return _without_plan(f"Spark cannot plan the query: {first_line_of(texts(error)[-1])}")
    names = [path_of(uri) for uri in opened.uris(files)]
    mask = np.array([name in found for name in names], np.bool_)
    strange = len(found - set(names))
    note = f"{strange:,} files of the plan are not in this version" if strange else ""
    own = opened.backend.format.own_versions
    return Planned(
        EngineRead(
            name=", ".join(dict.fromkeys(operators)),
            read=totals(files.filter(pa.array(mask))),
            differences=differences(explained, mask, _OPENS if own else _OTHER_STATS),
            note=note,
        ),
        mask,
    )


def _without_plan(why: str) -> Planned:
    return Planned(EngineRead(name="", read=None, note=why), None)
