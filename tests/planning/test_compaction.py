"""Which small files are joined, and with which."""

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import MIB, file_table
from zadapter.planning.compaction import compaction, group_files
from zadapter.planning.maintenance import Limits

TARGET = 16 * MIB
NONE = Limits(job_bytes=1 << 40)


def names(joined):
    return [table["path"].to_pylist() for table in joined]


def chosen(files, limits=NONE, partition=()):
    """The files that each new file joins."""
    found = compaction(files, TARGET, partition, limits)
    return [names for job in found.jobs for names in names_of(job)]


def names_of(job):
    return names(group_files(job, TARGET))


def stats_of(low, high):
    return pa.array(low), pa.array(high), pa.array([0] * len(low))


def test_neighbours_in_the_column_that_tells_files_apart_are_joined():
    """Filters on it skip as much as before; by the files' names they would skip nothing."""
    at = np.random.default_rng(0).permutation(64)
    stats = {"key": stats_of([0] * 64, [9] * 64), "time": stats_of(at * 10, at * 10 + 10)}
    files = file_table([f"{n:02}" for n in range(64)], stats=stats)

    found = chosen(files)

    assert [len(paths) for paths in found] == [16] * 4
    times = [sorted(at[int(path)] for path in paths) for paths in found]
    assert times == [list(range(first, first + 16)) for first in range(0, 64, 16)]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1, 1, 1, 1], 0),  # too few to be worth a file
        ([1, 1, 1, 1, 1], 1),
        ([5, 5], 1),
        ([9, 15, 16, 20], 0),  # none is small
        ([7], 0),
    ],
)
def test_files_are_joined_if_they_are_many_or_fill_a_file(sizes, expected):
    files = file_table([str(n) for n in range(len(sizes))], sizes=[s * MIB for s in sizes])
    assert len(chosen(files)) == expected


def test_files_of_different_partitions_stay_apart():
    days = pa.array(["mon", "tue"] * 12)
    files = file_table([f"{n:02}" for n in range(24)], partition={"day": days})
    found = chosen(files, partition=("day",))
    assert sorted({int(path) % 2 for path in paths}.pop() for paths in found) == [0, 1]
    assert all(len({int(path) % 2 for path in paths}) == 1 for paths in found)


@pytest.mark.parametrize("limits", [{"files": 20}, {"bytes": 20 * MIB}])
def test_limits_hold_and_the_rest_is_left(limits):
    files = file_table([f"{n:02}" for n in range(64)])
    found = compaction(files, TARGET, (), Limits(job_bytes=1 << 40, **limits))
    assert sum(job.files.num_rows for job in found.jobs) == 16
    assert (found.files_left, found.bytes_left) == (3, 48 * MIB)


@pytest.mark.parametrize("limits", [{"files": 2}, {"bytes": 4 * MIB}])
def test_small_limits_lead_somewhere(limits):
    """Each call joins what it may, so that later ones go on."""
    files = file_table([f"{n:02}" for n in range(64)])
    found = compaction(files, TARGET, (), Limits(job_bytes=1 << 40, **limits))
    assert sum(job.files.num_rows for job in found.jobs) > 1


def test_jobs_write_few_files_each_and_no_partition_twice():
    """A commit that loses a race is small, and each file of a commit is known by its partition."""
    days = pa.array([str(n % 100) for n in range(1_000)])
    files = file_table([f"{n:04}" for n in range(1_000)], partition={"day": days})
    found = compaction(files, 5 * MIB, ("day",), NONE)
    assert all(sum(group.cut_into for group in job.groups) <= 64 for job in found.jobs)
    assert all(len({group.root for group in job.groups}) == len(job.groups) for job in found.jobs)
    assert sum(job.files.num_rows for job in found.jobs) == 1_000


def test_a_table_without_files_needs_nothing():
    found = compaction(file_table(["a"]).slice(0, 0), TARGET, (), NONE)
    assert (found.jobs, found.files_left) == ((), 0)
