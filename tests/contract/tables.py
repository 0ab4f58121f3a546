"""Tables that the tests of the contract make, and changes of them."""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from zadapter.backend.contract import Backend
from zadapter.layout.build import fit
from zadapter.layout.layout import Layout, Request
from zadapter.rewrite.verify import stage_and_check
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Change, Exchange, Operation, Snapshot

ROWS = 1_000
_numbers = count()


def one_file_layout() -> Layout:
    """Return a layout with all rows in one file, in the order of column ``a``."""
    request = Request(columns=(("a",),), weights=(1.0,), target_file_size=1 << 20, row_groups=2)
    sample = pa.array(range(0, ROWS, 10), pa.int64())
    return fit(request, [sample], [()], np.zeros(len(sample), np.int64), [1])


def rewrite_of(
    spark: SparkSession,
    backend: Backend,
    snapshot: Snapshot,
    files: pa.Table,
    encoding: Encoding | None = None,
) -> Change:
    """Stage the rows of *files* as one file, and return the rewrite that commits it."""
    layout, encoding = one_file_layout(), encoding or Encoding()
    rows = backend.read(snapshot, files).coalesce(1)
    staged_files = stage_and_check(
        backend, snapshot, backend.write(snapshot, rows, layout, encoding), spark
    )
    exchange = Exchange(removed=files, added=staged_files.files)
    return Change(
        base=snapshot,
        operation=Operation.OPTIMIZE,
        exchanges=(exchange,),
        staged=(staged_files,),
        layouts=(layout,),
    )


class Tables:
    """What the tests of a format have to provide. The methods must not use zadapter."""

    def make(self, spark: SparkSession, name: str, rows: DataFrame) -> str:
        """Create a table with one file per partition of *rows*; return its path or identifier."""
        raise NotImplementedError

    def append(self, spark: SparkSession, table: str, rows: DataFrame) -> None:
        """Append *rows* to *table*."""
        raise NotImplementedError

    def rows_behind(self, spark: SparkSession, table: str) -> Sequence[Any]:
        """Return all rows of *table*, sorted as :func:`sort_rows` does."""
        raise NotImplementedError

    @pytest.fixture
    def table(self, spark: SparkSession) -> str:
        """Create a table of 1 000 rows in four files, with columns a (bigint) and b (string)."""
        return self.make(spark, new_name(), rows_of(spark, ROWS).repartition(4))


def new_name() -> str:
    """Return a name that no other table has."""
    return f"contract{next(_numbers)}"


def rows_of(spark: SparkSession, count: int) -> DataFrame:
    """Return rows with the distinct integers below *count*, and a text that may be null."""
    return spark.range(count).selectExpr("id a", "nullif(concat('v', id % 7), 'v3') b")


def more_rows(spark: SparkSession) -> DataFrame:
    """Return five rows that the table of the fixture lacks."""
    return spark.range(ROWS, ROWS + 5).selectExpr("id a", "'new' b")


def sort_rows(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Return rows as sorted tuples, nulls last."""
    return sorted(map(tuple, rows), key=lambda row: [(value is None, value) for value in row])
