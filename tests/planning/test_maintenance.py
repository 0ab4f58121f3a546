"""Which files maintenance chooses from a file table, and within which limits."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import MIB, file_table, request
from zadapter.planning.maintenance import MANY_PARTITIONS, Limits, maintenance
from zadapter.planning.merges import Reason, groups_of

ASKED = request(2)
A_RUN, B_RUN = (ASKED.id + digit * 16 for digit in "ab")
OTHER_REQUEST = "0" * 32
WIDE = 0, 1 << 20


def table_of(*files, partition=None):
    """A file table of (layout or None, size in MiB, ranges of c0 and c1)."""
    bounds = np.array([ranges for _, _, *ranges in files]).reshape(len(files), 2, 2)
    none = pa.array(np.zeros(len(files), np.int64))
    return file_table(
        [str(number) for number in range(len(files))],
        sizes=[int(size * MIB) for _, size, *_ in files],
        rows=[int(size * 10_000) for _, size, *_ in files],
        layouts=[layout for layout, *_ in files],
        partition={} if partition is None else {"p": partition},
        stats={
            f"c{column}": (
                pa.array(bounds[:, column, 0]),
                pa.array(bounds[:, column, 1]),
                none,
            )
            for column in range(2)
        },
    )


def run(layout, side, size=1.0):
    """The files of a run: side x side squares of the whole range."""
    edges = np.linspace(*WIDE, side + 1).astype(int)
    return [
        (layout, size, (edges[i], edges[i + 1] - 1), (edges[j], edges[j + 1] - 1))
        for i in range(side)
        for j in range(side)
    ]


def raw(size=1.0, c0=WIDE, c1=WIDE):
    return None, size, c0, c1


def planned(table, columns=(), **limits):
    return maintenance(table, ASKED, columns, Limits(**{"job_bytes": 1 << 50} | limits))


def paths(rewrites):
    return [sorted(g.files["path"].to_pylist(), key=int) for g in groups_of(rewrites)]


def test_a_table_never_clustered_is_fitted_as_a_whole():
    """As one rewrite with files of the target size, or as several that fit in a job."""
    files = table_of(raw(2), raw(1), (OTHER_REQUEST, 3, WIDE, WIDE), raw(2))

    (whole,) = planned(files).rewrites
    parts = planned(files, job_bytes=4 * MIB).rewrites

    assert (whole.reason, whole.cut_into, whole.row_groups) == (Reason.FIRST, 8, 8)
    assert paths([whole]) == [["0", "1", "2", "3"]]
    assert paths(parts) == [["0", "1"], ["2"], ["3"]]


def test_files_of_another_layout_are_not_said_to_have_none():
    """Other keys clustered them a minute ago, and the reason is true of them as of raw files."""
    (whole,) = planned(table_of((OTHER_REQUEST, 3, WIDE, WIDE), raw(2))).rewrites

    assert [group.reason for group in groups_of([whole])] == ["not in this layout"]


def test_new_files_become_a_run_of_small_files():
    """Their rows are few beside the table's, which stays as it is."""
    files = table_of(*run(A_RUN, 8), raw(), raw(0.5))

    plan = planned(files)

    (new,) = plan.rewrites
    assert (new.reason, paths([new])) == (Reason.NEW, [["64", "65"]])
    assert new.cut_into == 12
    assert new.cut_into * new.row_groups <= 3 * 1.5 * ASKED.row_groups
    assert new.gain.after < new.gain.before < new.gain.read
    assert (plan.left, plan.declined) == ((), ())
    assert [(each.reason, each.bytes) for each in plan.anew] == [(Reason.ANEW, int(65.5 * MIB))]


def test_a_run_as_large_as_the_others_is_merged_with_them():
    """Everything is fitted anew, since filters read much more from two runs than from one."""
    files = table_of(*run(A_RUN, 4), *run(B_RUN, 4, 0.9), raw())

    plan = planned(files)

    (anew,) = plan.rewrites
    assert plan.anew[0] is anew
    assert (anew.reason, len(anew.members), anew.raw) == (Reason.ANEW, 33, 10_000)
    assert anew.cut_into == round(16 + 0.9 * 16 + 1)


def test_runs_of_other_days_are_left_apart():
    """Their boxes do not overlap in the first key: a merge would save next to nothing."""
    days = [
        (ASKED.id + f"{day:016x}", 1.0, (day << 20, (day + 1 << 20) - 1), WIDE) for day in range(9)
    ]
    split = [
        (day, 0.25, c0, (k << 18, (k + 1 << 18) - 1)) for day, _, c0, _ in days for k in range(4)
    ]

    assert planned(table_of(*split)).rewrites == ()


