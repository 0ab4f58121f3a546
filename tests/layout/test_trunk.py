"""Layouts that begin with the levels of a trunk."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.builders import request, tables
from zadapter.layout import assign
from zadapter.layout.layout import Layout
from zadapter.layout.trunk import Trunk, fit_below

RANDOM = np.random.default_rng(3)
WIDE = [pa.array(RANDOM.random(8_000)), pa.array(RANDOM.zipf(1.4, 8_000))]


def trunk_of(columns, boxes, **options):
    return Trunk(boxes).fit(request(len(columns), **options), columns)


def placed(trunk, layout, columns):
    """Return the box and the file of each row."""
    here = np.zeros(len(columns[0]), np.int64)
    leaf = assign.leaves(layout, columns, here)
    return assign.nodes(trunk.levels, columns, here), assign.files(
        layout, leaf, np.arange(len(here))
    )


@given(
    columns=tables(),
    boxes=st.sampled_from([2, 4, 8, 32]),
    files=st.integers(1, 40),
    curve=st.sampled_from(["adaptive", "linear"]),
)
def test_no_file_has_rows_of_two_boxes(columns, boxes, files, curve):
    """Whatever the values, and however few files there are for a box."""
    trunk = trunk_of(columns, boxes, curve=curve)

    layout = fit_below(trunk, request(len(columns), curve=curve), columns, (), files)

    box, file = placed(trunk, layout, columns)
    assert len(np.unique(np.stack([box, file]), axis=1).T) == len(np.unique(file))
    assert len(np.unique(box)) <= boxes
    assert layout.files >= file.max() + 1


@pytest.mark.parametrize("files", [8, 64, 100])
def test_boxes_get_files_in_proportion_to_their_rows(files):
    """So files are as even as without a trunk; a box smaller than a file has one."""
    trunk = trunk_of(WIDE[:1], 8)
    skewed = [pa.array(RANDOM.beta(2, 5, 40_000))]

    layout = fit_below(trunk, request(1), skewed, (), files)

    box, file = placed(trunk, layout, skewed)
    counts = [len(np.unique(file[box == each])) for each in range(8)]
    expected = np.bincount(box, minlength=8) * files / len(box)
    assert counts == np.where(expected > 0, np.maximum(1, np.rint(expected)), 0).tolist()


def test_boxes_without_sampled_rows_share_a_file():
    """It is a file of its own, so that their few rows make no other file wider."""
    trunk = trunk_of(WIDE[:1], 16)
    low = [pa.array(np.linspace(0, 0.2, 1_000))]

    layout = fit_below(trunk, request(1), low, (), 12)

    _, sampled = placed(trunk, layout, low)
    _, others = placed(trunk, layout, [pa.array([0.5, 0.7, 0.99])])
    assert set(others) == {layout.files - 1}
    assert layout.files - 1 not in sampled


def test_rows_that_no_sample_has_seen_are_spread_over_the_boxes():
    """An empty sample cuts nothing, but the trunk does."""
    trunk = trunk_of(WIDE[:1], 8)

    layout = fit_below(trunk, request(1), [pa.array([], pa.float64())], (), 16)

    box, file = placed(trunk, layout, WIDE[:1])
    assert layout.files == len(np.unique(file)) == 16
    assert len(np.unique(np.stack([box, file]), axis=1).T) == 16


def test_levels_below_go_on_with_the_other_columns():
    """A trunk that cuts the first column leaves the next turn to the second."""
    trunk = trunk_of(WIDE, 2)

    layout = fit_below(trunk, request(2), WIDE, ("p",), 16)

    assert [level.column for level in layout.levels[:4]] == [0, 1, 0, 1]
    assert layout.roots == (("p",),)
    assert Layout.from_json(layout.to_json()) == layout


def test_a_shortened_trunk_has_the_first_levels():
    """As many as there are files for; one without levels stays as it is."""
    trunk = trunk_of(WIDE, 16)

    assert trunk.shorten(11).levels == trunk.levels[:3]
    assert trunk.shorten(1).levels == ()
    assert trunk.shorten(100).levels == trunk.levels
    assert Trunk(16).shorten(3).boxes == 16
