"""What is rewritten together, and what is left alone."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.builders import MIB, file_table, fitted, request
from zadapter.layout.build import MAX_LEAVES
from zadapter.planning.file_groups import MAX_GROUPS, find_roots, jobs, roots_of
from zadapter.planning.maintenance import Limits, maintenance
from zadapter.planning.merges import Renewal, groups_of

ASKED = request(1)
OURS = fitted([np.arange(8)], 4)
"""A layout of the table as one partition."""
OTHER = fitted([np.arange(8)], 4, curve="linear")
GB = 1 << 30


def planned(files, *, wanted=ASKED, partition=(), most=256 * GB, force=False):
    chosen = maintenance(
        files, wanted, partition, Limits(job_bytes=most), renewal=Renewal(every=force)
    )
    groups = groups_of(chosen.rewrites)
    return jobs(groups, wanted, max_job_bytes=most)


def paths(table):
    return table["path"].to_pylist()


def files_of(*files, partition=()):
    """A table of files given as (size in MiB, layout or None)."""
    return file_table(
        [f"{number}" for number in range(len(files))],
        sizes=[int(size * MIB) for size, _ in files],
        layouts=[layout and layout.id for _, layout in files],
        partition=partition,
    )


def test_unclustered_files_are_rewritten_together():
    """Into as many files of the target size as there are bytes for, with cuts of their own."""
    (job,) = planned(files_of((2.2, None), (0.5, OTHER), (1.0, None)))
    (group,) = job.groups

    assert job.kept is None
    assert paths(job.files) == ["0", "1", "2"]
    assert group.root == ()
    assert group.cut_into == 4
    assert group.size == int(2.2 * MIB) + MIB // 2 + MIB


def test_clustered_files_are_left_alone():
    """Whatever their sizes."""
    files = files_of((0.01, OURS), (5, OURS), (1, OURS))

    assert planned(files) == planned(files.slice(0, 0)) == []


def test_force_rewrites_what_is_clustered():
    """With new cuts."""
    (job,) = planned(files_of((1, OURS), (2, OURS)), force=True)

    assert job.kept is None
    assert paths(job.files) == ["0", "1"]


def test_files_that_another_implementation_has_clustered_are_left_to_it():
    """Not even a reason to fit new cuts; they are taken by force only."""
    files = files_of((3, None), (9, None), (4, OURS), (9, OURS))
    owners = pa.array([None, "liquid", None, "liquid"])
    owned = files.append_column("owner", owners)

    (job,) = planned(owned)
    (forced,) = planned(owned, force=True)

    assert paths(job.files) == ["0"]
    assert paths(forced.files) == ["0", "1", "2", "3"]
    assert planned(owned.filter(pc.is_valid(owners))) == []


@pytest.mark.parametrize(
    ("sizes", "most", "parts"),
    [
        ([60, 60, 60], 100, [[0], [1], [2]]),
        ([50, 50, 50, 10], 100, [[0, 1], [2, 3]]),
        ([300, 1, 99, 1], 100, [[0], [1, 2], [3]]),
        ([1, 1, 1], 100, [[0, 1, 2]]),
    ],
)
def test_large_partitions_are_split(sizes, most, parts):
    """Into consecutive files of at most so many bytes, or one file; each part its own job."""
    found = planned(files_of(*((size, None) for size in sizes)), most=most * MIB)

    assert sorted(paths(job.files) for job in found) == [[str(n) for n in p] for p in parts]
    assert [len(job.groups) for job in found] == [1] * len(parts)


def test_a_partition_is_left_alone_when_another_changed():
    """A change costs the partition it is in, null being a partition as well."""
    both = fitted([np.arange(8)], 4, roots=[("1",), (None,)], root_of=np.arange(8) % 2)
    values = pa.array([1, 1, 1, None, None])
    files = files_of((3, both), (1, None), (3, both), (3, both), (3, both), partition={"p": values})

    (job,) = planned(files, partition=["p"])

    assert [group.root for group in job.groups] == [("1",)]


def test_jobs_have_room_for_their_partitions():
    """Few large partitions, or many small ones, largest first."""
    large = files_of(*[(2_000, None)] * 40, partition={"p": pa.array(range(40))})
    small = files_of(*[(1, None)] * 600, partition={"p": pa.array(range(600))})

    assert [len(job.groups) for job in planned(large, partition=["p"])] == [8] * 5
    assert sorted(len(job.groups) for job in planned(small, partition=["p"])) == [88, 256, 256]


@st.composite
def file_lists(draw):
    """Files of several partitions, by several layouts, of sizes around the target."""
    count = draw(st.integers(0, 30))
    kinds = st.sampled_from([None, OURS, OURS, KEPT, OTHER])
    drawn = draw(
        st.lists(st.tuples(st.sampled_from([0.2, 1, 3]), kinds), min_size=count, max_size=count)
    )
    number = st.sampled_from([None, 1, 2, 3])
    numbers = draw(st.lists(number, min_size=count, max_size=count))
    texts = draw(st.lists(st.sampled_from(["", "x", None]), min_size=count, max_size=count))
    partition = {"n": pa.array(numbers, pa.int32()), "t": pa.array(texts, pa.string())}
    return files_of(*drawn, partition=partition), list(zip(numbers, texts, drawn, strict=True))


KEPT = fitted(
    [np.arange(12)],
    3,
    roots=[(n, t) for n in ("1", "2", None) for t in ("", "x")],
    root_of=np.arange(12) % 6,
)


@given(drawn=file_lists(), most=st.sampled_from([1, 4, 1_000]), force=st.booleans())
@settings(deadline=None, max_examples=100)
def test_every_file_is_in_at_most_one_group(drawn, most, force):
    """New files of new partitions all, clustered ones only to be merged; every limit is kept."""
    files, rows = drawn

    found = planned(files, partition=["n", "t"], most=most * MIB, force=force)

    times = Counter(path for job in found for group in job.groups for path in paths(group.files))
    assert set(times.values()) <= {1}
    ours = {(n, t) for n, t, (_, layout) in rows if not force and layout in {OURS, KEPT}}
    assert {str(at) for at, (n, t, _) in enumerate(rows) if (n, t) not in ours} <= times.keys()
    for job in found:
        roots = [group.root for group in job.groups]
        assert len(set(roots)) == len(roots)
        assert sum(group.size for group in job.groups) <= most * MIB or len(roots) == 1
        assert job.kept is None
        for group in job.groups:
            members = [rows[int(path)] for path in paths(group.files)]
            assert {(n if n is None else str(n), t) for n, t, _ in members} == {group.root}
            assert group.size <= most * MIB or len(members) == 1


@given(drawn=file_lists())
@settings(deadline=None, max_examples=50)
def test_later_runs_find_nothing_to_do(drawn):
    """Once each job has written its own layout; a merge may make a second one pay."""
    files, _ = drawn
    at = files.schema.get_field_index("layout")
    for call in range(3):
        layout_of = dict(zip(paths(files), files["layout"].to_pylist(), strict=True))
        found = planned(files, partition=["n", "t"])
        for number, job in enumerate(found):
            layout_of |= dict.fromkeys(paths(job.files), f"{ASKED.id}{call:08x}{number:08x}")
        files = files.set_column(at, "layout", pa.array(layout_of.values(), pa.string()))

    assert planned(files, partition=["n", "t"]) == []


@given(sizes=st.lists(st.integers(1, 20_000), min_size=1, max_size=40), groups=st.integers(1, 99))
@settings(deadline=None, max_examples=50)
def test_jobs_fit_into_the_look_up_arrays(sizes, groups):
    """Every job's partitions get a root each, and the leaves that their files need."""
    files = files_of(
        *((size, None) for size in sizes), partition={"p": pa.array(np.arange(len(sizes)))}
    )

    found = planned(files, partition=["p"], wanted=request(row_groups=groups))

    for job in found:
        deepest = max(group.cut_into for group in job.groups)
        leaves = 1 << (deepest - 1).bit_length() + (groups - 1).bit_length()
        assert len(job.groups) <= MAX_GROUPS
        assert len(job.groups) == 1 or len(job.groups) * leaves <= MAX_LEAVES


