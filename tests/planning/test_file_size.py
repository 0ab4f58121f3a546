"""The target file size follows the table: its layout, its bytes, its properties."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.builders import MIB, file_table, fitted, snapshot
from zadapter.layout.cold import request_for_cold
from zadapter.layout.layout import Curve, Layout
from zadapter.layout.store import LAST
from zadapter.planning.file_size import (
    FILES,
    LARGEST,
    SMALLEST,
    USUAL,
    choose_file_size,
    counted_sizes,
    find_requests,
    followed_request,
    heaviest_request,
    present_request,
    target_file_size,
)
from zadapter.planning.maintenance import maintenance
from zadapter.planning.merges import Renewal
from zadapter.planning.options import Options
from zadapter.planning.request import request_of

TIB = MIB << 20
sizes = st.integers(0, 1 << 55)


@pytest.mark.parametrize(
    ("size", "chosen"),
    [(5, 1), (99, 2), (512, 16), (1 << 12, 128), (1 << 20, 128), (1 << 22, 512), (1 << 26, 1024)],
)
def test_small_tables_get_some_files_and_large_ones_not_too_many(size, chosen):
    """In megabytes: from 1 MB for a table of 5 MB to 1 GB for one of 64 TB."""
    assert target_file_size(size * MIB) == chosen * MIB


@given(sizes)
def test_a_table_has_32_files_or_more_unless_they_would_be_tiny(size):
    chosen = target_file_size(size)

    assert SMALLEST <= chosen <= LARGEST
    assert chosen == SMALLEST or size / chosen >= FILES


@given(sizes, sizes)
def test_a_larger_table_never_gets_smaller_files(one, other):
    small, large = sorted([one, other])

    assert target_file_size(small) <= target_file_size(large)


@given(sizes, st.integers(1, 1 << 40))
def test_files_are_never_larger_than_the_table_wants_them(size, limit):
    assert target_file_size(size, limit) <= limit


OLD, NEW = (fitted([[1, 2, 3]], 2, target_file_size=size) for size in (MIB, 2 * MIB))
KNOWN = {each.id: each for each in (OLD, NEW)}


def table(old=0, new=0, bare=0):
    """A table with so many bytes in files of the old layout, of the new one and of none."""
    layouts = {OLD.id: old, NEW.id: new, None: bare}
    held = {layout: size for layout, size in layouts.items() if size}
    names = [str(number) for number in range(len(held))]
    return file_table(names, sizes=[*held.values()], layouts=[*held])


def last(layout, *, of_part=False):
    """What is stored with the table after a rewrite by a layout."""
    return KNOWN | {LAST: replace(Layout.uncut(layout.request), of_part=of_part)}


def test_a_change_of_the_layout_goes_on_while_most_files_have_the_old_one():
    """Unless no file has the last one: then another table was in this folder."""
    stored = last(NEW)
    begun = table(old=9, bare=9, new=1)

    assert heaviest_request(begun, stored) == OLD.request
    assert present_request(begun, stored) == NEW.request
    assert followed_request(begun, stored) == NEW.request
    assert choose_file_size(begun, stored, [("c0",)], Curve.ADAPTIVE, None) == 2 * MIB
    assert present_request(table(old=9), stored) == OLD.request
    assert present_request(table(old=9, bare=99), KNOWN) == OLD.request


def test_a_change_goes_on_if_only_cold_files_have_the_new_layout():
    """These have a request of their own, with larger files."""
    cold = Layout.uncut(request_for_cold(NEW.request))
    begun = file_table(["a", "b"], sizes=[9, 1], layouts=[OLD.id, cold.id])

    assert present_request(begun, last(NEW)) == NEW.request


@pytest.mark.parametrize("part", [1, 4, 20], ids=["a few files", "a third", "most of it"])
def test_a_rewrite_of_a_part_is_the_layout_of_the_table_once_most_bytes_have_it(part):
    """A rewrite of a few files with `where` has not asked for the rest of the table."""
    stored, files = last(NEW, of_part=True), table(old=8, new=part)
    expected = NEW.request if part > 8 else OLD.request

    assert present_request(files, stored) == followed_request(files, stored) == expected
    assert choose_file_size(files, stored, [("c0",)], Curve.ADAPTIVE, None) == (
        expected.target_file_size
    )


def test_a_table_of_which_a_part_was_tried_has_no_layout():
    """So a query log decides about its rest; a call without keys follows what it finds."""
    stored, files = last(NEW, of_part=True), table(new=1, bare=9)

    assert present_request(files, stored) is None
    assert followed_request(files, stored) == NEW.request
    assert present_request(files, last(NEW)) == NEW.request


def test_appends_do_not_take_the_layout_from_a_table():
    """Other writers have none, and most nights their files are few."""
    for of_part, bare in ((False, 99), (True, 7)):
        files = table(old=8, bare=bare)
        assert present_request(files, last(OLD, of_part=of_part)) == OLD.request


def test_a_table_keeps_the_size_it_was_clustered_with():
    """Of the layout of the same keys that wrote most bytes; the caller need not repeat it."""
    small, large, other = (
        fitted([[1, 2, 3]], 2, target_file_size=size, curve=curve)
        for size, curve in ((MIB, "adaptive"), (2 * MIB, "adaptive"), (3 * MIB, "zorder"))
    )
    stored = {layout.id: layout for layout in (small, large, other)}
    files = file_table(
        ["a", "b", "c", "d", "e"],
        layouts=[small.id, large.id, large.id, other.id, None],
        sizes=[MIB, MIB, MIB, 9 * MIB, 99 * MIB],
    )

    def chosen(columns, curve):
        return choose_file_size(files, stored, columns, curve, None)

    assert chosen([("c0",)], Curve.ADAPTIVE) == 2 * MIB
    assert chosen([("c0",)], Curve.ZORDER) == 3 * MIB
    assert chosen([("c1",)], Curve.ADAPTIVE) == target_file_size(111 * MIB)
    assert choose_file_size(files, {}, [("c0",)], Curve.ADAPTIVE, None) == 2 * MIB


def test_an_append_does_not_change_the_size():
    """So the next run is incremental even if no layout could be stored."""
    assert {target_file_size(size * MIB) for size in range(2048, 4096, 100)} == {64 * MIB}


def test_the_size_is_that_of_most_bytes_of_all_layouts_of_a_request():
    """A run with `where` may have left many small layouts of the usual size, and one of another."""
    usual = [fitted([[1, 2, 3 + n]], 2, target_file_size=2 * MIB) for n in range(3)]
    other = fitted([[1, 2, 3]], 2, target_file_size=9 * MIB)
    stored = {layout.id: layout for layout in (*usual, other)}
    files = file_table(
        ["a", "b", "c", "d"],
        layouts=[*(layout.id for layout in usual), other.id],
        sizes=[40 * MIB, MIB, 30 * MIB, 50 * MIB],
    )

    def chosen(limit):
        return choose_file_size(files, stored, [("c0",)], Curve.ADAPTIVE, limit)

    assert chosen(None) == 2 * MIB
    assert chosen(MIB) == MIB


def test_a_request_is_known_when_none_of_its_cuts_were_stored():
    """Nightly runs store what was asked for, not the cuts of each night."""
    nights = [fitted([[1, 2, 3 + n]], 2, target_file_size=2 * MIB) for n in range(3)]
    files = file_table(["a", "b", "c"], layouts=[layout.id for layout in nights])
    stored = {nights[0].request.id: Layout.uncut(nights[0].request)}

    assert list(find_requests(files, stored)) == [nights[0].request]
    assert list(find_requests(files, {})) == [None]


WIDE = {OLD.request.id: Layout.uncut(OLD.request)}


def rewritten(files, **options):
    """Return the target size, and the numbers of files that replace others and all of a table."""
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.int64())])
    table = replace(snapshot(schema), layouts=WIDE)
    asked = Options(table="t", row_groups=OLD.request.row_groups, **options)
    asked_for = request_of(asked, table, files)
    renewal = Renewal.of(
        files, WIDE, asked_for, every=asked.force, is_sized=asked.file_bytes is not None
    )
    found = maintenance(files, asked_for, [], asked.limits, renewal=renewal)
    written = [sum(each.cut_into for each in some) for some in (found.rewrites, found.anew)]
    return asked_for.target_file_size, *written


def test_a_change_of_the_keys_writes_as_many_small_files_again():
    """Those of many columns are larger than their target, and the more of them, the more so."""
    files = table_of_runs(15, size=int(2.2 * MIB))

    assert rewritten(files, by="c1") == (MIB, 15, 0)
    assert rewritten(files, by="c0", force=True) == (MIB, 15, 0)
    assert rewritten(files, by="c1", target_file_size="1MB") == (MIB, 33, 0)


def test_small_files_that_are_merged_with_new_ones_count_as_what_they_were_to_be():
    """So one append does not give a table twice the files."""
    files = table_of_runs(15, size=int(2.2 * MIB), new=3)

    assert rewritten(files, by="c0")[2] == 18


def test_small_files_of_a_target_of_32_stay_32():
    """Whatever their bytes, which chose a smaller number of larger files."""
    layout = replace(OLD, request=replace(OLD.request, target_file_size=2 * MIB))
    stored = {layout.request.id: Layout.uncut(layout.request)}
    files = file_table([str(n) for n in range(35)], sizes=4 * MIB, layouts=[layout.id] * 35)

    assert choose_file_size(files, stored, [("c1",)], Curve.ADAPTIVE, None) == 2 * MIB
    assert counted_sizes(files, stored).sum() == 70 * MIB


def test_large_files_count_by_their_bytes():
    """Above their target, they have more rows than they should, as if compression has changed."""
    layout = replace(OLD, request=replace(OLD.request, target_file_size=USUAL))
    stored = {layout.request.id: Layout.uncut(layout.request)}
    files = file_table(["1", "2"], sizes=2 * USUAL, layouts=[layout.id, None])

    assert counted_sizes(files, stored).sum() == 4 * USUAL


def test_rewrites_of_small_files_of_unlike_sizes_do_not_write_ever_fewer():
    """A tenth of the rows has a hundred times the bytes, as those of one kind of event may."""
    width = np.repeat([1, 100], [900, 100])
    widths, count = width * (100 * MIB / width.sum()), 100
    for _ in range(3):
        sizes = [int(part.sum()) for part in np.array_split(widths, count)]
        files = file_table([*map(str, range(count))], sizes=sizes, layouts=[OLD.id] * count)
        _, count, _ = rewritten(files, by="c0", force=True)

    assert count == 100


def test_small_files_count_together_with_those_of_their_own_partition():
    """Many tiny partitions do not let a large one have more files with each rewrite."""
    days = pa.array(["small"] * 30 + ["large"] * 10)
    files = file_table(
        [*map(str, range(40))],
        sizes=[1000] * 30 + [2 * MIB] * 10,
        layouts=[OLD.id] * 40,
        partition=[("day", days)],
    )

    assert counted_sizes(files, WIDE)[30:].sum() == 10 * MIB


def table_of_runs(count, *, size, new=0):
    """Return files of the old layout, and new files of its target size."""
    return file_table(
        [str(number) for number in range(count + new)],
        sizes=[*[size] * count, *[MIB] * new],
        layouts=[*[OLD.id] * count, *[None] * new],
    )
