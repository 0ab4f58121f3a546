"""Partition values of timestamps keep their texts, in any time zone of the session."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.errors import UnsupportedError
from zadapter_delta.table.zones import add_zones, restore_texts, zoneless

UTC = timezone.utc


def local(*parts):
    return datetime(*parts)  # noqa: DTZ001 - a text without a zone


ZONES = st.sampled_from(
    [
        *("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Pacific/Apia"),
        *("Australia/Lord_Howe", "Africa/Monrovia", "America/St_Johns"),
    ]
).map(ZoneInfo)
"""Summer time of an hour and of half an hour, offsets with seconds, and a day that was left out."""
CHANGES = [
    *(local(2024, 11, 3, hour, 30) for hour in (0, 1, 2, 5, 6)),
    *(local(2024, 3, 10, hour, 30) for hour in (1, 2, 3)),
    *(local(2024, 4, 7, 1, minute) for minute in (30, 45)),
    *(local(2011, 12, day) for day in (29, 30, 31)),
    *(local(1883, 11, 18, 12, minute, 58) for minute in (0, 3)),
    *(local(1, 1, 2), local(9999, 12, 30, 23, 59, 59, 999_999)),
]
LOCAL = st.sampled_from(CHANGES) | st.datetimes(local(1, 1, 2), local(9999, 12, 30))
FORMATS = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"]


@st.composite
def stated(draw, zone):
    """A text of the log, and the moment that a session in *zone* takes it for."""
    moment = draw(LOCAL)
    if draw(st.booleans()):
        shape = draw(st.sampled_from(["%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%d %H:%M:%S.%fZ"]))
        return padded(moment, shape), moment.replace(tzinfo=UTC)
    shape = FORMATS[1] if moment.microsecond else draw(st.sampled_from(FORMATS))
    return padded(moment, shape), moment.replace(tzinfo=zone).astimezone(UTC)


def padded(moment, shape):
    """Format a time; C libraries pad years before 1000 or not."""
    return f"{moment.year:04d}" + moment.strftime(shape.removeprefix("%Y"))


def written(moment):
    """What Delta's writer states in UTC."""
    return padded(moment, "%Y-%m-%dT%H:%M:%S.%fZ")


def table_of(found):
    microseconds = [(moment - datetime(1970, 1, 1, tzinfo=UTC)) for _, moment in found]
    return pa.table(
        {
            "column": pa.array(["c"] * len(found), pa.string()),
            "text": pa.array([text for text, _ in found], pa.string()),
            "moment": pa.array([delta // timedelta(microseconds=1) for delta in microseconds]),
        }
    )


@given(st.data(), ZONES)
def test_a_rewrite_keeps_each_text_or_none_is_rewritten(data, zone):
    """With a zone, a text is the moment that it was; what is written gets the text that was."""
    found = data.draw(
        st.lists(stated(zone), min_size=1, max_size=6, unique_by=lambda pair: pair[0])
    )
    try:
        known = zoneless("t", {"c": "c"}, table_of(found))
    except UnsupportedError:
        assert len({moment for _, moment in found}) < len(found)
        return
    for text, moment in found:
        values = {"c": text, "other": "x", "none": None}
        placed = add_zones(values, known)
        assert placed["c"] in {written(moment), text}
        assert placed["c"].endswith("Z")
        assert {**placed, "c": None} == {**values, "c": None}
        kept = restore_texts({**values, "c": written(moment)}, known)
        same = kept["c"] == text or {kept["c"], text} <= {t for t, m in found if m == moment}
        assert same or (text.endswith("Z") and kept["c"] == written(moment))


def test_two_texts_of_one_moment_are_refused():
    """Spark takes an hour that summer time skips for the next one; other readers do not."""
    moment = datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
    found = [("2024-03-10 02:30:00", moment), ("2024-03-10 03:30:00", moment)]

    with pytest.raises(UnsupportedError, match=r"'2024-03-10 02:30:00' and .*timeZone"):
        zoneless("t", {"c": "c"}, table_of(found))


def test_spellings_of_one_moment_are_one_value():
    """Digits of a fraction make no difference to any reader."""
    moment = datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
    found = [("2024-03-10 07:30:00", moment), ("2024-03-10 07:30:00.000000", moment)]

    known = zoneless("t", {"c": "c"}, table_of(found))

    assert set(known["c"].values()) == {written(moment)}


def test_a_moment_that_is_stated_both_ways_keeps_its_zone():
    """Delta stated times without a zone once, and states them with one today."""
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    found = [("2024-01-01 00:00:00", moment), (written(moment), moment)]

    known = zoneless("t", {"c": "c"}, table_of(found))

    assert {add_zones({"c": text}, known)["c"] for text, _ in found} == {written(moment)}
    assert restore_texts({"c": written(moment)}, known) == {"c": written(moment)}