def test_rows_of_a_day_are_cut_by_the_other_keys():
    """Since the days cut them by time already."""
    old = [(A_RUN, 1.0, (day << 20, (day + 1 << 20) - 1), WIDE) for day in range(32)]

    (new,) = planned(table_of(*old, raw(c0=(32 << 20, 33 << 20)))).rewrites

    assert new.reason is Reason.NEW
    assert new.ahead == (5, 0)


def test_a_rewrite_never_mixes_partitions():
    """Each is judged by itself; null is a partition, too."""
    files = table_of(
        *(*run(A_RUN, 2), raw()),
        *(*run(A_RUN, 2), *run(B_RUN, 2), raw(2)),
        raw(),
        *run(B_RUN, 2),
        partition=pa.array([1] * 5 + [2] * 9 + [None] + [3] * 4),
    )

    plan = planned(files, ["p"])

    found = {each.root: paths([each])[0] for each in plan.rewrites}
    assert set(found) == {("1",), ("2",), (None,)}
    assert found[None,] == ["14"]
    assert {"4"} <= set(found["1",]) <= set("01234")
    assert {"13"} <= set(found["2",]) <= {str(number) for number in range(5, 14)}


def test_files_of_several_partitions_are_always_rewritten():
    """They were written under another partition spec, clustered or not."""
    files = table_of(*run(A_RUN, 2), raw(), partition=pa.array([1] * 5))
    mixed = pa.array([True] + [False] * 4)
    field = files.schema.field("partition")
    values = pa.StructArray.from_arrays([pa.array([1] * 5)], fields=list(field.type), mask=mixed)
    files = files.set_column(files.schema.get_field_index("partition"), field, values)

    plan = planned(files, ["p"])

    assert {each.reason for each in plan.rewrites if "0" in paths([each])[0]} == {Reason.MIXED}


@pytest.mark.parametrize("files", [7, 40])
def test_the_limits_of_a_run_hold(files):
    """The best by bytes first; what does not fit is left, and no file is in both."""
    rows = [each for _ in range(12) for each in (*run(A_RUN, 2), raw(0.5), raw(0.25))]
    table = table_of(*rows, partition=pa.array(np.repeat(np.arange(12), 6)))
    everything = planned(table, ["p"]).rewrites

    plan = planned(table, ["p"], bytes=10 * MIB, files=files)

    taken = Counter(path for each in paths(plan.rewrites) for path in each)
    left = Counter(path for each in paths(plan.left) for path in each)
    assert sum(each.bytes for each in plan.rewrites) <= 10 * MIB
    assert 0 < sum(taken.values()) <= files
    assert max((taken + left).values()) == 1
    assert len(plan.rewrites) + len(plan.left) == len(everything) == 12