values = st.lists(st.none() | st.integers(-2, 2), min_size=1, max_size=20)


@given(first=values, data=st.data())
@settings(deadline=None, max_examples=60)
def test_roots_are_the_distinct_partition_values(first, data):
    """Each row finds its own, by any number of columns; a null is a value like others."""
    second = data.draw(
        st.lists(st.sampled_from(["a", None]), min_size=len(first), max_size=len(first))
    )
    columns = [pa.array(first, pa.int64()), pa.array(second, pa.string())]

    roots, root_of = roots_of(columns, len(first))

    as_text = [None if n is None else str(n) for n in first]
    assert len(set(roots)) == len(roots)
    assert [roots[number] for number in root_of] == list(zip(as_text, second, strict=True))
    assert find_roots(roots, columns, len(first)).tolist() == root_of.tolist()
    assert find_roots(roots[1:], columns, len(first)).tolist() == (root_of - 1).tolist()


@pytest.mark.parametrize("rows", [0, 3])
def test_a_table_without_partitions_has_one_root(rows):
    """The empty tuple, if there are rows at all."""
    roots, root_of = roots_of([], rows)

    assert roots == [()][:rows]
    assert root_of.tolist() == [0] * rows
    assert find_roots([()], [], rows).tolist() == [0] * rows


@pytest.mark.slow
def test_a_million_files_are_planned():
    """In ten thousand partitions with a fresh file for each clustered one: these become runs."""
    count, wanted = 1_000_000, request(target_file_size=128 * MIB)
    files = file_table(
        [f"{number}" for number in range(count)],
        sizes=np.full(count, 128 * MIB),
        layouts=[wanted.id + "0" * 16, None] * (count // 2),
        partition={"p": pa.array(np.arange(count) // 100)},
    )

    found = planned(files, wanted=wanted, partition=["p"])
    sizes = [sum(group.size for group in job.groups) for job in found]

    assert sum(job.files.num_rows for job in found) == count // 2
    assert len({group.root for job in found for group in job.groups}) == 10_000
    assert max(sizes) <= 256 * GB
    assert len(found) <= 2 * sum(sizes) / (256 * GB)
