"""Range filters on a table of which only the rows of some files are sampled."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.kit.file_tables import ANY, bounds, table_of
from zadapter.base.ranks import rank
from zadapter.layout.predict import RankedSample, boxes_of_stats, queries, share_read
from zadapter.planning.table_sample import TableSample
from zadapter.rewrite import shares
from zadapter.table import file_stats
from zadapter.table.file_stats import row_counts

ROWS, FILES, LAST = 40_000, 20, 4
COLUMNS = (("c0",), ("c1",))


def rows_of(kind):
    """Return the keys of rows: those of the first files in no order, later ones by time."""
    random = np.random.default_rng(5)
    time = np.arange(ROWS) * 10 + random.integers(0, 1_000, ROWS)
    random.shuffle(time[: ROWS - LAST * ROWS // FILES])
    users = {
        "even": random.integers(0, 1 << 20, ROWS),
        "popular": np.minimum(random.zipf(1.3, ROWS), 1 << 40),
        "near": time + random.integers(0, ROWS // 2, ROWS),
        "texts": [f"user-{number:05}" for number in random.integers(0, 5_000, ROWS).tolist()],
    }
    return [pa.array(time), pa.array(users[kind])]


def files_of(rows):
    """Return a table of files with rows as they came in."""
    parts = [[column.slice(at, ROWS // FILES) for column in rows]
             for at in range(0, ROWS, ROWS // FILES)]  # fmt: skip
    types = {name: column.type for (name,), column in zip(COLUMNS, rows, strict=True)}
    return table_of(
        *(
            {name: bounds(pc.min(c).as_py(), pc.max(c).as_py())
             for (name,), c in zip(COLUMNS, part, strict=True)}
            for part in parts
        ),
        rows=ROWS // FILES,
        **types,
    )  # fmt: skip


def sample_of(columns):
    """Return sampled rows in ranks."""
    return RankedSample(COLUMNS[: len(columns)], tuple(map(rank, columns)))


@pytest.mark.parametrize("kind", ["even", "popular", "near", "texts"])
def test_filters_ask_for_rows_of_the_whole_table(kind):
    """Though only the rows that came in last are sampled, all of which have new times."""
    rows = rows_of(kind)
    files, ranked = files_of(rows), [rank(column) for column in rows]
    stats = [file_stats.column(files, column) for column in COLUMNS]
    asked = queries(np.stack([each.ranks for each in ranked], axis=1), 1_000, seed=41)
    of_all = share_read(boxes_of_stats(stats, row_counts(files), ranked), asked)
    start = ROWS - LAST * ROWS // FILES
    last = sample_of([column.slice(start).take(pa.array(range(0, ROWS - start, 7)))
                      for column in rows])  # fmt: skip
    whole = TableSample(last, ROWS - start, files.slice(0, FILES - LAST))

    assert shares.share_now(whole, files) == pytest.approx(of_all, abs=0.05)
    assert abs(shares.share_now(last, files) - of_all) > 0.1


@pytest.mark.parametrize("others", [[ANY, ANY], [], [bounds(0, 9) | {"count": 1}]])
def test_without_bounds_of_other_files_filters_ask_for_sampled_rows(others):
    """Nothing tells which values these files have, or they have next to no rows."""
    sampled = [pa.array(range(0, 1_000, 3))]
    known = table_of(*({"c0": bounds(at, at + 9)} for at in range(0, 1_000, 10)), c0=pa.int64())
    others = table_of(
        *({"c0": each, "rows": each.pop("count", 1_000)} for each in map(dict, others)),
        c0=pa.int64(),
    )
    whole = TableSample(sample_of(sampled), 1_000, others)

    assert shares.share_now(whole, known) == shares.share_now(sample_of(sampled), known)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([1.5, float("nan"), None], 2.0, float("nan")),
        ([Decimal("1.50"), None], Decimal("2.00"), Decimal("9.75")),
        ([dt.date(2026, 1, 1)], dt.date(2025, 1, 1), dt.date(2025, 2, 1)),
        ([dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)],
         *(dt.datetime(2025, month, 1, tzinfo=dt.timezone.utc) for month in (1, 2))),
        ([b"\xff", None], b"", b"\x80"),
        (["b", None], "", "a"),
        ([True, None], False, False),
        ([None], None, None),
        ([3, None], None, 5),
        ([3, None], 5, None),
    ],
)  # fmt: skip
def test_values_of_any_type_have_positions(values, low, high):
    """Also NaN, null, and bounds that only one side of a file has."""
    column = pa.array(values * 40, type=pa.int64() if values == [None] else None)
    files = table_of({"c0": bounds(low, high)}, {"c0": ANY}, c0=column.type)
    whole = TableSample(sample_of([column]), len(column), files)

    assert 0.5 <= shares.share_now(whole, files) <= 1


def test_many_other_files_leave_few_sampled_rows():
    """The filters are drawn from a bounded number of rows: those of each kind in proportion."""
    sampled = sample_of([pa.array(range(1_000_000, 1_000_400))])
    files = table_of(
        {"c0": bounds(0, 999_999)}, {"c0": bounds(1_000_000, 1_000_399)}, c0=pa.int64()
    )
    others = table_of({"c0": bounds(0, 999_999)}, rows=99_000, c0=pa.int64())

    placed, _ = TableSample(sampled, 1_000, others).place(files)

    newer = placed.ranges[:, 0, 0] >= placed.ranks.min()
    assert newer.mean() == pytest.approx(0.01, abs=0.01)
