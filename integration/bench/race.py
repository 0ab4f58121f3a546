"""One race: a workload's table in one format, and all who rewrite it, in turn."""

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.bench.contenders import COPY, OURS
from integration.bench.effort import Effort, measured
from integration.bench.engines import by_duckdb, by_spark
from integration.bench.formats import FORMATS, Format
from integration.bench.shares import Shares, shares
from integration.bench.workloads import Workload


@dataclass
class Result:
    """What one contender has done to one table.

    Attributes:
        workload: Which one.
        format: Which one.
        contender: Who; "input" is the table before.
        columns: How many it was clustered by.
        rows: How many the table has.
        shares: What filters have to read.
        spark_seconds: Some of the filters as queries, by Spark.
        duckdb_seconds: The same, by DuckDB.
        efforts: One a round.
        predicted: Share of rows that zadapter predicted ranges to read; None: others predict none.
        found: Share of rows that zadapter found afterwards.
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
    """What all races of a run have in common.

    Attributes:
        spark: The session.
        folder: Where tables are made.
        scale: Of all tables; 1 is 6 million rows.
        files: How many files are to be written, where the workload does not say.
        repeat: Rounds, each in an order that is drawn.
        asked: So many filters are run as queries, too.
        only: Contenders to run; all if there are none.
    """

    spark: SparkSession
    folder: Path
    scale: float
    files: int
    repeat: int
    asked: int
    only: Sequence[str] = ()


def race(
    track: Track, workload: Workload, format_: str, step: Callable[[str], None]
) -> list[Result]:
    """Have all contenders rewrite the same table, in turn.

    Args:
        track: What all races have in common.
        workload: The table.
        format_: Its format.
        step: Told before each rewrite what it is.

    Returns:
        The results; none where nobody of those asked for knows the format.

    Raises:
        AssertionError: A contender's table answers otherwise than the input.
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
        return []
    start = _Judge(track, workload, made, conditions)
    found = {"input": start("input", made.base)}
    runs[COPY](made.fresh(COPY))  # so that the first one does not load the classes for all
    for number in range(track.repeat):
        for name in random.Random(number).sample(names, len(names)):
            step(f"{workload.name}, {format_}: {name}")
            table = made.fresh(name)
            effort = _effort(track, name, partial(runs[name], table))
            if effort is None:
                names.remove(name)
                continue
            if name not in found:
                found[name] = start(name, table)
            found[name].efforts.append(effort)
    if OURS in found:
        report = made.reports[0]
        found[OURS].predicted, found[OURS].found = report.plan.share_after, report.share_after
    return list(found.values())


def _effort(track: Track, name: str, rewrite: Callable[[], object]) -> Effort | None:
    """Return what a rewrite took; None: a peer failed, as with a type that it does not know."""
    try:
        return measured(track.spark, rewrite)
    except Exception as error:
        if name == OURS:
            raise
        warnings.warn(f"left out, since it failed: {name}: {error}", stacklevel=2)
        return None


def _in_order(rows: DataFrame, files: int) -> DataFrame:
    """Cut rows into so many partitions, as even as a sample tells, in the order they come in."""
    at = "position"
    rows = rows.withColumn(at, F.monotonically_increasing_id())
    return rows.repartitionByRange(files, at).sortWithinPartitions(at).drop(at)


class _Judge:
    """Looks at tables, and compares the answers of all with those of the first."""

    def __init__(
        self, track: Track, workload: Workload, made: Format, conditions: Sequence[str]
    ) -> None:
        self.track, self.workload, self.made, self.conditions = track, workload, made, conditions
        spread = np.linspace(0, len(conditions) - 1, min(track.asked, len(conditions)))
        self.asked = [conditions[int(at)] for at in spread]
        by_spark(made.read(made.base), self.asked)  # compiles them
        self.answers: list[int] | None = None

    def __call__(self, name: str, table: str) -> Result:
        live = self.made.live(table)
        spark_seconds, counts = by_spark(self.made.read(table), self.asked)
        duckdb_seconds, again = by_duckdb(live, self.asked)
        counts.append(self.made.read(table).count())
        self.answers = self.answers or counts
        assert counts == self.answers, f"{name}: {counts}, not {self.answers}"
        assert again == counts[:-1], f"{name}: {again} by DuckDB, not {counts[:-1]}"
        return Result(
            workload=self.workload.name,
            format=self.made.name,
            contender=name,
            columns=len(self.workload.keys),
            rows=counts[-1],
            shares=shares(live, self.conditions),
            spark_seconds=spark_seconds,
            duckdb_seconds=duckdb_seconds,
        )
