"""What rewrites are predicted to save is what rows that are really rewritten save."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.aging import A_ROW, KINDS, LIMITS, Aging, arrivals, cost, filters, table_of
from tests.kit.builders import MIB, file_table, request
from zadapter.lake.judging import Terms, judge, steps
from zadapter.planning.cost import ObjectStore, Prices
from zadapter.planning.maintenance import Limits
from zadapter.table.file_stats import row_counts
from zadapter.table.overlap.extents import extent, space

A_FILE, FILES, DAYS = 500, 16, 30


def judged(files, asked, *, partition=(), terms=None, **limits):
    """Return the steps of a file table."""
    boxes = space([extent(files, column) for column in asked.columns], row_counts(files))
    limits = Limits(**LIMITS | limits)
    return steps(files, asked, partition, limits, boxes, terms or Terms())


def grown(kind, nights, seed=0):
    """Return a table of raw files that is maintained each night, and as many arrivals later."""
    random = np.random.default_rng(seed)
    table = Aging(A_FILE)
    table.append(arrivals(kind, random, FILES * A_FILE, -1, DAYS), files=2 * FILES)
    for night in range(nights):
        table.maintain()
        table.append(arrivals(kind, random, A_FILE, night, DAYS), files=4)
    return table


def read(table, asked):
    """Return the shares of all rows that filters read: by file, and by row group with openings."""
    by_file, _, by_group = cost(table.files, asked, A_FILE)
    return np.array([by_file, by_group]) / len(asked[0]) / len(table.rows)


@pytest.mark.parametrize("nights", [0, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_what_steps_save_is_what_filters_read_less(kind, nights):
    """The filters of the measurement are others than those of the prediction."""
    table = grown(kind, nights)
    asked = filters(table.rows)
    found = judged(table_of(table.files), table.request)
    before = read(table, asked)

    table.maintain()

    by_file, by_group = before - read(table, asked)
    assert found
    assert sum(step.share for step in found) == pytest.approx(by_file, abs=0.05)
    total = len(table.rows) * A_ROW
    assert sum(step.saved for step in found) / total == pytest.approx(by_group, abs=0.05)


def test_a_table_that_was_just_rewritten_has_no_steps():
    table = grown("stationary", 0)
    table.maintain()

    assert judged(table_of(table.files), table.request) == ()


def days(*, new=(), layouts=None, days=4):
    """Return files of a table partitioned by day; those of the days *new* are raw."""
    asked = request(2)
    day = np.repeat(np.arange(days), 8)
    run = [None if each in new else asked.id + "0" * 8 for each in day.tolist()]
    low, none = np.zeros(len(day), np.int64), pa.array(np.zeros(len(day), np.int64))
    files = file_table(
        [f"{number:03}" for number in range(len(day))],
        layouts=layouts or run,
        partition={"day": pa.array(day)},
        stats={f"c{at}": (pa.array(low), pa.array(low + 1_000), none) for at in range(2)},
    )
    return files, asked


def test_each_partition_that_is_due_is_a_step():
    files, asked = days(new=(1, 3))

    found = judged(files, asked, partition=["day"])

    assert [step.files for step in found] == [8, 8]
    assert [step.bytes for step in found] == [8 * MIB, 8 * MIB]
    assert all(0 < step.saved < step.bytes for step in found)


def test_many_partitions_are_as_those_that_are_predicted():
    """Only some are predicted; the others, which are like them, save as much."""
    files, asked = days(new=range(40), days=40)

    saved = [step.saved for step in judged(files, asked, partition=["day"])]

    assert len(saved) == 40
    assert max(saved) == pytest.approx(min(saved), rel=0.2)


def test_a_first_rewrite_larger_than_the_budget_is_due_in_parts():
    """Each of them fits, and together they are all files."""
    files, asked = days(new=(0,), days=1)

    found = judged(files, asked, bytes=3 * MIB)

    assert [step.bytes for step in found] == [3 * MIB, 3 * MIB, 2 * MIB]


def test_a_prefix_of_the_steps_is_what_a_call_of_so_many_bytes_rewrites():
    table = grown("stationary", 0)
    files = table_of(table.files)
    most = int(files["size"].to_numpy()[:10].sum())

    found = judged(files, table.request, bytes=most)

    assert len(found) > 1
    assert table.planned(bytes=found[0].bytes).rewrites[0].bytes == found[0].bytes


@pytest.mark.parametrize("options", [{}, {"weights": [2, 1]}, {"curve": "linear"}])
def test_first_rewrites_that_bring_nothing_are_no_steps(options):
    """All rows have one key: no cut can tell them apart, whatever the weights of the columns."""
    none = pa.array([0] * 4, pa.int64())
    one = pa.array([7] * 4, pa.int64())
    stats = {f"c{at}": (one, one, none) for at in range(2)}
    files = file_table(list("abcd"), sizes=8 * MIB, stats=stats)

    assert judged(files, request(2, **options)) == ()


def one_file(rows):
    """Return a table of one file, whose bounds are wider than its rows, as those of long texts."""
    low, high, none = (pa.array([value], pa.int64()) for value in (7, 7 + rows, 0))
    return file_table(["a"], sizes=2_000, rows=rows, stats={"c0": (low, high, none)})


def test_a_file_of_one_row_is_not_due():
    """It cannot be divided, as the sample of a rewrite would tell."""
    assert judged(one_file(1), request(1)) == ()


def test_one_file_becomes_neither_fewer_nor_larger():
    (step,) = judged(one_file(1_000), request(1))

    assert (step.share, step.files, step.fewer) == (0.0, 1, 0)
    assert step.saved > 0


def test_prices_are_those_of_the_store():
    files, asked = days(new=(1,))
    prices = Prices(put=5.0, core_hour=1.0)

    free, cores, billed = (
        judged(files, asked, partition=["day"], terms=Terms(prices=price, store=store))[0]
        for price, store in (
            (None, None),
            (prices, None),
            (prices, ObjectStore(renames=False)),
        )
    )

    assert free.money == 0
    assert cores.money == pytest.approx(free.seconds / 3600)
    assert billed.money > cores.money
    assert replace(billed, money=0) == free


def test_steps_are_those_that_are_judged():
    files, asked = days(new=(1, 3))
    boxes = space([extent(files, column) for column in asked.columns], row_counts(files))

    found = judge(files, asked, ["day"], Limits(**LIMITS), boxes)

    assert tuple(step for _, step in found) == judged(files, asked, partition=["day"])
    assert [len(rewrite.members) for rewrite, _ in found] == [step.files for _, step in found]
