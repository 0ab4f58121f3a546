"""Rows drawn inside the boxes of files, and the cost of reading files, from the log alone.

A file's rows are taken to be spread evenly over its box, in ranks over the bounds of all files. So
what a merge of files brings is predicted without reading a row: the drawn rows are cut into files
as real rows would be. A file's row groups are taken to divide its box evenly in all columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.layout import Curve, Request
from zadapter.layout.predict import SEED, Floats, boxes_of_rows, boxes_of_stats

STEPS = 1 << 20
"""Positions between two neighbouring bounds."""
A_CELL, CELLS = 48, 256
"""Rows to draw for each cell that files are predicted in, and the maximum number of cells."""
MISSED = -10.0
"""Share of a cell that a range covers if it misses the cell."""
BLOCK = 1 << 19
"""Maximum number of pairs of a query and a cell that are compared at once."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Boxes that hold files, each divided evenly.

    Attributes:
        low: Lowest position, shape (cells, columns).
        high: Highest position, same shape; -1 where all values are null.
        rows: Rows in each cell.
        files: Number of files that each cell is divided into.
        groups: Number of row groups that each cell is divided into.
    """

    low: Ints
    high: Ints
    rows: Floats
    files: Floats
    groups: Floats


def positions(stats: Sequence[pa.StructArray | None], rows: Ints) -> tuple[Ints, Ints]:
    """Return the lowest and the highest position of each file in each column.

    Args:
        stats: Stats of each key column in the file table, or None.
        rows: Rows per file.
    """
    boxes = boxes_of_stats(stats, rows)
    highest = np.where(boxes.high < np.iinfo(np.int64).max, boxes.high, 0).max(axis=0, initial=1)
    high = np.minimum(boxes.high, highest)
    low = np.where(high > 0, np.maximum(boxes.low, 1), 0)
    return low * STEPS, np.where(high > 0, np.maximum(high, low) * STEPS, -1)


def draw_positions(low: Ints, high: Ints, rows: Ints, count: int) -> Ints:
    """Draw about *count* rows, from each file in proportion to its rows.

    Returns:
        Positions of the rows, shape (rows, columns), 0 for null.
    """
    random, file_of = np.random.default_rng(SEED), sources(rows, count)
    inside = random.random((len(file_of), low.shape[1]))
    span = np.maximum(high - low, 0)[file_of]
    return np.asarray(low[file_of] + (inside * (span + 1)).astype(np.int64))


def sources(rows: Ints, count: int) -> Ints:
    """Return the file of each of about *count* rows, drawn in proportion to the files' rows."""
    ends = np.floor(np.cumsum(rows) * (count / max(1, int(rows.sum()))) + 0.5).astype(np.int64)
    return np.repeat(np.arange(len(rows)), np.diff(ends, prepend=0))


def levels_ahead(rows_at: Ints, low: Ints, high: Ints) -> tuple[int, ...]:
    """Return by how many levels some files are narrower than the partition, in each column.

    Rows that came in within a day are cut by time already if their table has those of many days.
    All columns are compared with the widest one.

    Args:
        rows_at: Positions of rows of the whole partition.
        low: Lowest positions of the files, shape (files, columns).
        high: Highest positions, same shape.
    """
    near = (rows_at >= low.min(axis=0)) & (rows_at <= high.max(axis=0))
    share = np.maximum(near.sum(axis=0), 1) / max(1, len(rows_at))
    levels = np.rint(-np.log2(share)).astype(np.int64)
    return tuple(np.subtract(levels, levels.min()).tolist())


