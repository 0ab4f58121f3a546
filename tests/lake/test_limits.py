"""Clean-ups that are refused before a table is rewritten."""

from datetime import timedelta

import pyarrow as pa
import pytest

from zadapter.errors import ProtectedFilesError, UnsupportedError, UsageError
from zadapter.lake import limits
from zadapter.lake.limits import (
    find_early,
    find_nested,
    find_protection,
    find_refusal,
    find_stranger,
    parse_interval,
)
from zadapter.lake.settings import Keep
from zadapter.table.snapshot import Snapshot

DAY = timedelta(days=1)
KEPT = "delta.deletedFileRetentionDuration"


def snapshot(format_, identifier="`ice`.`db`.`t`", **properties):
    return Snapshot(
        table="t", format=format_, version=1, location="/lake/t", identifier=identifier,
        schema=pa.schema([]), partition={}, id="", definition="", physical={},
        without_stats=frozenset(), properties=lambda: properties,
    )  # fmt: skip


def check(keep, table, *, owns_folder=True):
    limits.check(None, table, keep, owns_folder=owns_folder)


@pytest.mark.parametrize(
    ("keep", "properties", "is_refused"),
    [
        (Keep(versions=7 * DAY), {}, False),
        (Keep(versions=7 * DAY - timedelta(minutes=20)), {}, False),  # Delta takes whole hours
        (Keep(versions=7 * DAY - timedelta(hours=1)), {}, True),
        (Keep(versions=DAY, orphans=7 * DAY), {}, False),
        (Keep(versions=7 * DAY), {KEPT: "interval 8 days"}, True),
        (Keep(versions=timedelta(hours=2)), {KEPT: "INTERVAL 1 HOUR 60 minutes"}, False),
        (Keep(versions=timedelta(0)), {KEPT: "0 seconds"}, False),
        (Keep(versions=timedelta(0)), {KEPT: "what only Delta can read"}, False),
        (Keep(orphans=30 * DAY), {}, True),
    ],
)
def test_delta_keeps_files_as_long_as_its_property_says(keep, properties, is_refused):
    assert (find_refusal(snapshot("delta", **properties), keep) is not None) == is_refused


@pytest.mark.parametrize(
    ("keep", "table", "reason"),
    [
        (Keep(versions=DAY, orphans=DAY - timedelta(seconds=1)), {}, "at least 24h"),
        (Keep(versions=timedelta(0), orphans=DAY), {}, None),
        (Keep(orphans=DAY), {"identifier": None}, "take no paths"),
    ],
)
def test_iceberg_keeps_what_others_may_need(keep, table, reason):
    found = find_refusal(snapshot("iceberg", **table), keep)

    assert found is reason is None or reason in found


@pytest.mark.parametrize(
    ("table", "end"),
    [
        (snapshot("iceberg", **{"gc.enabled": "False"}), "once none does, set it to true"),
        (snapshot("delta", **{KEPT: "interval 36500 days"}), "set it to a shorter time"),
    ],
)
def test_a_table_that_keeps_all_files_is_no_mistake(table, end):
    """Its rewrite is not refused, and no clean-up begins; a mistake in ``keep`` is still one."""
    check(Keep(versions=7 * DAY), table, owns_folder=False)
    with pytest.raises(ProtectedFilesError, match=end):
        limits.check_unprotected(table)
    with pytest.raises(UsageError):
        check(Keep(versions=-DAY), table)


@pytest.mark.parametrize(
    ("format_", "properties"),
    [
        ("iceberg", {}),
        ("iceberg", {"gc.enabled": "true"}),
        ("delta", {}),
        ("delta", {KEPT: "interval 60 days"}),
        ("delta", {KEPT: "what only Delta can read"}),
        ("delta", {"gc.enabled": "false"}),
        ("parquet", {"gc.enabled": "false"}),
    ],
)
def test_other_tables_do_not_keep_all_files(format_, properties):
    """Two times that contradict each other are a mistake, which someone has to mend."""
    assert find_protection(snapshot(format_, **properties)) is None


def test_orphans_alone_are_refused_where_older_versions_would_go_too():
    assert find_refusal(snapshot("parquet"), Keep(versions=timedelta(0))) is None
    with pytest.raises(UnsupportedError, match=r"t: keep: .*set keep\.versions"):
        check(Keep(orphans=DAY), snapshot("parquet"))
    check(Keep(), snapshot("parquet"))


@pytest.mark.parametrize("keep", [Keep(versions=-DAY), Keep(versions=DAY, orphans=-DAY)])
def test_negative_times_are_refused(keep):
    with pytest.raises(UsageError, match="must not be negative"):
        check(keep, snapshot("parquet"))


def test_a_folder_of_two_tables_is_not_cleaned_up():
    """The files of one are orphans to the other."""
    uniform = {"delta.universalFormat.enabledFormats": "iceberg"}

    assert find_stranger(snapshot("delta"), ["delta"]) is None
    assert "table in iceberg" in find_stranger(snapshot("delta"), ["delta", "iceberg"])
    assert "table in delta" in find_stranger(snapshot("iceberg"), ["delta", "iceberg"])
    assert find_stranger(snapshot("delta", **uniform), ["delta", "iceberg"]) is None


@pytest.mark.parametrize("own", ["file:/lake/t", "/lake/t/", "file:///lake/t"])
@pytest.mark.parametrize("other", ["file:/lake/t/inner", "file:/lake"])
def test_files_that_may_be_those_of_another_table_are_not_deleted(own, other):
    """Inside of the table's folder, or around it; the table's own log is none of another."""
    refusal = find_nested(own, {"file:/lake/t", other})

    assert f"another table, {other}," in refusal
    assert find_nested(own, {"file:/lake/t"}) is None
    assert find_nested(own, ()) is None


@pytest.mark.parametrize(("minutes", "refused"), [(-600, False), (4, False), (6, True)])
def test_a_clock_that_is_ahead_of_the_store_s_deletes_nothing(minutes, refused):
    """By minutes, as it may be without a time server; one that is behind deletes later."""
    refusal = find_early(timedelta(minutes=minutes))

    assert (refusal is not None) is refused
    assert not refused or "360 seconds ahead" in refusal


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("interval 1 week", 7 * DAY),
        ("2 days 3 hours", timedelta(days=2, hours=3)),
        ("interval 1 month", None),
        ("", None),
        (f"{10**20} days", timedelta.max),
    ],
)
def test_intervals_of_delta(text, time):
    assert parse_interval(text) == time
