"""What users type as values of options."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.base.names import join, split
from zadapter.base.quantities import parse_age
from zadapter.cli.command_options import (
    parse_by,
    parse_columns,
    parse_pairs,
    parse_tiers,
    parse_version,
)
from zadapter.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["event_time"], {"event_time": 1}),
        (["event_time,user_id"], {"event_time": 1, "user_id": 1}),
        ([" event_time , user_id"], {"event_time": 1, "user_id": 1}),
        (["event_time", "user_id"], {"event_time": 1, "user_id": 1}),
        (
            ["event_time=2,user_id", "device.os = 0.5"],
            {"event_time": 2, "user_id": 1, "device.os": 0.5},
        ),
        (["`odd,name`,`a=b`=3"], {"`odd,name`": 1, "`a=b`": 3}),
        (["a.`b``,=c`"], {"a.`b``,=c`": 1}),
    ],
)
def test_keys_are_typed_in_one_go_or_one_by_one(typed, meant):
    """Commas separate, = gives a weight, backticks hold a name together; the order stays."""
    assert list(parse_by(typed).items()) == list(meant.items())


def test_settings_are_pairs():
    """Values may hold an equals sign, keys may not."""
    assert parse_pairs(["spark.master=local[4]", "a=b=c", "d="], "--conf") == {
        "spark.master": "local[4]",
        "a": "b=c",
        "d": "",
    }
    for typed in ("spark.master", "=local"):
        with pytest.raises(UsageError, match="--option must be key=value"):
            parse_pairs([typed], "--option")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("0", 0),
        ("12", 12),
        ("2025-01-31", datetime(2025, 1, 31)),  # noqa: DTZ001 - in this machine's zone
        ("2025-01-31T12:00:00Z", datetime(2025, 1, 31, 12, tzinfo=timezone.utc)),
        (
            "2025-01-31 12:00:00+02:00",
            datetime(2025, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))),
        ),
    ],
)
def test_a_version_is_a_number_or_a_time(typed, meant):
    """A time without a zone stays without one."""
    assert parse_version(typed) == meant


@pytest.mark.parametrize("typed", ["", "v1", "-1", "1.5", "yesterday", "2025-13-01"])
def test_other_versions_are_refused(typed):
    """The message shows what would be accepted."""
    with pytest.raises(UsageError, match=r"--version: .* such as 2025-01-31T12:00:00"):
        parse_version(typed)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("0s", timedelta(0)),
        ("90m", timedelta(minutes=90)),
        ("36h", timedelta(hours=36)),
        (" 7 d ", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_an_age_has_a_unit(typed, meant):
    """A number alone could be days or seconds."""
    assert parse_age(typed, "--older-than") == meant


@pytest.mark.parametrize("typed", ["", "7", "7x", "-1d", "1.5d", "d", "1d2h", "999999999w"])
def test_other_ages_are_refused(typed):
    """A slip must not delete files."""
    with pytest.raises(UsageError, match="--older-than: "):
        parse_age(typed, "--older-than")


columns = st.lists(st.text(max_size=5), min_size=1, max_size=3).map(tuple)


@given(st.lists(columns, min_size=1, max_size=4, unique=True), st.booleans())
def test_any_columns_are_parsed_as_they_are_shown(names, weighted):
    """Whatever their names hold: commas, equal signs, colons, backticks, or nothing."""
    shown = [join(parts) for parts in names]
    text = ", ".join(f"{name}={2 + at}" if weighted else name for at, name in enumerate(shown))

    parsed = parse_by([text])

    assert [split(name) for name in parsed] == names
    assert [*parsed.values()] == [2.0 + at if weighted else 1.0 for at in range(len(names))]
    assert [split(name) for name in parse_columns([",".join(shown)])] == names
    assert parse_tiers(f"{shown[0]}:hot=2d") == {shown[0]: {"hot": "2d"}}
