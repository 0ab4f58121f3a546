"""Row groups as a file table: what their footer does not say, their file's stats say.

Footers have no bounds of some types that the log has bounds of: Spark writes timestamps as INT96 by
default, without bounds. A row group holds no value that its file does not hold.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.names import split
from zadapter.base.ranks import Ints
from zadapter.table.column_bounds import gather
from zadapter.table.file_stats import Bounds, child, replace_column, structs
from zadapter.table.footers import Footer, file_table
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Row groups of some files, as a file table.

    Attributes:
        table: One row for each row group, with the partition values of its file.
        file_of: Index of each row group's file.
    """

    table: pa.Table
    file_of: Ints


def groups_of(
    snapshot: Snapshot,
    files: pa.Table,
    footers: Sequence[Sequence[Footer]],
    names: Collection[str],
) -> Groups:
    """Return the row groups of *files*.

    Args:
        snapshot: The table's version.
        files: The file table.
        footers: One footer per row group, for each file.
        names: The outermost columns whose stats are wanted.
    """
    file_of = np.repeat(np.arange(len(footers)), [len(groups) for groups in footers])
    every = [group for groups in footers for group in groups]
    numbered = {str(number): group for number, group in enumerate(every)}
    table = file_table(snapshot, numbered, names)
    theirs = files.take(pa.array(file_of))
    values = theirs["partition"].combine_chunks()
    table = replace_column(table, files.schema.field("partition"), values)
    field = table.schema.field("stats")
    stats = [_inherit_stats(table, theirs, column.name) for column in field.type]
    return Groups(replace_column(table, field, structs(stats, field.type, table.num_rows)), file_of)


def _inherit_stats(groups: pa.Table, files: pa.Table, name: str) -> pa.StructArray:
    """Return the stats of a column of row groups; where they are unknown, those of the files."""
    own = child(groups["stats"], name)
    assert own is not None  # noqa: S101 - a column of this very table
    low, high, nulls, nans, flags = own.flatten()
    mine = gather(groups, split(name))
    theirs = gather(files, split(name), low.type)
    if mine.low.type != low.type or theirs.low.type != low.type:
        return own
    rows, nothing = groups["rows"].combine_chunks(), pa.scalar(0, pa.int64())
    no_low, no_high = (
        pc.and_(pa.array(mine.regular), known.is_null()) for known in (mine.low, mine.high)
    )
    from_low = pc.and_(no_low, theirs.low.is_valid())
    from_high = pc.and_(no_high, theirs.high.is_valid())
    flags = pc.if_else(pc.or_(from_low, from_high), int(Bounds.WIDENED), flags).cast(pa.int8())
    all_null = pa.array(~theirs.regular & ~theirs.nan)
    counted = pc.case_when(pc.make_struct(all_null, pa.array(~theirs.null)), rows, nothing)
    without_nan = pc.if_else(pa.array(~theirs.nan), nothing, None)
    children = [
        pc.if_else(from_low, theirs.low, low),
        pc.if_else(from_high, theirs.high, high),
        pc.coalesce(nulls, counted),
        pc.coalesce(nans, without_nan),
        flags,
    ]
    return pa.StructArray.from_arrays(children, fields=list(own.type))
