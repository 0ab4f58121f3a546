"""Comparison of the stats of a log with those of footers or values, and their correction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import has_nan
from zadapter.base.names import NameParts, join
from zadapter.predicates.texts import bounds_text
from zadapter.table.column_bounds import Mask, gather, mask
from zadapter.table.file_stats import Bounds, child, replace_column, structs

UNREADABLE, UNSOUND, UNSURE, MISSING = KINDS = "unreadable", "unsound", "unsure", "missing"
"""Kinds of findings, the worst first."""

LOWER, UPPER, NULLS, BYTES = "lower bound", "upper bound", "number of nulls", "bytes"
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("path", "column", "kind", "what", "recorded", "found")]
)


def findings(
    recorded: pa.Table,
    found: pa.Table,
    columns: Sequence[NameParts],
    *,
    lacking: frozenset[NameParts],
) -> pa.Table:
    """Return what differs.

    A recorded bound is unsound if it excludes a value that the file holds. A bound that is wider
    than the values is sound. Where the found bounds may be cut themselves, as a footer's of texts,
    a difference proves nothing.

    Args:
        recorded: The file table of the log.
        found: File table of the same files in the same order, from footers or values.
        columns: The columns to compare.
        lacking: Columns of which the log keeps no stats, so that none are missing.
    """
    paths = recorded["path"].combine_chunks()
    deletes = np.asarray(recorded["deletes"].combine_chunks().is_valid(), np.bool_)
    tables = _counts(recorded, found, paths, deletes)
    for column in columns:
        stated, real = (child(files["stats"], join(column)) for files in (recorded, found))
        if stated is not None and real is not None and stated.type == real.type:
            compared = _Comparison(join(column), paths, stated, real, deletes)
            tables += compared.wrong()
            tables += compared.missing() if column not in lacking else []
    return pa.concat_tables([SCHEMA.empty_table(), *tables])


def unreadable(files: pa.Table, reasons: Sequence[str]) -> pa.Table:
    """Return that some files of a log cannot be read.

    Args:
        files: The file table of these files.
        reasons: Why, for each.
    """
    paths, count = files["path"].combine_chunks(), files.num_rows
    labels = [pa.array([text] * count, pa.string()) for text in ("", UNREADABLE, "file")]
    columns = [paths, *labels, pa.nulls(count, pa.string()), pa.array(reasons, pa.string())]
    return pa.table(columns, schema=SCHEMA)


def count_unknown_bounds(
    recorded: pa.Table,
    found: pa.Table,
    columns: Sequence[NameParts],
    *,
    lacking: frozenset[NameParts],
) -> int:
    """Return how many pairs of bounds both tables lack, of columns that may have values.

    The arguments are those of :func:`findings`.
    """
    count = 0
    for column in columns:
        if column in lacking or child(recorded["stats"], join(column)) is None:
            continue
        stated, real = gather(recorded, column), gather(found, column)
        neither = pc.and_(stated.low.is_null(), real.low.is_null())
        count += int((stated.regular & real.regular & mask(neither, default=False)).sum())
    return count


def _counts(recorded: pa.Table, found: pa.Table, paths: pa.Array, deletes: Mask) -> list[pa.Table]:
    """Compare row counts, of files without row-level deletes, and bytes."""
    rows, sizes = (
        [files[name].combine_chunks() for files in (recorded, found)] for name in ("rows", "size")
    )
    wrong = mask(pc.not_equal(*rows), default=False) & ~deletes
    resized = mask(pc.not_equal(*sizes), default=False)
    unknown = mask(rows[0].is_null(), default=False)
    return [
        _list_findings(paths, wrong, ("", UNSOUND, "number of rows"), rows),
        _list_findings(paths, unknown, ("", MISSING, "number of rows"), rows),
        _list_findings(paths, resized, ("", UNSOUND, BYTES), sizes),
    ]


@dataclass(frozen=True)
class _Comparison:
    """The recorded and the found stats of one column."""

    name: str
    paths: pa.Array
    stated: pa.StructArray
    real: pa.StructArray
    deletes: Mask

    def wrong(self) -> list[pa.Table]:
        """Return the bounds that exclude values, and the null counts that differ."""
        exact = mask(pc.equal(self.real.field("bounds"), int(Bounds.EXACT)), default=False)
        tables = []
        for side, what, excludes in (("min", LOWER, pc.greater), ("max", UPPER, pc.less)):
            bounds = self.stated.field(side), self.real.field(side)
            outside = mask(excludes(*bounds), default=False)
            tables += [
                _list_findings(self.paths, outside & exact, (self.name, UNSOUND, what), bounds),
                _list_findings(self.paths, outside & ~exact, (self.name, UNSURE, what), bounds),
            ]
        nulls = self.stated.field("nulls"), self.real.field("nulls")
        differ = mask(pc.not_equal(*nulls), default=False) & ~self.deletes
        return [*tables, _list_findings(self.paths, differ, (self.name, UNSOUND, NULLS), nulls)]

    def missing(self) -> list[pa.Table]:
        """Return the bounds and null counts that the log lacks."""
        tables = []
        for side, what in (("min", LOWER), ("max", UPPER)):
            bounds = self.stated.field(side), self.real.field(side)
            lacks = mask(pc.and_(bounds[0].is_null(), bounds[1].is_valid()), default=False)
            if has_nan(bounds[1].type):  # NaN is no bound, and beside it there is none
                nans = pc.not_equal(self.real.field("nans"), 0).fill_null(True)  # noqa: FBT003
                lacks &= ~mask(nans, default=True)
            tables.append(_list_findings(self.paths, lacks, (self.name, MISSING, what), bounds))
        nulls = self.stated.field("nulls"), self.real.field("nulls")
        lacks = mask(pc.and_(nulls[0].is_null(), nulls[1].is_valid()), default=False)
        lacks &= ~self.deletes
        return [*tables, _list_findings(self.paths, lacks, (self.name, MISSING, NULLS), nulls)]


def _list_findings(
    paths: pa.Array, at: Mask, labels: tuple[str, str, str], values: Sequence[pa.Array]
) -> pa.Table:
    """Return the findings of the files *at*.

    Args:
        paths: Paths of all files.
        at: The files with a finding.
        labels: The column, the kind and what differs.
        values: What is recorded and what was found, for all files.
    """
    chosen = pa.array(at)
    constant = [pa.array([text] * int(at.sum()), pa.string()) for text in labels]
    shown = [bounds_text(each.filter(chosen)) for each in values]
    return pa.table([paths.filter(chosen), *constant, *shown], schema=SCHEMA)


def correct_stats(recorded: pa.Table, found: pa.Table) -> pa.Table:
    """Return the file table of a log with the rows and stats that were found.

    Found bounds are certain if they are values of the file, or if it has no values. Where the log
    has no bounds, any valid ones are better.

    Args:
        recorded: Files of the log, none of which has bounds in doubt.
        found: The same files, in the same order.
    """
    field = recorded.schema.field("stats")
    columns, children = list(field.type), list[pa.Array]()
    for column in columns[:]:
        stated, real = child(recorded["stats"], column.name), child(found["stats"], column.name)
        if stated is None or real is None or real.type != stated.type:
            children.append(pa.nulls(recorded.num_rows, column.type) if stated is None else stated)
            continue
        exact = pc.equal(real.field("bounds"), int(Bounds.EXACT)).fill_null(False)  # noqa: FBT003
        empty = pc.equal(real.field("nulls"), found["rows"].combine_chunks()).fill_null(False)  # noqa: FBT003
        lacking = stated.field("min").is_null()
        better = pc.or_(pc.or_(exact, empty), lacking)
        children.append(pc.if_else(better, real, stated))
    for column in found.schema.field("stats").type:
        if field.type.get_field_index(column.name) < 0:  # the log may count its nulls
            columns.append(column)
            children.append(child(found["stats"], column.name))
    field = field.with_type(pa.struct(columns))
    stats = structs(children, field.type, recorded.num_rows)
    rows = pa.field("rows", pa.int64())
    counted = replace_column(recorded, rows, found["rows"].combine_chunks())
    return replace_column(counted, field, stats)
