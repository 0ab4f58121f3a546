"""Bounds in Delta's stats enclose the values, or are left out."""

import pyarrow as pa
import pytest

from zadapter_delta.stats import stats_json

YEAR_1, YEAR_10_000 = -62_135_596_800_000_000, 253_402_300_800_000_000
"""Microseconds since 1970."""
ROUNDED = {"low": stats_json._round_down, "high": stats_json._round_up}  # noqa: SLF001


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("bound", ROUNDED)
def test_moments_outside_the_years_1_to_9999_have_no_bound(bound, zone):
    """Their texts would be read as other moments, or not at all."""
    moments = [YEAR_1 - 1, YEAR_1, 0, YEAR_10_000 - 1_000, YEAR_10_000, None]
    suffix = "" if zone is None else "Z"

    found = ROUNDED[bound](pa.array(moments, pa.timestamp("us", zone)), 32).to_pylist()

    assert found == [
        None,
        f"0001-01-01T00:00:00.000{suffix}",
        f"1970-01-01T00:00:00.000{suffix}",
        f"9999-12-31T23:59:59.999{suffix}",
        None,
        None,
    ]


def test_moments_between_milliseconds_are_rounded_outwards():
    """Except after the last millisecond of 9999, which Delta truncates too."""
    moments = pa.array([1, -1, YEAR_10_000 - 1], pa.timestamp("us"))

    low, high = (ROUNDED[bound](moments, 32).to_pylist() for bound in ("low", "high"))

    assert low == ["1970-01-01T00:00:00.000", "1969-12-31T23:59:59.999", "9999-12-31T23:59:59.999"]
    assert high == ["1970-01-01T00:00:00.001", "1970-01-01T00:00:00.000", "9999-12-31T23:59:59.999"]


def test_long_texts_are_cut_outwards():
    """The lower bound is a prefix; the upper one ends in the highest character."""
    texts = pa.array(["abcdef", "abc", None])

    assert ROUNDED["low"](texts, 4).to_pylist() == ["abcd", "abc", None]
    (cut, whole, none) = ROUNDED["high"](texts, 4).to_pylist()
    assert cut > "abcdef"
    assert cut.startswith("abcd")
    assert (whole, none) == ("abc", None)
