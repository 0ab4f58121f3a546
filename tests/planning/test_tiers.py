"""Hot files are left alone, warm ones are merged as ever, cold ones become larger, once."""

from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import MIB, file_table, fitted, request
from tests.kit.variants import slow_but
from zadapter.layout.cold import COLD, request_for_cold, request_of_table
from zadapter.planning.file_groups import jobs
from zadapter.planning.file_size import heaviest_request
from zadapter.planning.maintenance import Limits, maintenance
from zadapter.planning.merges import Reason, groups_of
from zadapter.planning.tiers import Tiers

ASKED = request(2)
A_RUN, B_RUN = (ASKED.id + digit * 16 for digit in "ab")
COLD_RUN, OTHER_COLD = (request_for_cold(ASKED).id + digit * 16 for digit in "cd")
DAY = 86_400
TIERS = Tiers(
    column=("day",),
    hot_after=datetime.fromtimestamp(90 * DAY, timezone.utc),
    cold_before=datetime.fromtimestamp(60 * DAY, timezone.utc),
)
HOT, WARM, OLD = 100, 75, 10
"""Newest days of files of each tier."""


def table_of(*files, partition=None):
    """A file table of (layout or None, size in MiB, newest day); squares of the keys in a run."""
    side = 1 << 20
    cells = np.arange(len(files))
    low = np.array([0 if layout is None else n * side for n, (layout, *_) in enumerate(files)])
    high = np.where([layout is None for layout, *_ in files], len(files) * side, low + side - 1)
    none = pa.array(np.zeros(len(files), np.int64))
    keys = {f"c{c}": (pa.array(low), pa.array(high), none) for c in range(2)}
    days = (
        pa.array([day for *_, day in files], pa.timestamp("s"))
        if not files
        else pa.array([None if day is None else day * DAY for *_, day in files], pa.timestamp("s"))
    )
    return file_table(
        [str(cell) for cell in cells],
        sizes=[int(size * MIB) for _, size, _ in files],
        rows=[int(size * 10_000) for _, size, _ in files],
        layouts=[layout for layout, *_ in files],
        partition={} if partition is None else {"p": pa.array(partition)},
        stats=keys | {"day": (days, days, none)},
    )


def planned(table, columns=(), tiers=TIERS, **limits):
    asked = Limits(**{"job_bytes": 1 << 50} | limits)
    return maintenance(table, ASKED, columns, asked, tiers=tiers)


def chosen(plan):
    """The reason, and the files, of each rewrite."""
    return {
        tuple(sorted(group.files["path"].to_pylist(), key=int)): group.reason
        for group in groups_of(plan.rewrites)
    }


def test_hot_files_are_left_alone():
    """Whatever else there is, and whether they are clustered."""
    table = table_of((None, 1, HOT), (None, 1, WARM), (None, 1, WARM), (A_RUN, 1, HOT))

    assert chosen(planned(table)) == {("1", "2"): Reason.FIRST.value}


def test_cold_files_become_larger():
    """A run of files of the usual size is fitted anew, with row groups as large as before."""
    plan = planned(table_of(*[(A_RUN, 1.0, OLD)] * 16))

    (rewrite,) = plan.rewrites
    assert (rewrite.reason, rewrite.cold) == (Reason.COLD, True)
    assert rewrite.cut_into == 16 // COLD
    assert rewrite.row_groups == COLD * ASKED.row_groups


def test_cold_files_are_fitted_once():
    """What a cold layout wrote stays, and so does a run of as few files as it would become."""
    done = table_of(*[(COLD_RUN, 4.0, OLD)] * 4, *[(A_RUN, 1.0, WARM)] * 4)
    small = table_of((A_RUN, 1.0, OLD))

    assert planned(done).rewrites == planned(small).rewrites == ()


def test_without_tiers_cold_files_are_clustered():
    """A call that forgets the argument does not cut them to the usual size again."""
    done = table_of(*[(COLD_RUN, 4.0, OLD)] * 8)

    assert planned(done, tiers=None).rewrites == ()


