"""Depth: how many files overlap at a value. A filter for one value opens as many files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zadapter.base.arrays import as_array
from zadapter.base.ranks import Ints
from zadapter.layout.box_rows import draw_positions, sources
from zadapter.layout.predict import SEED, Boxes, Floats
from zadapter.table.overlap.extents import SAMPLED_FILES, Extent

POINTS = 512
"""Number of rows that are drawn to measure the depth of boxes in several columns."""


@dataclass(frozen=True, slots=True)
class Depth:
    """Number of files of the same partition that overlap at a value."""

    average: float
    """Mean over the rows, if each file's rows lie evenly between its bounds."""
    largest: int
    """Largest number of files that overlap at a value."""


@dataclass(frozen=True, slots=True, eq=False)
class Depths:
    """The depth of one column at each file.

    Attributes:
        mean: Mean number of files that overlap between the bounds of the file; 0: no bounds.
        most: Number of files that overlap at its lowest value; 0: no bounds.
    """

    mean: Floats
    most: Ints

    def summary(self, rows: Ints) -> Depth | None:
        """Return the depth of the column, or None if no file has bounds.

        Where most files overlap, the one of them that begins last begins: so the largest number at
        a lowest value is the largest number at any value.
        """
        at = self.most > 0
        if not at.any():
            return None
        weights = np.maximum(rows[at], 1e-9)
        average = float(np.average(self.mean[at], weights=weights))
        return Depth(average, int(self.most.max()))


def depths(extent: Extent, partition: Ints) -> Depths:
    """Return the depth at each file by a sweep over the sorted bounds.

    Files without bounds may hold any value, files without values hold none.

    Args:
        extent: The range of the column in each file.
        partition: Number of each file's partition. Files of two partitions do not overlap.
    """
    low, high = extent.sides
    if not extent.known.any():
        return Depths(np.zeros(len(low)), np.zeros(len(low), np.int64))
    size = len(extent.number) + 2
    begins, ends = partition * size + low, partition * size + np.maximum(high, 0)
    present, known = extent.present, np.flatnonzero(extent.known)
    known = known[np.argsort(begins[known], kind="stable")]
    first, last = np.sort(begins[present]), np.sort(ends[present])
    most = np.zeros(len(low), np.int64)
    begun = np.searchsorted(first, begins[known], side="right")
    most[known] = begun - np.searchsorted(last, begins[known], side="left")
    mean = most.astype(np.float64)
    widths = extent.widths
    wide = known[widths[known] > 0]
    upper = wide[np.argsort(ends[wide])]  # keys in order are found in half of the time
    covered = np.zeros(len(low))
    for bounds, sign in ((first, 1), (last, -1)):
        distances = _Distances.of(extent, bounds, size)
        covered[upper] += sign * distances.before(ends[upper], partition[upper], high[upper])
        covered[wide] -= sign * distances.before(begins[wide], partition[wide], low[wide])
    mean[wide] = np.maximum(1.0, covered[wide] / widths[wide])
    return Depths(mean, most)


@dataclass(frozen=True, slots=True, eq=False)
class _Distances:
    """Distances from bounds of files, which are sorted by partition.

    Attributes:
        bounds: Partition and rank of each bound, as one number.
        inner: The value at each rank, from 0.
        sums: Sum of the values of all bounds before each.
        starts: Index of each partition's first bound.
    """

    bounds: Ints
    inner: Floats
    sums: Floats
    starts: Ints

    @classmethod
    def of(cls, extent: Extent, bounds: Ints, size: int) -> "_Distances":
        """Return the distances in a column of *size* ranks."""
        number = np.concatenate([extent.number[:1], extent.number, extent.number[-1:]])
        inner = number - number[0]
        starts = np.searchsorted(bounds, np.arange(int(bounds[-1]) // size + 2) * size)
        return cls(bounds, inner, np.append(0, np.cumsum(inner[bounds % size])), starts)

    def before(self, keys: Ints, partition: Ints, rank: Ints) -> Floats:
        """Return, at each key, the summed distances from the bounds before in its partition.

        The difference of this for lower and upper bounds, taken between two values, is the sum of
        what the files cover of the range between them.
        """
        start, stop = self.starts[partition], np.searchsorted(self.bounds, keys)
        summed = self.sums[stop] - self.sums[start]
        return np.asarray((stop - start) * self.inner[rank] - summed)


def box_depths(boxes: Boxes, partition: Ints) -> Depth | None:
    """Return the depth of boxes in several columns, at rows drawn inside them.

    Of very many files a sample is compared, and the depth is scaled up.
    """
    files = len(boxes.rows)
    random = np.random.default_rng(SEED)
    at = np.arange(files)
    if files > SAMPLED_FILES:
        at = np.sort(random.choice(files, SAMPLED_FILES, replace=False))
    low, high, inside = boxes.low[at], boxes.high[at], partition[at]
    rows = np.maximum(boxes.rows[at], 1)
    points = min(POINTS, 16 * files)
    file_of, drawn_at = sources(rows, points), draw_positions(low, high, rows, points)
    found = np.empty(len(drawn_at), np.int64)
    for number, point in enumerate(drawn_at):
        hit = inside == inside[file_of[number]]
        for column, value in enumerate(point.tolist()):
            hit &= (low[:, column] <= value) & (value <= high[:, column])
        found[number] = hit.sum()
    found = np.rint(found[found > 0] * (files / max(1, len(at)))).astype(np.int64)
    if not len(found):
        return None
    return Depth(float(found.mean()), int(found.max()))


def as_structs(depth: dict[str, Depths]) -> pa.Array:
    """Return the mean depth of each file in each column as structs; null: no bounds."""
    arrays = [pa.array(each.mean, mask=each.most == 0) for each in depth.values()]
    return pa.StructArray.from_arrays(arrays, names=list(depth))


def partition_numbers(files: pa.Table, names: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return the number of each file's partition, and the text of each partition.

    Files with rows of several partitions count as a partition of their own.
    """
    count = files.num_rows
    if not names:
        return np.zeros(count, np.int64), [""]
    values = as_array(files["partition"])
    mixed = np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)
    number = np.where(mixed, 0, 1).astype(np.int64)
    for name in names:
        encoded = values.field(name).dictionary_encode("encode")
        code = encoded.indices.to_numpy().astype(np.int64)
        number = number * max(1, len(encoded.dictionary)) + np.where(mixed, 0, code)
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    shown = values.take(pa.array(first)).to_pylist()
    return inverse.astype(np.int64), [_format_partition(each) for each in shown]


def _format_partition(values: Mapping[str, object] | None) -> str:
    if values is None:
        return "rows of several partitions"
    return ", ".join(f"{name}={value}" for name, value in values.items())
