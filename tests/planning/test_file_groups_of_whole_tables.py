"""What is written where all of a table is: every file once, along the cuts that are known."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.builders import MIB, file_table, fitted, request
from zadapter.planning.file_groups import every_job

ASKED = request(1)
OURS = fitted([np.arange(8)], 4)
"""A layout of the table as one partition."""
OTHER = fitted([np.arange(8)], 4, curve="linear")
GB = 1 << 30


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


def unsorted(files, mixed):
    """The same files, some of them with rows of several partitions."""
    cut = files["partition"].combine_chunks()
    cut = pa.StructArray.from_arrays([cut.field(0)], fields=list(cut.type), mask=mixed)
    field = files.schema.field("partition")
    return files.set_column(files.schema.get_field_index("partition"), field, cut)


def every(files, layouts=(), *, wanted=ASKED, partition=(), most=256 * GB):
    kept = {layout.id: layout for layout in layouts}
    return every_job(files, wanted, partition, kept, max_job_bytes=most)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.floats(0.1, 3), st.sampled_from([None, "kept", "lost", "other"]), st.integers(0, 3)
        ),
        max_size=20,
    ),
    st.floats(0.5, 8),
)
def test_every_file_is_written_once(files, most):
    """Whatever placed its rows, whatever its partition, and whether that is known or not."""
    kept = fitted([np.arange(8)], 4, roots=[("0",), ("1",)], root_of=np.arange(8) % 2)
    lost = fitted([np.arange(9) ** 2], 4, roots=[("0",)])
    layouts = {None: None, "kept": kept, "lost": lost, "other": OTHER}
    values = pa.array([value for *_, value in files], pa.int64())
    placed_by = [(size, layouts[name]) for size, name, _ in files]
    table = files_of(*placed_by, partition={"p": values})
    table = unsorted(table, pa.array([value == 3 for *_, value in files], pa.bool_()))

    found = every(table, [kept, OTHER], partition=["p"], most=int(most * MIB))

    written = [path for job in found for group in job.groups for path in paths(group.files)]
    assert sorted(written) == sorted(paths(table))
    assert all(group.cut_into >= 1 for job in found for group in job.groups)
    for job in found:
        assert len(set(job.roots)) == len(job.roots)
        assert job.kept in {None, kept}
        assert job.kept is None or {*job.roots} <= {*kept.roots}
        assert len(job.groups) == 1 or None not in {group.root for group in job.groups}


@pytest.mark.parametrize(
    ("ours", "theirs", "follows"), [(2, 2, True), (2, 2.01, False), (2, 0, True), (0.5, 2, False)]
)
def test_cuts_are_followed_where_they_placed_most_of_the_bytes(ours, theirs, follows):
    """Then all rows are, those that they have not placed as well."""
    (job,) = every(files_of((ours, OURS), (theirs, None)), [OURS])

    assert (job.kept is OURS) == follows
    assert paths(job.files) == ["0", "1"]


def test_cuts_are_followed_partition_by_partition():
    """The one has changed since, the other has not; where they know no root, they tell nothing."""
    both = fitted([np.arange(8)], 4, roots=[("1",), (None,)], root_of=np.arange(8) % 2)
    values = pa.array([1, None, 2, 2, None])
    files = files_of((1, both), (1, both), (9, both), (1, None), (5, None), partition={"p": values})

    anew, kept = every(files, [both], partition=["p"])

    assert (anew.kept, kept.kept) == (None, both)
    assert {group.root: sorted(paths(group.files)) for group in anew.groups} == {
        (None,): ["1", "4"],
        ("2",): ["2", "3"],
    }
    assert {group.root: paths(group.files) for group in kept.groups} == {("1",): ["0"]}


def test_cuts_that_are_gone_are_not_followed():
    """Nor those of another request, nor those of another type of the column."""
    text = pa.array(["a"])
    other_type = file_table(
        ["0"], layouts=[OURS.id], stats={"c0": (text, text, pa.array([0], pa.int64()))}
    )

    assert every(files_of((1, OURS)))[0].kept is None
    assert every(files_of((1, OTHER)), [OTHER])[0].kept is None
    assert every(other_type, [OURS])[0].kept is None


def test_a_table_that_is_placed_is_written_all_the_same():
    """It is another table that is written."""
    files = files_of((1, OURS), (1, OURS))

    assert [paths(job.files) for job in every(files, [OURS])] == [["0", "1"]]
    assert every(files.slice(0, 0), [OURS]) == []


@pytest.mark.parametrize(
    ("sizes", "most", "cut_into"),
    [
        ([10], 100, [10]),
        ([0.1], 100, [1]),
        ([1.4, 1.3], 100, [3]),
        ([60, 60, 60], 100, [60, 60, 60]),
        ([50, 50, 10], 100, [10, 100]),
    ],
)
def test_groups_are_cut_into_files_of_the_target_size(sizes, most, cut_into):
    found = every(files_of(*((size, None) for size in sizes)), most=most * MIB)

    assert sorted(group.cut_into for job in found for group in job.groups) == cut_into


def test_a_partition_that_follows_its_cuts_is_never_split():
    """Two jobs along the same cuts would write two files for each."""
    (job,) = every(files_of((60, OURS), (60, OURS), (60, OURS)), [OURS], most=100 * MIB)

    assert [group.cut_into for group in job.groups] == [180]


def test_files_of_several_partitions_are_alone():
    files = files_of((1, None), (1, None), partition={"p": pa.array([1, 1])})
    files = unsorted(files, pa.array([False, True]))

    unknown, known = every(files, partition=["p"])

    assert (known.roots, paths(known.files)) == ([("1",)], ["0"])
    assert (unknown.roots, paths(unknown.files)) == ([], ["1"])
    assert unknown.groups[0].root is None
