"""Rewrites among other writers: ``python -m integration.bench.writers``.

A table of lineitem is optimized alone, with one rival that deletes rows between its write and its
commit, and in a soak, where a rival commits every few seconds until the rewrites end. Lines appear
as soon as they are known. The rows are compared with those that the rivals leave.
"""

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import zadapter
from integration.bench.formats import CATALOG
from integration.bench.session import session
from integration.bench.tables.workloads import WORKLOADS
from zadapter import Backoff, Report
from zadapter.errors import ConflictError
from zadapter.spark.checksum import compute_totals
from zadapter_delta import DeltaBackend
from zadapter_iceberg import IcebergBackend

KEYS = ("l_shipdate", "l_partkey")
FILES = 8
SEED = 5
_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}


@dataclass(frozen=True)
class Kind:
    """A kind of table: its format, its properties, and settings of the rival's session."""

    name: str
    backend: Any
    properties: dict[str, str]
    settings: dict[str, str] = field(default_factory=dict)


KINDS = {
    each.name: each
    for each in (
        Kind("delta-vectors", DeltaBackend, {"delta.enableDeletionVectors": "true"}),
        Kind("delta-copies", DeltaBackend, {"delta.enableDeletionVectors": "false"}),
        Kind("iceberg-v2", IcebergBackend, {"format-version": "2", **_ON_READ}),
        Kind("iceberg-v3", IcebergBackend, {"format-version": "3", **_ON_READ}),
        Kind("iceberg-copies", IcebergBackend, {"format-version": "2"}),
    )
}


@dataclass(frozen=True)
class Table:
    """A table of one kind, in its state before the rewrite."""

    spark: SparkSession
    kind: Kind
    name: str

    @property
    def sql_name(self) -> str:
        """The name in statements."""
        return self.name if self.kind.backend is IcebergBackend else f"delta.`{self.name}`"

    def rows(self) -> DataFrame:
        """Return the rows as they are now."""
        if self.kind.backend is IcebergBackend:
            self.spark.sql(f"REFRESH TABLE {self.name}")
        return self.spark.sql(f"SELECT * FROM {self.sql_name}")

    def optimize(self, backend: Any = None, **options: Any) -> Report:
        """Cluster the table."""
        size = sum(self._sizes()) // FILES
        return zadapter.optimize(
            self.name,
            by=KEYS,
            backend=backend or self.kind.backend,
            target_file_size=size,
            spark=self.spark,
            **options,
        )

    def _sizes(self) -> list[int]:
        if self.kind.backend is IcebergBackend:
            files = self.spark.sql(f"SELECT file_size_in_bytes FROM {self.name}.files")
            return [int(row[0]) for row in files.collect()]
        return [path.stat().st_size for path in Path(self.name).glob("*.parquet")]


def make(spark: SparkSession, kind: Kind, data: DataFrame, folder: Path, number: int) -> Table:
    """Write a table of the kind with rows in no order."""
    rows = data.repartition(FILES)
    if kind.backend is IcebergBackend:
        name = f"{CATALOG}.db.t{number}"
        writer = rows.writeTo(name).using("iceberg")
        for key, value in kind.properties.items():
            writer = writer.tableProperty(key, value)
        writer.option("use-table-distribution-and-ordering", "false").create()
        return Table(spark, kind, name)
    path = folder / f"t{number}"
    shutil.rmtree(path, ignore_errors=True)
    rows.write.format("delta").options(**kind.properties).save(str(path))
    return Table(spark, kind, str(path))


def between(backend: Any, action: Callable[[], object]) -> Any:
    """Return a backend that runs *action* once, before the first commit of written files."""
    waiting = [action]

    class Interrupted(backend):  # type: ignore[misc]
        def commit(self, change: Any) -> int:
            while waiting:
                waiting.pop()()
            return int(super().commit(change))

    return Interrupted


def delete_scattered(table: Table) -> None:
    """Delete 1 % of the rows, in all files."""
    table.spark.sql(f"DELETE FROM {table.sql_name} WHERE l_orderkey % 100 = 7")


def delete_in_one_file(table: Table) -> None:
    """Delete some rows of one of the files, which is written again where the table says so."""
    file = "_file" if table.kind.backend is IcebergBackend else "_metadata.file_path"
    first = table.rows().selectExpr(f"{file} AS file", "l_orderkey", "l_linenumber").first()
    assert first is not None
    key = f"l_orderkey = {first.l_orderkey} AND l_linenumber = {first.l_linenumber}"
    table.spark.sql(f"DELETE FROM {table.sql_name} WHERE {key}")


RIVALS = {"1 % of the rows": delete_scattered, "one row of one file": delete_in_one_file}


