"""Parts of exchanges that others have not touched, by the boxes of the files."""

from collections import Counter
from math import isnan
from random import Random

import pyarrow as pa
import pytest

from zadapter.rewrite.untouched_boxes import find_untouched
from zadapter.table.file_stats import Bounds, column_type
from zadapter.table.snapshot import Exchange

COLUMNS = ("x", "y")


def listed(files):
    """Return a file table of files: lists of pairs of values, by path."""
    stats = pa.struct([(name, column_type(pa.float64())) for name in COLUMNS])
    rows = [
        {
            "path": path,
            "rows": len(rows),
            "stats": dict(zip(COLUMNS, map(facts, zip(*rows, strict=True)), strict=True)),
        }
        for path, rows in files.items()
    ]
    types = {"path": pa.string(), "rows": pa.int64(), "stats": stats}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(types.items())))


def facts(values):
    numbers = [v for v in values if v is not None and not isnan(v)]
    return {
        "min": min(numbers, default=None),
        "max": max(numbers, default=None),
        "nulls": sum(v is None for v in values),
        "nans": sum(v is not None and isnan(v) for v in values),
        "bounds": int(Bounds.EXACT if numbers else Bounds.UNKNOWN),
    }


def cut(random, rows, files, by, name):
    """Return *rows* in files that column *by* mostly divides."""
    order = sorted(rows, key=lambda row: (row[by] is None, row[by] != row[by], row[by] or 0))
    if random.random() < 0.2:
        random.shuffle(order)
    size = -(-len(order) // files)
    return {f"{name}{at}": order[at : at + size] for at in range(0, len(order), size)}


@pytest.mark.parametrize("odd", [None, float("nan"), 0.5])
def test_the_part_holds_the_same_rows_before_and_after(odd):
    """Whatever the boxes, the removed and the added files of the part hold the same rows."""
    parts = 0
    for seed in range(1_500):
        random = Random(seed)
        rows = [
            tuple(
                random.choice([*range(8), odd]) if random.random() < 0.3 else random.random() * 9
                for _ in COLUMNS
            )
            for _ in range(24)
        ]
        old = cut(random, rows, random.randint(2, 8), seed % 2, "old")
        new = cut(random, rows, random.randint(2, 8), seed % 2, "new")
        touched = set(random.sample([*old], random.randint(1, 2)))
        part = find_untouched(Exchange(removed=listed(old), added=listed(new)), touched)
        if part is None:
            continue
        parts += 1
        removed, added = (files["path"].to_pylist() for files in (part.removed, part.added))
        assert not touched & set(removed)
        before = Counter(repr(row) for path in removed for row in old[path])
        assert before == Counter(repr(row) for path in added for row in new[path])
    assert parts > 50


def test_disjoint_boxes_are_exchanged_without_the_touched_one():
    """A file that others changed keeps back only the new files of its own range."""
    old = {f"old{n}": [(10.0 * n + i, 0.0) for i in range(10)] for n in range(4)}
    new = {f"new{n}": [(5.0 * n + i, 0.0) for i in range(5)] for n in range(8)}

    part = find_untouched(Exchange(removed=listed(old), added=listed(new)), {"old1"})

    assert part.removed["path"].to_pylist() == ["old0", "old2", "old3"]
    assert part.added["path"].to_pylist() == [f"new{n}" for n in (0, 1, 4, 5, 6, 7)]


def test_overlapping_boxes_stay_together():
    """Where every old file overlaps every new one, nothing can be exchanged."""
    old = {f"old{n}": [(float(n), 0.0), (99.0, 0.0)] for n in range(4)}

    assert find_untouched(Exchange(removed=listed(old), added=listed(old)), {"old1"}) is None
