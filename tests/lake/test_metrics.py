"""Metrics of a run, read by Prometheus' own parser."""

from datetime import datetime, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from zadapter.base.secrets import mask_secrets
from zadapter.errors import UsageError
from zadapter.lake.cleaning import Cleaned
from zadapter.lake.journal import Line
from zadapter.lake.report import LakeReport

TIME = datetime(2025, 10, 26, tzinfo=timezone.utc)
REWRITTEN = {
    "verdict": "rewritten",
    "files": 7,
    "bytes_rewritten": 1 << 40,
    "share_before": 0.5,
    "share_predicted": 0.25,
    "share_after": 0.1,
    "seconds": 2.5,
    "core_seconds": 4.75,
    "money": 0.000012,
}


def line(table, verdict, format="delta", **facts):  # noqa: A002
    return Line(run="r", time=TIME, table=table, format=format, verdict=verdict, **facts)


def report(*lines, lake="lake.toml", dry_run=False, **facts):
    return LakeReport(lake=lake, run="r", dry_run=dry_run, lines=lines, seconds=90.5, **facts)


def parse(found):
    """Return the values of all series, by metric and labels; no series is there twice."""
    families = list(text_string_to_metric_families(found.to_prometheus()))
    every = [sample for family in families for sample in family.samples]
    series = {(each.name, *sorted(each.labels.items())): each.value for each in every}
    assert len(series) == len(every)
    assert len({family.name for family in families}) == len(families)
    assert all(family.type == "gauge" and family.documentation for family in families)
    return series


def of_table(series, table):
    """Return the values of a table by the rest of the metric's name."""
    prefix = "zadapter_table_"
    return {
        name.removeprefix(prefix): value
        for (name, *labels), value in series.items()
        if ("table", table) in labels and name.startswith(prefix)
    }


def test_what_a_run_has_measured_is_in_its_metrics():
    found = of_table(parse(report(line("t", **REWRITTEN))), "t")

    assert found == {
        "verdict": 1,
        "failed": 0,
        "files": 7,
        "rewritten_bytes": 1 << 40,
        "scanned_before_ratio": 0.5,
        "scanned_predicted_ratio": 0.25,
        "scanned_after_ratio": 0.1,
        "rewrite_seconds": 2.5,
        "rewrite_core_seconds": 4.75,
        "rewrite_cost": 0.000012,
        "waited_nights": 0,
    }


def test_what_is_unknown_has_no_series():
    """A zero would be a figure that nobody has measured."""
    known = {"files": 7, "share_before": 0.5, "share_after": 0.5}  # as judged before the failure
    series = parse(
        report(
            line("failed", "failed", **known),
            line("unmatched.*", "failed", None),
            line("view", "left out", None),
            line("waits", "waits", waited=3, **known),
        )
    )

    assert of_table(series, "failed") == {"verdict": 1, "failed": 1, "scanned_before_ratio": 0.5}
    assert of_table(series, "unmatched.*") == {"verdict": 1, "failed": 1}
    assert of_table(series, "view") == {"verdict": 1, "failed": 0}
    waits = of_table(series, "waits")
    assert (waits["waited_nights"], waits["rewritten_bytes"]) == (3, 0)
    assert {"scanned_predicted_ratio", "rewrite_cost", "rewrite_core_seconds"}.isdisjoint(waits)


def test_a_run_has_metrics_of_its_own():
    lines = [line("a", **REWRITTEN), line("b", "nothing to do"), line("c", "nothing to do")]
    series = parse(report(*lines))

    lake = ("lake", "lake.toml")
    assert series["zadapter_run_end_timestamp_seconds", lake] == TIME.timestamp() + 90.5
    assert series["zadapter_run_duration_seconds", lake] == 90.5
    assert series["zadapter_run_rewritten_bytes", lake] == 1 << 40
    tables = {
        dict(labels)["verdict"]: value
        for (name, *labels), value in series.items()
        if name == "zadapter_run_tables"
    }
    assert tables == dict.fromkeys(tables, 0) | {"rewritten": 1, "nothing to do": 2}
    assert tables["failed"] == 0  # an alert needs the series before the first failure


def test_a_clean_up_that_failed_is_a_failure_of_its_table():
    steps = (Cleaned(step="VACUUM", counts={}, seconds=1.0, error="retention is too short"),)
    found = of_table(parse(report(line("a", **REWRITTEN), cleaned={"a": steps})), "a")

    assert (found["failed"], found["rewritten_bytes"]) == (1, 1 << 40)


def test_of_two_lines_of_a_table_that_of_the_failure_counts():
    """As of two entries that exclude the same: a collector refuses the same series twice."""
    series = parse(report(line("a", "left out", None), line("a", "failed", None)))

    assert of_table(series, "a") == {"verdict": 1, "failed": 1}
    assert series["zadapter_run_tables", ("lake", "lake.toml"), ("verdict", "left out")] == 0


def test_a_dry_run_has_no_metrics():
    with pytest.raises(UsageError, match="dry run measures nothing"):
        report(line("a", "due"), dry_run=True).to_prometheus()


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@example('a "b" \\n \\')
@example("s3://id:hidden@bucket/t")
@example("a\r\nb\x85\u2028c")
def test_names_of_tables_arrive_as_they_are(table):
    series = parse(report(line(table, **REWRITTEN), lake=table))

    assert len(of_table(series, mask_secrets(table))) == 11
    assert "hidden" not in report(line(table, **REWRITTEN)).to_prometheus()


def test_names_that_are_no_unicode_do_not_spoil_the_file():
    """Paths on Linux are bytes."""
    found = report(line(b"lake/\xff".decode("utf-8", "surrogateescape"), **REWRITTEN))

    assert of_table(parse(found), "lake/\\udcff")
    assert found.to_prometheus().encode()