def test_partitions_are_judged_by_themselves():
    """An old one is fitted whole; one with warm files waits for enough cold ones."""
    files = [(A_RUN, 1.0, OLD)] * 8 + [(A_RUN, 1.0, OLD)] * 8 + [(A_RUN, 1.0, WARM)]
    table = table_of(*files, partition=["old"] * 8 + ["new"] * 9)

    assert chosen(planned(table, ["p"])) == {
        tuple(map(str, range(8))): Reason.COLD.value,
    }


def test_enough_files_that_became_cold_are_fitted_beside_others():
    """In a table without partitions, whose keys keep its files apart by time."""
    became = [(A_RUN, 1.0, OLD)] * 16
    table = table_of(*[(COLD_RUN, 4.0, OLD)] * 8, *became, *[(B_RUN, 1.0, WARM)] * 3)

    assert chosen(planned(table)) == {tuple(map(str, range(8, 24))): Reason.COLD.value}


def test_late_rows_of_cold_partitions_become_a_run():
    """They are new files there as elsewhere."""
    table = table_of(*[(COLD_RUN, 4.0, OLD)] * 8, *[(None, 1.0, OLD)] * 3)

    (rewrite,) = planned(table).rewrites
    assert rewrite.cold
    assert {"8", "9", "10"} <= set(*chosen(planned(table)))


def test_files_of_unknown_age_are_never_cold():
    """They are merged as ever."""
    (rewrite,) = planned(table_of(*[(None, 1.0, None)] * 8)).rewrites

    assert (rewrite.cold, rewrite.cut_into) == (False, 8)


def test_tiers_do_not_share_a_job():
    """Since their files differ in size; within limits, cold files come last."""
    table = table_of(*[(None, 1.0, WARM)] * 8, *[(None, 1.0, OLD)] * 8)
    plan, limited = planned(table), planned(table, files=8)

    found = jobs(groups_of(plan.rewrites), ASKED, max_job_bytes=1 << 50)
    assert sorted(job.cold for job in found) == [False, True]
    assert [each.cold for each in limited.rewrites] == [False]
    assert [each.cold for each in limited.left] == [True]


@pytest.mark.parametrize(("limit", "tables"), slow_but((8, 12), of=[(8, 12), (8, 40), (64, 40)]))
def test_every_file_is_chosen_once_at_most(limit, tables):
    """In whatever tiers, partitions and layouts the files are, and if jobs are small."""
    random = np.random.default_rng(3)
    layouts = [None, A_RUN, B_RUN, COLD_RUN, OTHER_COLD]
    for _ in range(tables):
        files = [
            (layouts[random.integers(5)], random.choice([0.2, 1.0, 4.0]), day)
            for day in random.choice([HOT, WARM, OLD], 60).tolist()
        ]
        table = table_of(*files, partition=random.integers(0, 3, 60).tolist())

        plan = planned(table, ["p"], job_bytes=limit * MIB)

        taken = np.concatenate([each.members for each in plan.rewrites]).tolist()
        assert len(set(taken)) == len(taken)
        for each in plan.rewrites:
            days = {files[at][2] for at in each.members.tolist()}
            assert days == ({OLD} if each.cold else {WARM})


def test_the_layout_of_the_table_is_not_that_of_its_cold_files():
    """So the next call does not make files larger still."""
    cold = fitted([[1, 2, 3]], 2)
    cold = replace(cold, request=request_for_cold(cold.request))
    files = file_table(["0"], sizes=[9], layouts=[cold.id])

    assert heaviest_request(files, {cold.id: cold}) == request_of_table(cold.request)
    assert request_of_table(request_for_cold(ASKED)) == ASKED == request_of_table(ASKED)
    assert type(ASKED).from_dict(request_for_cold(ASKED).to_dict()) == request_for_cold(ASKED)
