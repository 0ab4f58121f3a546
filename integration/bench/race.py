"""One race: a workload's table in one format, rewritten by each contender in turn."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.bench.contenders import CHECKED, COPY, NEW, OURS
from integration.bench.formats import FORMATS, Format
from integration.bench.measures.effort import Effort, measured
from integration.bench.measures.engines import by_duckdb, by_spark
from integration.bench.measures.shares import Shares, filters, shares
from integration.bench.tables.workloads import Workload
from zadapter.spark.checksum import RowTotals, add_totals, sum_by_file


@dataclass
class Result:
    """Result of one contender on one table.

    Attributes:
        workload: Name of the workload.
        format: Name of the format.
        contender: Name of the contender; "input" is the table before.
        columns: Number of key columns.
        rows: Number of rows.
        shares: Data that filters have to read.
        spark_seconds: Time of some filters as queries by Spark.
        duckdb_seconds: Time of the same queries by DuckDB.
        efforts: Cost of each round.
        predicted: Share of rows that zadapter predicted ranges to read; None for other contenders.
        found: Share of rows that zadapter reported after the rewrite.
    """

    workload: str
    format: str
    contender: str
    columns: int
    rows: int
    shares: Shares
    spark_seconds: float
    duckdb_seconds: float
    efforts: list[Effort] = field(default_factory=list)
    predicted: float | None = None
    found: float | None = None


@dataclass(frozen=True)
class Track:
    """Parameters that all races of a run share.

    Attributes:
        spark: The session.
        folder: Where tables are made.
        scale: Scale of all tables; 1 is 6 million rows.
        files: Number of files to write, unless the workload sets it.
        repeat: Number of rounds, each in a random order.
        asked: Number of filters that are also run as queries.
        only: Contenders to run; empty for all.
    """

    spark: SparkSession
    folder: Path
    scale: float
    files: int
    repeat: int
    asked: int
    only: Sequence[str] = ()


def race(
    track: Track,
    workload: Workload,
    format_: str,
    step: Callable[[str], None],
    tell: Callable[[str], None],
) -> tuple[list[Result], dict[str, str]]:
    """Let each contender rewrite the same table, in turn.

    Args:
        track: Parameters that all races share.
        workload: The table.
        format_: Format of the table.
        step: Called with a description before each rewrite.
        tell: Called with the figures of each rewrite, as soon as they are known.

    Returns:
        The results, empty if no selected contender supports the format; and the reasons of failed
        contenders by name, such as an unsupported type.

    Raises:
        AssertionError: A contender's table has other rows than the input, or starts from other
            files.
    """
    data = workload.data(track.folder, track.scale)
    conditions = workload.conditions(data)
    files = workload.files or track.files
    source = _in_order(track.spark.read.parquet(str(data)), files)
    place = track.folder / format_ / workload.name
    made = FORMATS[format_](track.spark, source, workload, place, files)
    runs = made.contenders()
    names = [name for name in runs if not track.only or name in track.only]
    if not names:
        return [], {}
    look = _Judge(track, workload, made, conditions)
    found, failed = {"input": look("input", made.base)}, dict[str, str]()
    runs[COPY](made.fresh(COPY))  # loads classes before the first measurement
    for number in range(track.repeat):
        for name in random.Random(number).sample(names, len(names)):
            step(f"{workload.name}, {format_}: {name}")
            table = made.fresh(name)
            assert name.startswith(NEW) or len(made.live(table)) == found["input"].shares.files
            effort = _effort(track, name, partial(runs[name], table), failed)
            if effort is None:
                names.remove(name)
                found.pop(name, None)
                continue
            if name not in found:
                found[name] = look(name, table)
            found[name].efforts.append(effort)
            read = found[name].shares
            tell(
                f"{workload.name}, {format_}, {name}, round {number + 1}: {effort.seconds:.1f} s, "
                f"{read.in_files.mean():.1%} of the rows to read by file, "
                f"{read.in_row_groups.mean():.1%} by row group"
            )
    if OURS in found:
        report = made.reports[0]
        found[OURS].predicted, found[OURS].found = report.plan.share_after, report.share_after
    return list(found.values()), failed


def _effort(
    track: Track, name: str, rewrite: Callable[[], object], failed: dict[str, str]
) -> Effort | None:
    """Return the cost of a rewrite, or record why a peer has failed."""
    try:
        return measured(track.spark, rewrite)
    except Exception as error:
        if name in (OURS, CHECKED, COPY):
            raise
        failed[name] = str(error).splitlines()[0]
        return None


def _in_order(rows: DataFrame, files: int) -> DataFrame:
    """Split the rows of numbered files, in order, into partitions of about equal size."""
    number = F.regexp_extract("_metadata.file_name", r"(\d+)\.parquet", 1).cast("int")
    at = {"part": number, "position": F.col("_metadata.row_index")}
    placed = rows.withColumns(at).repartitionByRange(files, *at).sortWithinPartitions(*at)
    return placed.drop(*at)


class _Judge:
    """Measures tables, and compares their rows and answers with those of the first."""

    def __init__(
        self, track: Track, workload: Workload, made: Format, conditions: Sequence[str]
    ) -> None:
        self.track, self.workload, self.made = track, workload, made
        self.filters = filters(made.read(made.base), conditions)
        spread = np.linspace(0, len(conditions) - 1, min(track.asked, len(conditions)))
        self.asked = [conditions[int(at)] for at in spread]
        by_spark(made.read(made.base), self.asked)  # compiles the queries
        by_duckdb(made.live(made.base), self.asked)  # files of the first table are cached, too
        self.held: tuple[RowTotals, list[int]] | None = None

    def __call__(self, name: str, table: str) -> Result:
        live = self.made.live(table)
        spark_seconds, counts = by_spark(self.made.read(table), self.asked)
        duckdb_seconds, again = by_duckdb(live, self.asked)
        rows = add_totals(list(sum_by_file(self.made.read(table), []).values()), 0)
        self.held = self.held or (rows, counts)
        assert (rows, counts) == self.held, f"{name}: {rows}, {counts}, not {self.held}"
        assert again == counts, f"{name}: {again} by DuckDB, not {counts}"
        return Result(
            workload=self.workload.name,
            format=self.made.name,
            contender=name,
            columns=len(self.workload.keys),
            rows=rows.rows,
            shares=shares(live, self.filters),
            spark_seconds=spark_seconds,
            duckdb_seconds=duckdb_seconds,
        )
