"""Proof that two tables are equal: rows, checksum, columns, and matches of filters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend.contract import Backend
from zadapter.backend.row_files import row_files
from zadapter.base.key_types import BINARY, kind_of, texts
from zadapter.base.names import NameParts, join, quote
from zadapter.base.quantities import show_count
from zadapter.base.ranks import rank
from zadapter.errors import VerificationError
from zadapter.layout.predict import queries
from zadapter.predicates.predicate import And, Comparison
from zadapter.predicates.pruning import matching
from zadapter.report.migration_report import Proof
from zadapter.spark.checksum import RowTotals, add_totals, sum_by_file
from zadapter.spark.layout_expression import constant
from zadapter.spark.sample import sample
from zadapter.table import file_stats
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Snapshot

FILTERS = 24
SAMPLED = 10_000
"""Rows from whose values the filters are drawn."""
Ranges: TypeAlias = tuple[tuple[NameParts, pa.Array], ...]
"""Columns and both ends of a range of their values."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two tables."""

    backend: Backend
    snapshot: Snapshot
    files: pa.Table
    """The files to read."""
    stats: pa.Table
    """The same files, with stats of the filtered columns in the new table's types."""

    rows: DataFrame
    """Their rows, with the columns to compare."""


@dataclass(frozen=True, slots=True)
class ProofFilter:
    """Ranges of one or more columns, as a predicate and as a Spark column."""

    predicate: And
    condition: Column


def prove(source: Side, target: Side, filters: Sequence[ProofFilter], column_count: int) -> Proof:
    """Read both tables once, and compare them.

    Args:
        source: The old table.
        target: The new table.
        filters: Filters to evaluate on both tables.
        column_count: Number of verified columns.

    Raises:
        VerificationError: The tables differ; the message states the difference.
    """
    before, share_before = _read_side(source, filters)
    after, share_after = _read_side(target, filters)
    tables = f"{source.snapshot.table} and {target.snapshot.table}"
    if before.rows != after.rows:
        raise VerificationError(
            f"{tables} differ: they have {before.rows} and {show_count(after.rows, 'rows')}"
        )
    if before.checksum != after.checksum:
        raise VerificationError(f"{tables} differ: they have equal row counts, but other checksums")
    if before.matches != after.matches:
        raise VerificationError(f"{tables} differ: filters match different numbers of rows")
    return Proof(
        rows=after.rows,
        checksum=after.checksum,
        columns=column_count,
        filters=len(filters),
        share_source=share_before,
        share_target=share_after,
    )


def _read_side(side: Side, filters: Sequence[ProofFilter]) -> tuple[RowTotals, float]:
    """Return the totals of the rows, and the mean share of rows that the filters read."""
    paths = side.files["path"].to_pylist()
    of_rows = row_files(side.backend, side.snapshot, paths)
    totals_by_file = sum_by_file(side.rows, [f.condition for f in filters]) if paths else {}
    rows_of, shares = np.zeros(len(paths), np.int64), []
    found = {name: of_rows.number(name) for name in totals_by_file}
    numbers = {name: number for name, number in found.items() if number is not None}
    if unknown := sorted(found.keys() - numbers.keys()):
        raise VerificationError(
            f"{side.snapshot.table}: Spark read {unknown[0]}, which is not a file of the snapshot"
        )
    for name, totals in totals_by_file.items():
        rows_of[numbers[name]] = totals.rows
    for number, f in enumerate(filters):
        kept = matching(f.predicate, side.stats)
        shares.append(rows_of[kept].sum() / max(1, rows_of.sum()))
        for name, totals in totals_by_file.items():
            at = numbers[name]
            if totals.matches[number] and not kept[at]:
                raise VerificationError(
                    f"{paths[at]} of {side.snapshot.table}: its min and max exclude a filter that "
                    f"rows of it match ({totals.matches[number]:,}): {f.predicate}"
                )
    share = float(np.mean(shares)) if shares else 1.0
    return add_totals(list(totals_by_file.values()), len(filters)), share


def filters_on(files: pa.Table, rows: DataFrame, keys: Sequence[NameParts]) -> list[ProofFilter]:
    """Draw seeded range filters between values of the rows.

    Values, unlike bounds of files, do not depend on how rows are divided into files. So the shares
    of rows that the filters read on both sides are comparable.

    Args:
        files: File table with stats of *keys*.
        rows: The rows of these files.
        keys: The columns.
    """
    types = {parts: type_ for parts in keys if (type_ := _bound_type(files, parts)) is not None}
    if not types or not files.num_rows:
        return []
    if files["rows"].null_count:
        sampled = sample(rows.limit(SAMPLED), list(types), 1.0)
    else:
        sampled = sample(rows, list(types), SAMPLED / max(SAMPLED, total(files, "rows")))
    values = {parts: sampled[join(parts)].cast(type_) for parts, type_ in types.items()}
    names = {parts: rows.select(quote(parts)).schema[0].dataType.simpleString() for parts in types}
    return [
        ProofFilter(_predicate(ranges), _condition(ranges, names)) for ranges in draw_ranges(values)
    ]


def _bound_type(files: pa.Table, parts: NameParts) -> pa.DataType | None:
    """Return the type of a column's bounds, or None if filters on it would not be comparable."""
    stats = file_stats.column(files, parts)
    if stats is None or kind_of(stats.type["min"].type) is BINARY:
        return None
    return stats.type["min"].type


def draw_ranges(values: Mapping[NameParts, pa.ChunkedArray]) -> list[Ranges]:
    """Draw seeded ranges between sampled values, as predictions of :func:`zadapter.plan` do."""
    ranked = {parts: rank(column) for parts, column in values.items()}
    ranked = {parts: found for parts, found in ranked.items() if len(found.distinct)}
    if not ranked:
        return []
    drawn = queries(np.stack([found.ranks for found in ranked.values()], axis=1), FILTERS)
    return [
        tuple(
            (parts, found.distinct.take(pa.array(ends - 1)))
            for (parts, found), ends in zip(ranked.items(), query, strict=True)
            if ends[0] > 0
        )
        for query in drawn
    ]


def _predicate(ranges: Ranges) -> And:
    return And(
        tuple(
            Comparison(parts, op, end)
            for parts, ends in ranges
            for op, end in zip((">=", "<="), ends, strict=True)
        )
    )


def _condition(ranges: Ranges, names: Mapping[NameParts, str]) -> Column:
    condition = F.lit(True)  # noqa: FBT003
    for parts, ends in ranges:
        column = F.col(quote(parts))
        both = F.expr(constant(texts(ends), names[parts]))
        condition = condition & (column >= F.get(both, F.lit(0)))
        condition = condition & (column <= F.get(both, F.lit(1)))
    return condition


def check_columns(
    expected: Sequence[dict[str, object]], actual: Sequence[dict[str, object]]
) -> int:
    """Compare the expected columns with the actual ones, and return their number.

    Raises:
        VerificationError: The columns differ.
    """
    for expected_column, actual_column in zip(expected, actual, strict=False):
        if expected_column != actual_column:
            raise VerificationError(
                f"a column differs: expected {expected_column}, found {actual_column}"
            )
    if len(expected) != len(actual):
        raise VerificationError(
            f"the columns differ: expected {len(expected)}, found {len(actual)}"
        )
    return len(actual)
