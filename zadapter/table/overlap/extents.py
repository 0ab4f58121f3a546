"""Ranges of columns in files, and the boxes of files in several columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from zadapter.base.key_types import is_bytes, to_integers
from zadapter.base.names import NameParts
from zadapter.base.ranks import Ints, rank
from zadapter.layout.box_rows import draw_positions
from zadapter.layout.predict import SEED, UNBOUNDED, Boxes, Floats, queries, share_read
from zadapter.table.column_bounds import Evidence, Mask, gather

SAMPLED_FILES = 1 << 16
"""Number of files above which shares of several columns are computed on a sample of them."""
DRAWN = 4_096
"""Number of rows drawn inside the boxes, from which range filters are drawn."""
POSITIONS = 1 << 40
"""Number of positions along a column, besides one for each distinct bound."""

_LARGEST = 1e300
"""Larger numbers are cut, so that the width of a range is a number."""
_FAR = 1e6
"""Values count as their ranks if the outermost are this many times as far apart as most are: the
others would have no width beside them."""
_BYTES = 7
"""Number of bytes of a text, behind the prefix that all texts share, that count."""


@dataclass(frozen=True, eq=False)
class Extent:
    """The range of one column in each file.

    What follows from the attributes is not kept, but for masks: there are ten million files.

    Attributes:
        evidence: The possible values.
        low: Rank of the lower bound; 0 where it is unknown, or where there is no value.
        high: Rank of the upper bound; ``UNBOUNDED`` where it is unknown, -1 where there is no value
            but null and NaN.
        number: The distinct bounds as numbers; rank r stands for ``number[r - 1]``.
    """

    evidence: Evidence
    low: Ints
    high: Ints
    number: Floats

    @cached_property
    def known(self) -> Mask:
        """Which files have both bounds."""
        return (self.low > 0) & (self.high < UNBOUNDED) & (self.high > 0)

    @cached_property
    def present(self) -> Mask:
        """Which files may have a value that is neither null nor NaN."""
        return np.asarray(self.high != -1)

    @property
    def sides(self) -> tuple[Ints, Ints]:
        """Ranks from 0 to one more than there are bounds: unknown bounds are the outermost."""
        top = len(self.number) + 1
        low = np.where(self.known, self.low, 0)
        return low, np.where(self.known, self.high, np.where(self.present, top, -1))

    @property
    def widths(self) -> Floats:
        """Width of each range of known bounds, as a number; else 0."""
        found = np.zeros(len(self.low))
        at = self.known
        found[at] = self.number[self.high[at] - 1] - self.number[self.low[at] - 1]
        return found


def extent(files: pa.Table, column: NameParts) -> Extent:
    """Return the range of *column* in each of *files*."""
    evidence = gather(files, column)
    count = len(files)
    if pa.types.is_null(evidence.low.type):
        ranks, number = np.zeros(2 * count, np.int64), np.zeros(0)
    else:
        ranks, number = _rank_bounds(pa.concat_arrays([evidence.low, evidence.high]))
    low, high = ranks[:count], ranks[count:]
    high = np.where(high > 0, high, UNBOUNDED)
    regular = evidence.regular
    return Extent(evidence, np.where(regular, low, 0), np.where(regular, high, -1), number)


def _rank_bounds(bounds: pa.Array) -> tuple[Ints, Floats]:
    """Return dense ranks from 1, 0 for null, and the distinct values as numbers.

    Numbers of 64 bits are ranked in a third of the time.
    """
    integers = to_integers(bounds)
    if integers.type != pa.int64():
        ranked = rank(bounds)
        return ranked.ranks, numbers(ranked.distinct)
    values = integers.drop_null().to_numpy()
    order = np.argsort(values)
    ascending = values[order]
    first = np.ones(len(values), np.bool_)
    first[1:] = np.diff(ascending) != 0
    dense = np.empty(len(values), np.int64)
    dense[order] = np.cumsum(first)
    ranks = np.zeros(len(bounds), np.int64)
    ranks[bounds.is_valid().to_numpy(zero_copy_only=False)] = dense
    return ranks, ascending[first].astype(np.float64)


@dataclass(frozen=True, eq=False)
class Space:
    """The boxes of files in several columns, and range filters on them.

    Attributes:
        boxes: The boxes, in positions.
        weights: How often filters use each column; None: equally often.
    """

    boxes: Boxes
    weights: Sequence[float] | None = None

    @cached_property
    def rows_at(self) -> Ints:
        """Rows drawn inside the boxes."""
        return draw_positions(self.boxes.low, self.boxes.high, self.boxes.rows, DRAWN)

    @cached_property
    def ranges(self) -> Ints:
        """Range filters that are drawn from these rows, as ``plan`` draws them from a sample."""
        return queries(self.rows_at, weights=self.weights)

    @cached_property
    def share_now(self) -> float:
        """Mean share of rows in files that the filters cannot exclude."""
        return share_read(_sample_files(self.boxes), self.ranges)

    def share_of(self, at: Ints) -> float:
        """Return the same share of the rows of the files at some indices."""
        return share_read(_sample_files(part(self.boxes, at)), self.ranges)

    @property
    def sampled(self) -> bool:
        """Whether shares are those of a sample of the files."""
        return len(self.boxes.rows) > SAMPLED_FILES


def space(extents: Sequence[Extent], rows: Ints, weights: Sequence[float] | None = None) -> Space:
    """Return the boxes of files in the columns of *extents*."""
    sides = [positions(each, rows) for each in extents]
    low, high = (np.stack([side[at] for side in sides], axis=1) for at in (0, 1))
    return Space(Boxes(low, high, rows), weights)


def positions(extent: Extent, rows: Ints) -> tuple[Ints, Ints]:
    """Return the positions of both bounds of each file along a column.

    A position is a share of all rows, if each file's rows lie evenly between its bounds. So a range
    of positions stands for a range of values with as many rows, and files that overlap in most of
    their values overlap in most positions. Unknown bounds are the outermost.
    """
    (low, high), widths = extent.sides, extent.widths
    bounds = len(extent.number)
    at, wide = extent.known, widths > 0
    change = _change(low, high, np.where(wide, rows / np.where(wide, widths, 1), 0), bounds)
    steps = np.diff(extent.number) * np.maximum(np.cumsum(change)[1 : max(1, bounds)], 0)
    spread = np.append(np.zeros(min(1, bounds)), np.cumsum(steps))
    points = np.bincount(low[at & ~wide], rows[at & ~wide], minlength=bounds + 2)[1 : bounds + 1]
    before = spread + np.cumsum(points) - points / 2
    total = max(1e-9, float(before[-1] + points[-1] / 2) if bounds else 0.0)
    place = np.arange(1, bounds + 1) + (before / total * POSITIONS).astype(np.int64)
    every = np.concatenate([[1], place, [POSITIONS + bounds + 1]])
    return np.where(extent.present, every[low], 0), np.where(extent.present, every[high], -1)


def _change(low: Ints, high: Ints, weight: Floats, bounds: int) -> Floats:
    """Return by how much the sum of *weight* over files changes behind each rank."""
    size = bounds + 2
    begins = np.bincount(low, weight, minlength=size)
    return np.asarray(begins - np.bincount(np.maximum(high, 0), weight, minlength=size))


def part(boxes: Boxes, at: Ints) -> Boxes:
    """Return the boxes of the files at some indices."""
    return replace(boxes, low=boxes.low[at], high=boxes.high[at], rows=boxes.rows[at])


def _sample_files(boxes: Boxes) -> Boxes:
    if len(boxes.rows) <= SAMPLED_FILES:
        return boxes
    random = np.random.default_rng(SEED)
    return part(boxes, np.sort(random.choice(len(boxes.rows), SAMPLED_FILES, replace=False)))


def shares_by_column(space: Space) -> Floats:
    """Return the mean share of rows that range filters on each column alone read, of all files."""
    boxes, total = space.boxes, max(1, int(space.boxes.rows.sum()))
    found = []
    for column in range(boxes.low.shape[1]):
        ranges = queries(space.rows_at[:, [column]])[:, 0, :]
        above = _rows_until(boxes.low[:, column], boxes.rows, ranges[:, 1], side="right")
        below = _rows_until(boxes.high[:, column], boxes.rows, ranges[:, 0], side="left")
        found.append(float(np.mean(above - below)) / total)
    return np.array(found)


def _rows_until(bounds: Ints, rows: Ints, values: Ints, *, side: str) -> Ints:
    """Return the rows of files with bounds below each value (``left``), or up to it (``right``)."""
    order = np.argsort(bounds)
    sums = np.append(0, np.cumsum(rows[order]))
    at = np.searchsorted(bounds[order], values, side="left" if side == "left" else "right")
    return np.asarray(sums[at])


def numbers(ordered: pa.Array) -> Floats:
    """Return numbers that do not descend where *ordered* ascends.

    Args:
        ordered: Distinct values in ascending order, as ``rank`` returns them.
    """
    found = _to_floats(ordered)
    if len(found) < 2:  # noqa: PLR2004 - no distance
        return found
    low, high = np.quantile(found, (0.1, 0.9))
    far = found[-1] - found[0] > _FAR * (high - low)
    return np.arange(len(found), dtype=np.float64) if far else found


def _to_floats(ordered: pa.Array) -> Floats:
    return _of_texts(ordered) if is_bytes(ordered.type) else _floats(to_integers(ordered))


def _floats(values: pa.Array) -> Floats:
    found = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    plain = np.nan_to_num(np.asarray(found, np.float64), nan=_LARGEST)
    return np.asarray(np.clip(plain, -_LARGEST, _LARGEST))


def _of_texts(ordered: pa.Array) -> Floats:
    if not len(ordered):
        return np.zeros(0)
    texts = ordered.cast(pa.large_binary())
    _, places, data = texts.buffers()
    offsets = np.frombuffer(places, np.int64)[texts.offset :][: len(texts) + 1]
    shared = _common_prefix(texts[0].as_py(), texts[-1].as_py())
    padded = np.append(np.frombuffer(data or b"", np.uint8), np.uint8(0))
    found, ends = np.zeros(len(texts), np.int64), offsets[1:]
    for at in range(shared, shared + _BYTES):
        starts = offsets[:-1] + at
        found = found << 8 | np.where(starts < ends, padded[np.minimum(starts, ends)], 0)
    return found.astype(np.float64)


def _common_prefix(first: bytes, last: bytes) -> int:
    """Return the length of the prefix of two texts, and so of all texts between them."""
    pairs = zip(first, last, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(first), len(last)))
