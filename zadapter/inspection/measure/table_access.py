"""A table that is inspected: its backend, its version, and conditions on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zadapter.backend.contract import Backend, Factory
from zadapter.backend.row_files import RowFiles, row_files
from zadapter.base.key_types import is_key
from zadapter.base.names import NameParts, leaves
from zadapter.base.phases import phase
from zadapter.spark.jobs import call
from zadapter.spark.opening import open_table
from zadapter.spark.where import Condition, condition, without_rows
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A version of a table."""

    backend: Backend
    snapshot: Snapshot
    session: SparkSession
    """The caller's session, which evaluates conditions."""

    @property
    def rows(self) -> DataFrame:
        """The table's columns without rows, in the caller's session."""
        return without_rows(self.backend, self.snapshot, self.session)

    def condition(self, where: str) -> Condition:
        """Analyse a condition, with the errors of ``zadapter.spark.where.condition``."""
        return condition(where, self.rows, self.snapshot.schema, later=False)

    def uris(self, files: pa.Table) -> list[str]:
        """Return the URIs of *files*."""
        return self.backend.uris(self.snapshot, files["path"].to_pylist())

    def row_files(self, files: pa.Table) -> RowFiles:
        """Return *files* by their names in rows."""
        return row_files(self.backend, self.snapshot, files["path"].to_pylist())

    @property
    def columns(self) -> dict[NameParts, pa.DataType]:
        """The columns that have an order, and are no partition columns."""
        partition = self.snapshot.partition
        return {
            parts: type_
            for parts, type_ in leaves(self.snapshot.schema)
            if is_key(type_) and parts[0] not in partition
        }


@contextmanager
def opening(
    function: str,
    table: str,
    backend: str | Factory | None,
    spark: SparkSession | None,
    *,
    work: str = "plan",
) -> Iterator[Opened]:
    """Open the current version of a table, within a call of a public function.

    Args:
        function: Name of the function.
        table: A path or an identifier.
        backend: The format, or a backend's class; None: detect it.
        spark: The caller's session.
        work: Name of the phase that the block is.
    """
    with (
        open_table(table, backend, spark) as found,
        call(function, table, found.user_session),
        phase(work, table) as step,
    ):
        snapshot = found.snapshot()
        step.note(version=snapshot.version)
        yield Opened(backend=found.backend, snapshot=snapshot, session=found.user_session)
