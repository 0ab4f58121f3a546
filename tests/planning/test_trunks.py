"""Tables larger than a job: their trunk, and maintenance box by box."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.aging import A_ROW, SAMPLED, Aging, arrivals
from tests.kit.builders import MIB, file_table, request
from tests.kit.variants import slow
from zadapter.planning.maintenance import Limits, maintenance
from zadapter.planning.merges import Reason, groups_of

A_FILE, FILES, A_JOB = 300, 64, 8
LIMIT = A_JOB * A_FILE * A_ROW
GOALS = {"stationary": (1.40, 1.30), "skewed": (1.45, 1.40), "time": (1.10, 1.05)}
"""What filters read by file and by row group on average, x one fresh fit of everything."""


def maintained(table, **limits):
    """Do what the product would; every job is within its limit, and no file is in two of them."""
    plan = table.maintain(job_bytes=LIMIT, **limits)
    members = np.concatenate([[], *(rewrite.members for rewrite in plan.rewrites)])
    assert len(members) == len(set(members))
    assert max([0, *(rewrite.bytes for rewrite in plan.rewrites)]) <= LIMIT
    return plan


def first_clustered(kind, random, **limits):
    """Return a table that was clustered in pieces, by as many calls as there was work for."""
    table, calls = Aging(A_FILE), 0
    table.append(arrivals(kind, random, FILES * A_FILE, -1, 16), files=FILES)
    while maintained(table, **limits).rewrites:
        calls += 1
        assert calls < 3 * FILES // A_JOB
    return table


@pytest.mark.parametrize("kind", slow(*GOALS))
def test_filters_read_little_more_than_of_one_fresh_layout(kind):
    """Though no job holds more than an eighth of the table, and after appends for 16 days."""
    random = np.random.default_rng(4)
    table = first_clustered(kind, random)
    written, table.written, table.appended = table.written, 0, 0

    shares = []
    for day in range(16):
        table.append(arrivals(kind, random, int(1.6 * A_FILE), day, 16))
        assert maintained(table).rewrites
        if day % 8 == 7:
            shares.append(table.beside_fresh()[:2])

    assert written <= 2 * FILES * A_FILE
    assert (np.mean(shares, axis=0) <= GOALS[kind]).all()
    assert np.max(shares) <= 1.6
    assert table.written <= 2 * table.appended + FILES * A_FILE
    assert len(table.rows) == FILES * A_FILE + table.appended


@pytest.mark.slow
def test_calls_with_a_limit_follow_one_trunk():
    """It is read off the files that earlier calls wrote: boxes of all runs are the same."""
    random = np.random.default_rng(5)

    table = first_clustered("stationary", random, bytes=LIMIT)

    assert table.runs >= FILES // A_JOB
    assert table.written >= len(table.rows)
    assert table.beside_fresh()[1] <= 1.4
    low, high = (np.array([of(file.rows[:, 0]) for file in table.files]) for of in (np.min, np.max))
    below = [np.mean(low < cut) for cut in low if not ((low < cut) & (high >= cut)).any()]
    assert any(0.4 < share < 0.6 for share in below)


@pytest.mark.slow
def test_a_table_that_grows_beyond_a_job_gets_a_trunk():
    """That of its largest run. Once all files are cut along it, more columns are cut with time."""
    random = np.random.default_rng(6)
    table, shares = Aging(A_FILE), []
    table.files = table.anew(arrivals("stationary", random, 7 * A_FILE, -1, 16))
    for day in range(24):
        table.append(arrivals("stationary", random, A_FILE, day, 16))
        assert any(not maintained(table).rewrites for _ in range(6))
        if day % 8 == 7:
            shares.append(table.beside_fresh()[1])

    (trunk,) = {each.trunk for each in grown(table).rewrites if each.trunk}
    assert len({level.column for level in trunk.levels}) > 1
    assert trunk.boxes >= 31 / A_JOB
    assert np.mean(shares) <= 1.5
    assert table.written <= 4 * table.appended


def grown(table):
    """Return what the product would do after one more append."""
    table.append(arrivals("stationary", np.random.default_rng(1), 4 * A_FILE, 0, 1))
    return table.planned(job_bytes=LIMIT)


@pytest.mark.parametrize("kind", ["stationary", "time"])
def test_files_are_even(kind):
    """Those that a job writes, with 400 sampled rows a file."""
    table, random = Aging(3 * SAMPLED), np.random.default_rng(7)
    table.append(arrivals(kind, random, 128 * table.a_file, -1, 16), files=128)
    plan = table.planned(job_bytes=32 * table.a_file * A_ROW)
    trunk = table.fitted_trunk(plan)

    shares = []
    for rewrite in plan.rewrites:
        written = table.write(table.rows_of(rewrite), rewrite.cut_into, 1, (), trunk)
        sizes = np.array([len(file.rows) for file in written])
        shares += (sizes / sizes.mean()).tolist()

    assert len(plan.rewrites) == 4
    assert np.percentile(shares, 99) <= 1.3


ASKED = request(2)
RUNS = [ASKED.id + digit * 16 for digit in "abcd"]
WIDE = 0, 1 << 20


def table_of(*files):
    """A file table of (layout or None, size in MiB, range of c0 and of c1, None where unknown)."""
    none = pa.array(np.zeros(len(files), np.int64))
    return file_table(
        [str(number) for number in range(len(files))],
        sizes=[int(size * MIB) for _, size, *_ in files],
        rows=[int(size * 10_000) for _, size, *_ in files],
        layouts=[layout for layout, *_ in files],
        stats={
            f"c{n}": (
                *(pa.array([each[2 + n][i] for each in files], pa.int64()) for i in (0, 1)),
                none,
            )
            for n in (0, 1)
        },
    )


def slabs(layout, count, c1=WIDE):
    """A run of *count* files of 1 MiB, cut in the first column."""
    edges = np.linspace(*WIDE, count + 1).astype(int)
    return [(layout, 1, (low, high - 1), c1) for low, high in pairwise(edges.tolist())]


def planned(*files, jobs_hold=8):
    return maintenance(table_of(*files), ASKED, [], Limits(job_bytes=jobs_hold * MIB))


def paths(rewrites):
    return [sorted(g.files["path"].to_pylist(), key=int) for g in groups_of(rewrites)]


def test_a_job_is_one_box():
    """The runs in it are merged without those in other boxes, and need no trunk for it."""
    runs = [file for layout in RUNS for file in slabs(layout, 8)]

    plan = planned(*runs)

    boxes = [{int(path) % 8 for path in each} for each in paths(plan.rewrites)]
    assert sorted(map(sorted, boxes)) == [[box] for box in range(8)]
    assert {len(each.members) for each in plan.rewrites} == {4}
    assert {each.ahead for each in plan.rewrites} == {(3, 0)}
    assert {each.trunk for each in plan.rewrites} == {None}


def test_new_files_are_cut_along_the_trunk():
    """Along all of it where they fill its boxes, or else along its first levels."""
    old = slabs(RUNS[0], 32)

    (many,) = planned(*old, (None, 5, WIDE, WIDE)).rewrites
    (few,) = planned(*old, (None, 0.5, WIDE, WIDE)).rewrites

    assert (many.reason, few.reason) == (Reason.NEW, Reason.NEW)
    assert many.trunk.boxes == 8
    assert many.cut_into >= 8
    assert few.trunk.boxes == 4
    assert {level.column for level in many.trunk.levels} == {0}


def test_new_files_within_a_box_are_merged_there():
    """Such as those of the last day, in a table that is cut by time."""
    old = slabs(RUNS[0], 32)
    day = old[-1][2]

    (new,) = planned(*old, (None, 0.5, day, WIDE)).rewrites

    assert new.trunk is None
    assert "32" in paths([new])[0]


def test_files_of_unknown_bounds_are_left_alone():
    """They may lie in any box."""
    unknown = RUNS[1], 4, (None, None), WIDE

    assert planned(*slabs(RUNS[0], 32), unknown).rewrites == ()


def test_runs_written_before_there_was_a_trunk_are_cut_along_it():
    """If they straddle the cuts of the largest run."""
    old, wide = slabs(RUNS[0], 32), (RUNS[1], 3, WIDE, WIDE)

    (moved,) = planned(*old, wide).rewrites

    assert (moved.reason, paths([moved])) == (Reason.MERGED, [["32"]])
    assert moved.trunk.boxes == 8


def test_without_bounds_there_is_no_trunk():
    """Parts that fit in a job are clustered by themselves, as in a table whose limit is a file."""
    files = [(RUNS[0], 1, (None, None), (None, None))] * 32

    (new,) = planned(*files, (None, 2, (None, None), (None, None))).rewrites

    assert (new.reason, new.trunk) == (Reason.NEW, None)


def test_a_curve_that_is_no_tree_has_no_trunk():
    """A grid cannot begin with the cuts of another."""
    grid = request(2, curve="hilbert")
    files = table_of(*[(None, 1, WIDE, WIDE)] * 32)

    plan = maintenance(files, grid, [], Limits(job_bytes=8 * MIB))

    assert {each.trunk for each in plan.rewrites} == {None}
