"""Depth and shares are what counting file by file gives."""

import random
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.file_tables import ANY, bounds, table_of
from zadapter.layout.predict import Boxes, queries, share_read
from zadapter.table.overlap.depth import box_depths, depths, partition_numbers
from zadapter.table.overlap.extents import extent, numbers, shares_by_column, space

NOTHING = {"x": bounds(None, None, nulls=10)}
"""Stats of a file that has only nulls."""


def drawn(seed, count=40, places=30):
    """Return files with ranges of x in three partitions; some have no bounds, some no values."""
    dice = random.Random(seed)
    files = []
    for _ in range(count):
        low = dice.randrange(places)
        file = {"x": bounds(low, low + dice.choice([0, 0, 1, 5, places]))}
        file = dice.choice([file] * 8 + [{"x": ANY}, NOTHING])
        files.append({**file, "p": dice.randrange(3)})
    return files


def made(files):
    return table_of(*files, partition=["p"], x=pa.int64(), p=pa.int64())


def may_hold(stats, value):
    """Tell whether a file with these stats may hold a value."""
    if stats.get("min") is None:
        return stats is ANY
    return stats["min"] <= value <= stats["max"]


def holding(files, partition, value):
    """Count the files of a partition that may hold a value."""
    return sum(each["p"] == partition and may_hold(each["x"], value) for each in files)


@pytest.mark.parametrize("seed", range(20))
def test_depth_is_counted_at_every_value(seed):
    """At the lowest value of each file, and on average between its bounds."""
    files = drawn(seed)
    table = made(files)

    found = depths(extent(table, ("x",)), partition_numbers(table, ["p"])[0])

    ends = sorted({each["x"][side] for each in files for side in ("min", "max")
                   if each["x"].get("min") is not None})  # fmt: skip
    for file, most, mean in zip(files, found.most, found.mean, strict=True):
        if file["x"].get("min") is None:
            assert (most, mean) == (0, 0)
            continue
        low, high = file["x"]["min"], file["x"]["max"]
        assert most == holding(files, file["p"], low)
        inside = [at for at in ends if low <= at <= high]
        covered = sum(holding(files, file["p"], (a + b) / 2) * (b - a) for a, b in pairwise(inside))
        assert mean == pytest.approx(covered / (high - low) if high > low else most)
    summary = found.summary(np.full(len(files), 10))
    begun = {(f["p"], at) for f in files if f["x"].get("min") is not None
             for at in range(f["x"]["min"], f["x"]["max"] + 1)}  # fmt: skip
    assert summary.largest == max(holding(files, *point) for point in begun)


def test_files_that_all_overlap_are_as_deep_as_they_are_many():
    """However close together their lowest values are."""
    table = table_of(*({"x": bounds(n, 10_000 - n)} for n in range(12)), x=pa.int64())

    found = depths(extent(table, ("x",)), np.zeros(12, np.int64)).summary(np.full(12, 10))

    assert found.average == pytest.approx(12, abs=0.05)
    assert found.largest == 12


@pytest.mark.parametrize("seed", range(5))
def test_positions_keep_the_order_of_bounds(seed):
    """So boxes of positions overlap where ranges of values do, and nowhere else."""
    files = [file for file in drawn(seed) if file["x"].get("min") is not None]
    boxes = space([extent(made(files), ("x",))], np.full(len(files), 10)).boxes

    lows = np.array([file["x"]["min"] for file in files])
    highs = np.array([file["x"]["max"] for file in files])
    assert ((boxes.low <= boxes.high.T) == (lows[:, None] <= highs[None])).all()


@pytest.mark.parametrize("seed", range(5))
def test_shares_of_single_columns_are_those_of_every_query(seed):
    """The sums over sorted bounds are what each query reads, file by file."""
    table = made(drawn(seed))
    boxes = space([extent(table, ("x",))], np.arange(1, 41))

    ranges = queries(boxes.rows_at[:, [0]])
    assert shares_by_column(boxes)[0] == pytest.approx(share_read(boxes.boxes, ranges))


def test_boxes_that_do_not_overlap_have_depth_one():
    """In a grid of boxes every row lies in one of them, though each column alone is crowded."""
    x, y = (at.ravel() for at in np.meshgrid(np.arange(8), np.arange(8)))
    low = np.stack([x, y], axis=1) * 1_000
    boxes = Boxes(low, low + 999, np.full(64, 5))

    assert box_depths(boxes, np.zeros(64, np.int64)).largest == 1
    wide = Boxes(low * 0, low * 0 + 10, np.full(64, 5))
    assert box_depths(wide, np.zeros(64, np.int64)).average == 64
    assert box_depths(wide, np.arange(64)).average == 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array([-(2**63), 0, 2**63 - 1]),
        pa.array([float("-inf"), -0.5, 1e308, float("inf"), float("nan")]),
        pa.array(["", "a", "ab", "abc", "b", "é", "\U0010ffff"]),
        pa.array(["https://x/1", "https://x/10", "https://x/2"]),
        pa.array([b"", b"\x00", b"\xff"]),
        pa.array([Decimal("-1.5"), Decimal("0.0"), Decimal("99999999.9")]),
        pa.array([False, True]),
        pa.array([0, 1, 2], pa.date32()),
        pa.array([0, 10**15], pa.timestamp("us", "UTC")),
        pa.array([], pa.int64()),
        pa.array([], pa.string()),
    ],
    ids=lambda values: str(values.type),
)
def test_numbers_ascend_with_the_values(values):
    """So ranges of them are as ordered as the values are."""
    found = numbers(values)

    assert len(found) == len(values)
    assert (np.diff(found) >= 0).all()
    assert np.isfinite(found).all()


def test_texts_are_as_far_apart_as_the_bytes_behind_their_prefix():
    """Seven bytes count, zeros behind the end of a text, also in slices."""
    texts = ["b", "bc", "bcdefghx", "bcdefghxy", "bé"]
    behind = [text.encode()[1:8].ljust(7, b"\0") for text in texts]
    expected = [float(int.from_bytes(each, "big")) for each in behind]

    for type_ in (pa.string(), pa.large_string()):
        found = numbers(pa.array(["a", *texts, "z"], type_).slice(1, len(texts)))

        assert found.tolist() == expected


def test_an_outlier_does_not_hide_the_others():
    """Beside one value that is far away, the others still have widths."""
    found = numbers(pa.array([*map(float, range(20)), 1e300]))

    assert (np.diff(found) > 0).all()
