"""Entries of a log, grouped: identical texts are one group, and are planned once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.quantities import MOST_WEIGHT
from zadapter.errors import UsageError
from zadapter.inspection.query_log import SLICES
from zadapter.spark.compat.spark_api import to_arrow

MOST = 10_000
"""Maximum number of distinct groups that are planned; the heaviest are."""
SURPLUS = f"the log has more than {MOST:,} distinct queries; only the heaviest are planned"
NO_TEXT = "no text"
OTHER_TABLE = "another table"
NO_WEIGHT = f"a weight that is not a number above 0 and up to {MOST_WEIGHT:g}"
SCANS = """array<struct<`table`: string, location: string, partition: string, pushed: string,
described: string, expression: string>>"""
"""Type of the column of scans, whose fields are those of :class:`Scan`."""
_PRECISION = 0.001
"""By how much the rank of a part's border may be off, as a share of the entries."""
_SLICE = "slice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A scan that an engine reported, with filters in the engine's own notation."""

    table: str = ""
    """Name of the table; empty if unknown."""
    location: str = ""
    """Root of the scanned files; empty if unknown."""
    partition: str = ""
    """Partition filters of a file scan of Spark, as expressions."""
    pushed: str = ""
    """Filters of a file scan of Spark, as data source filters."""
    described: str = ""
    """Filters of Iceberg's scans in a plan of Spark."""
    expression: str = ""
    """Iceberg's expression in JSON."""


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """Entries with the same text and scans."""

    text: str
    """SQL of the query, or a condition; empty if the log has none."""
    scans: tuple[Scan, ...]
    """Scans of tables with this table's name; used if the text cannot be planned."""
    weights: tuple[float, ...]
    """Sum of the weights in each part of the log."""
    entries: int


@dataclass(frozen=True, slots=True)
class Grouped:
    """The entries of a log."""

    groups: Sequence[EntryGroup]
    unused: Mapping[str, int]
    """Entries in no group, by reason."""
    days: float | None = None
    """Days that the log covers; None if it is unknown, or its weights are no numbers of queries."""
    queries_a_weight: float = 1.0
    """Number of queries that a weight of 1 stands for, at least."""


def group_texts(texts: Sequence[tuple[str, float]]) -> Grouped:
    """Group texts with weights that are in the order of time."""
    found: dict[str, tuple[list[float], list[int]]] = {}
    blank = 0
    for number, (text, weight) in enumerate(texts):
        if not text.strip():
            blank += 1
            continue
        weights, entries = found.setdefault(text.strip(), ([0.0] * SLICES, []))
        weights[number * SLICES // len(texts)] += weight
        entries.append(number)
    groups = [EntryGroup(text, (), tuple(w), len(at)) for text, (w, at) in found.items()]
    groups.sort(key=lambda group: -sum(group.weights))
    surplus = sum(group.entries for group in groups[MOST:])
    return Grouped(groups[:MOST], {NO_TEXT: blank, SURPLUS: surplus})


def group_rows(rows: DataFrame, shown: str, blank: str = NO_TEXT) -> Grouped:
    """Group the rows of a log, within Spark.

    Args:
        rows: Columns ``text``, ``scans``, ``weight`` and ``moment``, a number that orders them;
            where it is null everywhere, rows are in the order of time. And ``second``, the same as
            seconds since 1970; null if ``moment`` is no time, or ``weight`` no number of queries.
        shown: The log, as messages name it.
        blank: Reason why entries without text and scans are not used.

    Raises:
        UsageError: There are no rows.
    """
    weight = F.col("weight")
    is_heavy = weight.isNotNull() & (weight > 0) & (weight <= MOST_WEIGHT)
    is_blank = (F.trim("text") == "") & (F.size("scans") == 0)
    numbered = rows.withColumns(
        {
            "reason": F.when(~is_heavy, NO_WEIGHT).when(is_blank, blank),
            "place": F.monotonically_increasing_id().cast("double"),
        }
    ).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        counts = numbered.groupBy("reason").agg(
            F.count("*").alias("entries"),
            (F.max("second") - F.min("second")).alias("seconds"),
            F.approx_count_distinct("second").alias("times"),
        )
        found = {row["reason"]: row for row in counts.collect()}
        if not found:
            raise UsageError(
                f"{shown} is an empty log; pass one with queries of this table: SQL, CSV, Parquet, "
                "lines of JSON, Spark's event log, or scan reports of Iceberg"
            )
        days = _days(found[None]["seconds"], found[None]["times"]) if None in found else None
        reasons = {reason: row["entries"] for reason, row in found.items()}
        usable = reasons.pop(None, 0)
        groups = _heaviest(numbered.where("reason IS NULL")) if usable else []
    finally:
        numbered.unpersist()
    surplus = usable - sum(group.entries for group in groups)
    entries = sum(group.entries for group in groups)
    weight_of_all = fsum(fsum(group.weights) for group in groups)
    # where weights may be seconds, an entry is one query
    queries = min(1.0, entries / weight_of_all) if groups and days is None else 1.0
    return Grouped(groups, {**reasons, SURPLUS: surplus}, days, queries)


def _days(seconds: float | None, times: int) -> float | None:
    """Return the days that a log covers.

    Args:
        seconds: Seconds between its first and its last entry.
        times: Number of different times. Between them lies one interval less than the log covers:
            dates of a week are six days apart.
    """
    return seconds / 86_400 * times / (times - 1) if seconds and times > 1 else None


def _heaviest(rows: DataFrame) -> list[EntryGroup]:
    """Return the heaviest groups; equally heavy ones are chosen at random, not by their time."""
    sums = [
        F.sum(F.when(F.col(_SLICE) == at, F.col("weight")).otherwise(0.0)).alias(f"w{at}")
        for at in range(SLICES)
    ]
    grouped = (
        rows.withColumn(_SLICE, _part(rows))
        .groupBy("text", "scans")
        .agg(F.count("*").alias("entries"), F.sum("weight").alias("total"), *sums)
        .orderBy(F.desc("total"), F.xxhash64("text", "scans"))
        .limit(MOST)
    )
    return [
        EntryGroup(
            row["text"],
            tuple(Scan(**scan) for scan in row["scans"]),
            tuple(row[f"w{at}"] for at in range(SLICES)),
            row["entries"],
        )
        for row in to_arrow(grouped).to_pylist()
    ]


def _part(rows: DataFrame) -> Column:
    """Return an expression for the part of the log that a row lies in."""
    shares = [at / SLICES for at in range(1, SLICES)]
    moments, places = rows.approxQuantile(["moment", "place"], [0.0, *shares, 1.0], _PRECISION)
    dated = bool(moments) and moments[0] < moments[-1]
    borders = (moments if dated else places)[1:-1]
    ordered = F.coalesce("moment", F.lit(borders[0])) if dated else F.col("place")
    part: Column = F.lit(0)
    for border in borders:
        part = part + (ordered > border).cast("int")
    return part
