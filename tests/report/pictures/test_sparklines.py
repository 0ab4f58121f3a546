"""Trends as SVG."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.report.pictures.sparklines import sparkline

RUNS = st.lists(
    st.tuples(st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)), st.integers(0, 2**60)),
    max_size=40,
)


def drawn(shares, amounts=None, label="trend"):
    """Return the title, and the paths of bars and line."""
    title, bars, line = ET.fromstring(sparkline(label, shares, amounts or [0] * len(shares)))
    return title.text, bars.get("d"), line.get("d")


def test_the_line_falls_within_runs_and_rises_between_them():
    """The newest of few runs is at the right edge, where pictures of more have it, too."""
    _, _, line = drawn([(1.0, 0.0), (0.5, 0.5), (0.5, 0.25)])

    assert line == "M22 2h0V30L26 16H30V23"


def test_what_is_unknown_is_a_gap_and_a_run_alone_is_a_point():
    nan = float("nan")
    _, _, line = drawn([None, (0.5, 0.5), (nan, 0.5), (1.0, 1.0), (1.0, 1.0)])

    assert line == "M18 16h0M26 2h0H30"


def test_the_highest_bar_is_the_largest_amount_and_a_small_one_is_seen():
    _, bars, _ = drawn([None] * 4, [0, 1, 500, 1_000])

    assert bars == "M20 32v-1h3v1zM24 32v-8h3v8zM28 32v-16h3v16z"


@pytest.mark.parametrize("label", ["<script>", "a & b"])
def test_labels_are_texts(label):
    assert drawn([(0.5, 0.5)], label=label)[0] == label


@given(RUNS)
def test_each_run_has_its_place_within_the_picture(runs):
    """Of any number of runs: no more points than runs, from left to right, within the frame."""
    shares, amounts = [share for share, _ in runs], [amount for _, amount in runs]
    picture = ET.fromstring(sparkline("", shares, amounts))
    width, height = map(float, picture.get("viewBox").split()[2:])
    _, bars, line = (each.get("d") or "" for each in picture)

    assert bars.count("M") == sum(amount > 0 for amount in amounts)
    parts = line.replace("M", "|M").replace("L", "|L").replace("H", "|H").split("|")[1:]
    across = [float(part[1:].split("V")[0].replace("h0", "").split()[0]) for part in parts]
    assert len(across) == sum(share is not None for share in shares)
    assert all(left < right for left, right in pairwise(across))
    assert all(0 < place < width for place in across)
    up = [float(part.split("V")[1]) for part in parts if "V" in part]
    assert all(0 < place < height for place in up)
