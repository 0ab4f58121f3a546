"""Layouts are kept beside a table, and what is damaged is as good as absent."""

from dataclasses import replace

import pytest

from tests.kit.builders import fitted
from zadapter.layout.cold import request_for_cold
from zadapter.layout.layout import Curve
from zadapter.layout.store import FOLDER, LAST, Layouts

LAYOUT = fitted([[1.0, 2.0, 3.0]], 2)
REQUEST = LAYOUT.request.id


class Folder(dict):
    """Small files in memory."""

    read = dict.get
    write = dict.__setitem__


def test_a_layout_is_found_by_its_id():
    """Written once, read by whoever comes later."""
    folder = Folder()
    Layouts(folder).keep(LAYOUT)

    assert sorted(folder) == [f"{FOLDER}/{name}.json" for name in (REQUEST, LAYOUT.id, LAST)]
    assert Layouts(folder).get(LAYOUT.id) == LAYOUT
    assert Layouts(folder).get(REQUEST).request == LAYOUT.request


def test_a_thousand_nights_store_one_request():
    """The cuts of an append serve nobody once it is merged; what was asked for does."""
    folder = Folder()
    for night in range(1_000):
        Layouts(folder).keep(replace(fitted([[night, night + 1.5]], 2), lasting=False))

    assert len(folder) == 2
    assert sum(map(len, folder.values())) < 1_000


def test_the_last_request_is_that_of_the_last_rewrite():
    """Tables whose rows are all overwritten every night have no file that names a layout.

    Of cold files, it is the request of the table, which the next call goes on with.
    """
    folder = Folder()
    other = replace(LAYOUT, request=replace(LAYOUT.request, target_file_size=5))
    for written in (other, replace(other, request=request_for_cold(other.request))):
        Layouts(folder).keep(LAYOUT)
        Layouts(folder).keep(written)
        assert Layouts(folder).get(LAST).request == other.request
    Layouts(folder).keep(LAYOUT)
    assert Layouts(folder).get(LAST).request == LAYOUT.request


def test_it_is_known_whether_the_last_rewrite_was_meant_for_the_whole_table():
    """A part by the table's own keys takes nothing from it, in other sizes too; other keys do."""
    folder, part = Folder(), replace(LAYOUT, of_part=True)
    smaller = replace(part, request=replace(LAYOUT.request, target_file_size=5))
    other = replace(part, request=replace(LAYOUT.request, curve=Curve.LINEAR))
    known = []
    for layout in (part, LAYOUT, part, smaller, other, smaller, LAYOUT):
        Layouts(folder).keep(layout)
        last = Layouts(folder).get(LAST)
        known.append((last.request == layout.request, last.of_part))

    assert known == [
        (True, True), (True, False), (True, False), (False, False), (True, True), (True, True),
        (True, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", "7", '"x"', '{"format": 1}', '{"format": 99}', "\xff"]
)
def test_what_is_damaged_is_absent_and_written_anew(text):
    """Torn by a crash, edited by hand, or of a version to come: cuts are fitted anew."""
    path = f"{FOLDER}/{LAYOUT.id}.json"
    folder = Folder({path: text.encode("latin-1")})

    assert Layouts(folder).get(LAYOUT.id) is None
    Layouts(folder).keep(LAYOUT)
    assert Layouts(folder).get(LAYOUT.id) == LAYOUT


def test_one_that_nobody_would_read_is_not_written(monkeypatch):
    """Stores take a file that is too large for a damaged one."""
    monkeypatch.setattr("zadapter.layout.store.LARGEST", len(LAYOUT.to_json()) - 1)
    folder = Folder()
    Layouts(folder).keep(LAYOUT)

    assert list(folder) == [f"{FOLDER}/{name}.json" for name in (REQUEST, LAST)]
    assert Layouts(folder).get(LAYOUT.id) is None


@pytest.mark.parametrize("layout_id", ["../../secret", "x", "", f"{'0' * 32}/..", "0" * 31])
def test_an_id_never_leads_out_of_the_folder(layout_id):
    """Ids come from the table's log, which others write."""

    class Watched(Folder):
        def read(self, path):
            raise AssertionError(path)

    assert Layouts(Watched()).get(layout_id) is None