@dataclass(frozen=True)
class Measured:
    """One rewrite."""

    committed: float
    """Share of the planned bytes that were committed."""
    seconds: float
    rebase: float
    same: bool
    """Whether the rows are those that were there before the commit."""

    def __str__(self) -> str:
        right = "rows right" if self.same else "ROWS WRONG"
        return (
            f"{self.committed:6.1%} of the bytes committed, {self.seconds:5.1f} s, "
            f"of it {self.rebase:4.1f} s for the rebase; {right}"
        )


def measure(table: Table, rival: Callable[[Table], None] | None, **options: Any) -> Measured:
    """Optimize a table, with a rival between the write and the commit."""
    expected = [] if rival else [compute_totals(table.rows())]
    away = [0.0]

    def act() -> None:
        start = time.monotonic()
        if rival is not None:
            rival(table)
            expected.append(compute_totals(table.rows()))
        away[0] = time.monotonic() - start

    backend, start = between(table.kind.backend, act), time.monotonic()
    try:
        report = table.optimize(backend, **options)
        committed = report.bytes_removed / max(report.plan.bytes_rewritten, 1)
        rebase = report.rebased.seconds if report.rebased else 0.0
    except ConflictError:
        committed = rebase = 0.0
    seconds = time.monotonic() - start - away[0]
    same = compute_totals(table.rows()) == expected[-1]
    return Measured(committed, seconds, rebase, same)


@dataclass
class Soak:
    """What a rival that commits again and again has seen."""

    landed: int = 0
    errors: list[str] = field(default_factory=list)


@contextmanager
def rivals(table: Table, seconds: float) -> Iterator[Soak]:
    """Delete, update and merge a few rows of one file every few seconds, in a thread."""
    soak, stop = Soak(), threading.Event()
    spark = table.spark.newSession()
    draw = Random(SEED)

    def change() -> None:
        at, name = draw.randrange(1_000), table.sql_name
        where = f"l_orderkey % 1000 = {at} AND l_linenumber = 1"
        merge = f"MERGE INTO {name} USING (SELECT {at} k) ON l_linenumber = 1 AND l_orderkey % 1000"
        statements = [
            f"DELETE FROM {name} WHERE {where}",
            f"UPDATE {name} SET l_comment = 'seen' WHERE {where}",
            f"{merge} = k WHEN MATCHED THEN DELETE",
        ]
        try:
            spark.sql(draw.choice(statements)).collect()
            soak.landed += 1
        except Exception as error:  # noqa: BLE001 - the rival's own loss is counted
            soak.errors.append(str(error).splitlines()[0][:160])

    def work() -> None:
        while not stop.wait(seconds):
            change()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield soak
    finally:
        stop.set()
        thread.join()


def soak(table: Table, every: float, rounds: int) -> str:
    """Rewrite a table several times among rivals, and return what became of both."""
    planned = committed = 0
    start = time.monotonic()
    with rivals(table, every) as seen:
        for _ in range(rounds):
            with suppress(ConflictError):
                report = table.optimize(force=True, backoff=Backoff(attempts=12, initial=0.1))
                planned += report.plan.bytes_rewritten
                committed += report.bytes_removed
    seconds = time.monotonic() - start
    failed = len(seen.errors)
    return (
        f"{committed / max(planned, 1):6.1%} of the bytes committed by {rounds} rewrites in "
        f"{seconds:.0f} s; {failed} of {seen.landed + failed} commits of the rival failed"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser(prog="python -m integration.bench.writers")
    parser.add_argument("--scale", type=float, default=0.1, help="1: 6 million rows")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between rival commits")
    parser.add_argument("--rounds", type=int, default=6, help="rewrites of a soak; 0: no soak")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder)
        source = WORKLOADS["lineitem"].data(folder, options.scale)
        data = spark.read.parquet(str(source))
        with suppress(Exception):
            spark.sql(f"CREATE NAMESPACE {CATALOG}.db")
        number = 0

        def table(kind: Kind) -> Table:
            nonlocal number
            number += 1
            return make(spark, kind, data, folder, number)

        for kind in (KINDS[each] for each in options.kinds.split(",")):
            for act in (None, *RIVALS.values()):  # the first ones of a session are slower
                measure(table(kind), act)
            print(f"{kind.name:15} no rival:             {measure(table(kind), None)}", flush=True)
            for rival, act in RIVALS.items():
                found = measure(table(kind), act)
                print(f"{kind.name:15} {rival:21} {found}", flush=True)
            if options.rounds:
                print(
                    f"{kind.name:15} soak: {soak(table(kind), options.every, options.rounds)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
