"""Files that lack the Bloom filters of a request are rewritten, with the reason."""

from dataclasses import replace

import pytest

from tests.kit.builders import request
from tests.planning.test_maintenance import A_RUN, ASKED, paths, raw, run, table_of
from zadapter.layout.cold import request_for_cold
from zadapter.layout.layout import Layout
from zadapter.layout.store import LAST
from zadapter.planning.file_size import find_bloom_filters, other_bloom_filters
from zadapter.planning.maintenance import Limits, maintenance
from zadapter.planning.merges import Reason, Renewal

FILTERED = replace(ASKED, bloom_filters=(("c1",),))
LIMITS = Limits(job_bytes=1 << 50)


@pytest.mark.parametrize("with_filters", [0, 9])
def test_files_with_other_filters_are_rewritten(with_filters):
    """Whether others of the partition have the right ones or not; a small new file may wait."""
    done = run(FILTERED.id + "c" * 16, 3)[:with_filters]
    files = table_of(*done, *run(A_RUN, 4), raw(0.01))
    renewal = Renewal(outdated={ASKED.id})

    found = maintenance(files, FILTERED, [], LIMITS, renewal=renewal).rewrites

    taken = {int(path) for several in paths(found) for path in several}
    assert taken >= set(range(with_filters, with_filters + 16))
    assert with_filters or {each.reason for each in found} == {Reason.BLOOM_FILTERS}


def test_it_need_not_pay():
    """One small file beside a large run, which a merge would hardly improve."""
    files = table_of(*run(FILTERED.id + "c" * 16, 8), (A_RUN, 0.01, (5, 9), (5, 9)))

    waits = maintenance(files, FILTERED, [], LIMITS)
    (found,) = maintenance(
        files, FILTERED, [], LIMITS, renewal=Renewal(outdated={ASKED.id})
    ).rewrites

    assert not waits.rewrites
    assert (paths([found]), found.reason) == ([["64"]], Reason.BLOOM_FILTERS)


def test_a_call_rewrites_as_many_as_it_may():
    """The others are left for the next one."""
    files = table_of(*run(A_RUN, 4))
    limits = replace(LIMITS, files=5)

    found = maintenance(files, FILTERED, [], limits, renewal=Renewal(outdated={ASKED.id}))

    assert sum(len(each.members) for each in found.rewrites) == 5
    assert sum(len(each.members) for each in found.left) == 11


def test_files_with_the_right_filters_are_left():
    files = table_of(*run(A_RUN, 4))

    assert not maintenance(files, ASKED, [], LIMITS, renewal=Renewal()).rewrites


def test_filters_are_kept_as_last_asked_for():
    """Also if no file has them any more. If a part was to get them, those of most bytes count."""
    stored = {each.id: Layout.uncut(each) for each in (ASKED, FILTERED)}
    files = table_of(*run(A_RUN, 3), *run(FILTERED.id + "c" * 16, 2))
    part = {LAST: replace(stored[FILTERED.id], of_part=True)}
    every = {LAST: stored[FILTERED.id]}

    assert find_bloom_filters(files, stored) == ()
    assert find_bloom_filters(files, stored | part) == ()
    assert find_bloom_filters(files, stored | every) == (("c1",),)
    assert find_bloom_filters(table_of(raw()), part) == (("c1",),)


def test_only_filters_differ_of_outdated_files():
    """Cold files too have other filters; another curve is another layout."""
    others = [ASKED, request_for_cold(ASKED), FILTERED, request(2, curve="zorder")]
    stored = {each.id: Layout.uncut(each) for each in others}
    files = table_of(*(file for each in others for file in run(each.id + "d" * 16, 1)))

    assert other_bloom_filters(files, stored, FILTERED) == {ASKED.id, request_for_cold(ASKED).id}
    assert other_bloom_filters(files, stored, ASKED) == {FILTERED.id}