def predict_cells(
    request: Request, inside: Ints, ahead: Sequence[int], rows: int, files: int, row_groups: int
) -> Cells:
    """Return the cells of the files that a rewrite of some rows writes.

    Args:
        request: The requested layout.
        inside: Positions of rows drawn from the replaced files.
        ahead: Their levels ahead.
        rows: Number of rows of the replaced files.
        files: Number of files to write.
        row_groups: Row groups of each.
    """
    count = max(1, min(files, CELLS, len(inside) // (A_CELL // 2)))
    curve = Curve.LINEAR if request.curve is Curve.LINEAR else Curve.ADAPTIVE
    coarse = replace(request, curve=curve, row_groups=1, filters=())
    keys = [pa.array(column, mask=column == 0) for column in inside.T]
    here = np.zeros(len(inside), np.int64)
    layout = fit(coarse, keys, [()], here, [count], ahead)
    leaf = assign.leaves(layout, keys, here)
    boxes = boxes_of_rows(inside, assign.files(layout, leaf, np.arange(len(leaf))), count)
    parts = np.full(count, files / count, np.float64)
    held = boxes.rows * np.float64(rows / max(1, len(inside)))
    # no row group is without rows, so a file of one row has one
    groups = np.minimum(parts * row_groups, np.maximum(held, 1.0))
    return Cells(boxes.low, boxes.high, held, parts, groups)


def reads(request: Request, cells: Cells, rows_at: Ints, ranges: Ints, opening: float) -> Floats:
    """Return the mean cost of each cell over queries: rows of row groups to read, and openings.

    Args:
        request: The layout of the cells.
        cells: The cells.
        rows_at: Positions of rows of the whole partition.
        ranges: Lowest and highest position of each query in each column.
        opening: Cost of opening a file, in rows.
    """
    total = np.zeros(len(cells.rows))
    levels = _levels(rows_at, cells)
    halves = [0.5 / _parts(request, levels, count) for count in (cells.groups, cells.files)]
    block = max(1, BLOCK // max(1, len(cells.rows)))
    for start in range(0, len(ranges), block):
        asked = ranges[start : start + block]
        read, opened = np.ones((2, len(asked), len(cells.rows)))
        for column in range(ranges.shape[1]):
            some = np.flatnonzero(asked[:, column, 0] >= 0)
            share, ends = _overlap(cells, column, asked[some, column])
            read[some] *= np.clip(share + ends * halves[0][:, column], 0, 1)
            opened[some] *= np.clip(share + ends * halves[1][:, column], 0, 1)
        total += read.sum(axis=0) * cells.rows + opened.sum(axis=0) * cells.files * opening
    return total / max(1, len(ranges))


def rows_of_files(ranges: Ints, request: Request, rows_at: Ints, cells: Cells) -> Floats:
    """Return the mean number of rows of each cell in files that queries read at least a part of.

    Args:
        ranges: Lowest and highest position of each query in each column.
        request: The layout of the cells.
        rows_at: Positions of rows of all files.
        cells: Boxes that are divided into whole files; a query reads whole files.
    """
    parts = np.maximum(1.0, _parts(request, _levels(rows_at, cells), np.maximum(1.0, cells.files)))
    total = np.zeros(len(cells.rows))
    block = max(1, BLOCK // max(1, len(cells.rows)))
    for start in range(0, len(ranges), block):
        asked = ranges[start : start + block]
        read = np.ones((len(asked), len(cells.rows)))
        for column in range(ranges.shape[1]):
            some = np.flatnonzero(asked[:, column, 0] >= 0)
            share, ends = _overlap(cells, column, asked[some, column])
            least = 1 / parts[:, column]
            expected = np.clip(share + ends * least / 2, least, 1)
            read[some] *= np.where(share >= 0, expected, 0)
        total += read.sum(axis=0) * cells.rows
    return total / max(1, len(ranges))


def _levels(rows_at: Ints, cells: Cells) -> Floats:
    """Return by how many levels each cell is narrower than all rows; infinite for points."""
    levels = np.empty(cells.low.shape)
    for column, values in enumerate(np.sort(rows_at, axis=0).T):
        first = np.searchsorted(values, cells.low[:, column])
        last = np.searchsorted(values, cells.high[:, column], side="right")
        share = np.maximum(last - first, 1) / max(1, len(values))
        is_point = cells.high[:, column] <= cells.low[:, column]
        levels[:, column] = np.where(is_point, np.inf, -np.log2(share))
    return levels


def _parts(request: Request, levels: Floats, count: Floats) -> Floats:
    """Return the number of parts of each cell along each column, whose product is *count*.

    A cell is cut in the columns where it is widest, until it is as narrow in all of them.

    Args:
        request: The layout of the cells.
        levels: Levels by which each cell is narrower than all rows; infinite where it is a point.
        count: Number of parts of each cell.
    """
    wanted = np.log2(count)
    if request.curve is Curve.LINEAR:
        first = np.argmax(np.isfinite(levels), axis=1)
        return np.where(np.arange(levels.shape[1]) == first[:, None], count[:, None], 1.0)
    weights = np.array(request.weights)
    order = np.argsort(levels / weights, axis=1)
    narrow = np.take_along_axis(levels / weights, order, axis=1)
    weight = weights[order]
    depth = np.zeros(len(levels))
    spent, total = np.zeros(len(levels)), np.zeros(len(levels))
    for column in range(levels.shape[1]):
        spent = (
            spent
            + np.where(np.isfinite(narrow[:, column]), narrow[:, column], 0) * weight[:, column]
        )
        total = total + weight[:, column]
        reached = (wanted + spent) / total
        depth = np.where(reached > narrow[:, column], reached, depth)
    return np.asarray(np.exp2(np.maximum(depth[:, None] * weights - levels, 0)))


def _overlap(cells: Cells, column: int, ranges: Ints) -> tuple[Floats, Floats]:
    """Return the share of each cell's span that each range covers, and how many ends lie inside.

    Each end that lies inside a cell is expected to hit half a part of it more than it covers. Where
    a range misses the cell, the share is so far below zero that the ends do not count.
    """
    low, high = cells.low[:, column], cells.high[:, column]
    first, last = ranges[:, :1], ranges[:, 1:]
    span = (high - low).astype(np.float64)
    scale = np.where(span > 0, 1 / np.maximum(span, 1), 0)
    covered = np.minimum(high, last) - np.maximum(low, first)
    share = np.where(covered >= 0, covered * scale + (span == 0), MISSED)
    ends = (first > low).astype(np.float64) + (last < high)
    return np.asarray(share, np.float64), ends