@pytest.mark.parametrize(
    ("limits", "taken", "left"),
    [
        ({"files": 3}, [["0", "1", "2"]], [["3", "4", "5"], ["6", "7"]]),
        ({"bytes": 3 * MIB}, [["0", "1", "2"]], [["3", "4", "5"], ["6", "7"]]),
        ({"bytes": MIB // 2}, [], [[str(number)] for number in range(8)]),
    ],
)
def test_a_table_never_clustered_is_taken_part_by_part(limits, taken, left):
    """By files and by bytes; one file that is too large stays, and is told of."""
    plan = planned(table_of(*[raw()] * 8), **limits)

    assert paths(plan.rewrites) == taken
    assert paths(plan.left) == left


def test_new_files_beyond_a_limit_become_several_runs():
    """So that a table that gets more than a call may take is not given up."""
    plan = planned(table_of(*run(A_RUN, 4), *[raw(0.5)] * 9), files=4)

    assert [each.reason for each in plan.rewrites] == [Reason.NEW]
    assert paths(plan.rewrites) == [["16", "17", "18", "19"]]
    assert [len(each) for each in paths(plan.left)] == [4, 1]


def test_small_runs_are_merged_under_a_limit_that_no_new_fit_meets():
    """Or their number would grow with every call."""
    small = [ASKED.id + f"{number:016x}" for number in range(8)]
    runs = [(layout, 0.25, *each[2:]) for layout in small for each in run(layout, 2)]

    plan = planned(table_of(*run(A_RUN, 8), *runs, raw(0.5)), bytes=10 * MIB)

    (merge,) = plan.rewrites
    assert merge.reason is Reason.MERGED
    assert len(merge.members) > 16


def test_a_merge_beyond_the_limits_is_left_for_later():
    """It pays; a call with a larger limit would make it."""
    layouts = [ASKED.id + digit * 16 for digit in "abcd"]
    table = table_of(*[each for layout in layouts for each in run(layout, 4)])

    plan = planned(table, bytes=20 * MIB)

    assert [len(each.members) for each in planned(table).rewrites] == [64]
    assert plan.rewrites == plan.declined == ()
    assert [len(each.members) for each in plan.left] == [64]


def test_what_a_job_cannot_hold_is_not_chosen():
    """A smaller merge is, and the new fit is still told of. So few files are not worth a trunk."""
    files = table_of(*run(A_RUN, 4), *run(B_RUN, 4), raw())

    plan = planned(files, job_bytes=3 * MIB)

    assert paths(plan.rewrites) == [["32"]]
    assert [len(each.members) for each in plan.anew] == [33]


@pytest.mark.parametrize(("deleted", "rewritten"), [(4_000, []), (4_500, [["5"]]), (None, [])])
def test_files_with_many_deleted_rows_are_rewritten(deleted, rewritten):
    """Above 0.3 of a file's rows, though filters would read as much; others are left alone."""
    files = table_of(*run(A_RUN, 4))
    counts = [deleted if number == 5 else 100 for number in range(16)]
    files = files.append_column("deleted", pa.array(counts, pa.int64()))

    plan = planned(files)

    assert paths(plan.rewrites) == rewritten
    assert {each.reason for each in plan.rewrites} <= {Reason.WORN}


def test_the_same_files_have_the_same_plan():
    """In any order of the file table."""
    files = table_of(*run(A_RUN, 3), *run(B_RUN, 2, 0.5), raw(), raw(0.5, c0=(5, 99)))
    order = np.random.default_rng(1).permutation(files.num_rows)

    one, other = (planned(each).rewrites for each in (files, files.take(pa.array(order))))

    assert paths(one) == paths(other)
    assert [each.gain for each in one] == [each.gain for each in other]


def test_partitions_beyond_the_largest_are_planned_by_their_sizes():
    """In the same way, if their boxes say nothing else."""
    count = MANY_PARTITIONS + 1
    rows = [each for n in range(count) for each in (*run(A_RUN, 4), raw(1 if n else 0.99))]
    table = table_of(*rows, partition=pa.array(np.repeat(range(count), 17)))

    found = {each.root: each for each in planned(table, ["p"]).rewrites}
    by_boxes, by_sizes = found["1",], found["0",]

    assert by_boxes.reason is by_sizes.reason is Reason.NEW
    assert by_boxes.gain.rows == pytest.approx(by_sizes.gain.rows, rel=0.1)
    assert by_boxes.gain.read == pytest.approx(by_sizes.gain.read, rel=0.1)


def test_a_table_of_single_runs_has_nothing_to_do():
    """However many partitions it has, and without a look at their boxes."""
    count = 100_000
    table = file_table(
        [""] * count, layouts=[A_RUN] * count, partition={"p": pa.array(np.arange(count))}
    )

    plan = planned(table, ["p"])

    assert (plan.rewrites, plan.left, plan.declined, plan.anew) == ((), (), (), ())


def test_a_partition_is_judged_by_itself():
    """Whatever the others are: all of them are computed at once."""
    random = np.random.default_rng(8)
    layouts = [A_RUN, B_RUN, ASKED.id + "c" * 16, None]
    files = [(layouts[random.integers(4)], random.uniform(0.1, 2), WIDE, WIDE) for _ in range(300)]
    partition = random.integers(0, 2 * MANY_PARTITIONS, 300)
    every = table_of(*files, partition=pa.array(partition)).drop_columns(["stats"])
    every = every.append_column("stats", pa.nulls(300, pa.struct([])))

    together = planned(every, ["p"]).rewrites

    alone = [
        planned(every.filter(pa.array(partition == number)), ["p"]).rewrites
        for number in np.unique(partition)
    ]
    assert len(together) > MANY_PARTITIONS
    assert {(each.root, each.cut_into, each.row_groups, each.bytes) for each in together} == {
        (each.root, each.cut_into, each.row_groups, each.bytes) for some in alone for each in some
    }
