"""What journals say of tables: last lines, waits, corrections."""

import math
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.lake import journal
from zadapter.lake.journal import (
    SCHEMA,
    Line,
    correction,
    describe,
    keep_last_runs,
    latest,
    split_runs,
    to_table,
    unchanged,
    waited,
)

START = datetime(2025, 10, 26, tzinfo=timezone.utc)
VERDICTS = ["rewritten", "nothing to do", "waits", "declined", "failed", "left out"]
LINE = Line(
    run="0", time=START, table="t", format="delta", version=1, verdict="rewritten", files=3,
    bytes_rewritten=1 << 30, share_before=0.5, share_predicted=0.1, share_after=0.1, seconds=2.0,
    core_seconds=None, money=None, waited=0, error=None,
)  # fmt: skip

SHARES = st.none() | st.floats(0, 1)


@st.composite
def nights(draw, formats=("delta",)):
    """Lines of a few runs in the order of the journal; clocks may be behind."""
    lines = []
    runs = draw(st.integers(0, 6))
    for run in range(runs):
        time = START + timedelta(days=draw(st.integers(0, 3)))
        for _ in range(draw(st.integers(0, 4))):
            line = replace(
                LINE,
                run=str(run),
                time=time,
                table=draw(st.sampled_from("tuv")),
                format=draw(st.sampled_from(formats)),
                version=draw(st.none() | st.integers(0, 3)),
                verdict=draw(st.sampled_from(VERDICTS)),
                share_before=draw(SHARES),
                share_predicted=draw(SHARES),
                share_after=draw(SHARES),
            )
            lines.append(line)
    return lines


def history(lines, table):
    """The lines of a table, the last of each run alone."""
    own = [line for line in lines if line.table == table]
    return [line for at, line in enumerate(own) if line.run not in {e.run for e in own[at + 1 :]}]


def night(number, verdict="rewritten", **values):
    return replace(
        LINE, run=str(number), time=START + timedelta(days=number), verdict=verdict, **values
    )


def measured(number, factor, **values):
    """A rewrite that saved *factor* times what was predicted."""
    return night(
        number, share_before=0.5, share_predicted=0.4, share_after=0.5 - 0.1 * factor, **values
    )


def test_the_columns_of_a_journal_are_stable():
    """Journals are kept for years: a column is never renamed and never gets another type."""
    assert SCHEMA.names == [field.name for field in fields(Line)]
    assert {str(f.type): [g.name for g in SCHEMA if g.type == f.type] for f in SCHEMA} == {
        "string": ["run", "table", "format", "verdict", "error", "settings", "remark"],
        "timestamp[us, tz=UTC]": ["time"],
        "int64": ["version", "files", "bytes_rewritten", "waited"],
        "double": [
            *("share_before", "share_predicted", "share_after", "seconds", "core_seconds", "money"),
            "weight",
        ],
    }


@given(nights(formats=("delta", None)))
def test_a_table_is_the_lines_that_it_was_made_of(lines):
    assert journal.to_lines(to_table(lines)) == lines


def test_times_without_a_zone_are_in_utc():
    naive = replace(LINE, time=START.replace(tzinfo=None))
    elsewhere = replace(LINE, time=START.astimezone(timezone(timedelta(hours=-8))))

    assert to_table([naive]).equals(to_table([LINE]))
    assert to_table([elsewhere]).equals(to_table([LINE]))


@given(nights(formats=("delta", "iceberg", None)))
def test_the_latest_line_is_the_last_one_whatever_clocks_say(lines):
    found = latest(to_table(lines))

    assert found.keys() == {line.table for line in lines}
    for table, line in found.items():
        assert line == [each for each in lines if each.table == table][-1]


@given(nights())
def test_nights_that_a_table_has_waited_are_the_last_ones(lines):
    found = waited(to_table(lines))

    assert found.keys() == {line.table for line in lines}
    for table, count in found.items():
        verdicts = [line.verdict for line in history(lines, table)]
        assert verdicts[len(verdicts) - count :] == ["waits"] * count
        assert count == len(verdicts) or verdicts[-count - 1] != "waits"


@given(nights(), st.integers(0, 3))
def test_each_further_night_adds_to_the_wait_until_another_verdict(lines, number):
    later = [night(10 + each, "waits") for each in range(number)]

    assert waited(to_table(lines + later)).get("t", 0) == number + waited(to_table(lines)).get(
        "t", 0
    )
    assert waited(to_table([*lines, *later, night(20, "failed")]))["t"] == 0


@given(nights())
def test_corrections_are_bounded_and_follow_the_last_three_rewrites(lines):
    found = correction(to_table(lines))

    assert found.keys() == {line.table for line in lines}
    assert all(0.25 * 0.999 <= factor <= 4 * 1.001 for factor in found.values())
    rewrites = [measured(10 + at, factor) for at, factor in enumerate((2, 2, 2))]
    assert correction(to_table(lines + rewrites))["t"] == pytest.approx(2)
    others = {table: factor for table, factor in found.items() if table != "t"}
    assert others.items() <= correction(to_table(lines + rewrites)).items()


@given(st.lists(st.floats(-8, 8), min_size=1, max_size=3))
def test_a_correction_is_the_geometric_mean_of_bounded_factors(factors):
    lines = [measured(at, factor) for at, factor in enumerate(factors)]

    bounded = [min(max(factor, 0.25), 4) for factor in factors]
    assert correction(to_table(lines))["t"] == pytest.approx(
        math.prod(bounded) ** (1 / len(factors))
    )


@pytest.mark.parametrize(
    "values",
    [
        {"verdict": "waits"},
        {"verdict": "failed"},
        {"share_after": None},
        {"share_before": None},
        {"share_predicted": None},
        {"share_predicted": 0.5},
        {"share_predicted": 0.6},
        {"share_predicted": math.nan},
    ],
)
def test_lines_without_a_measured_saving_do_not_correct(values):
    line = replace(measured(3, 2), **values)

    assert correction(to_table([line])) == {"t": 1.0}
    assert correction(to_table([measured(0, 3), line, line]))["t"] == pytest.approx(3)


def test_a_name_with_tables_of_two_formats_waits_as_long_as_the_longer():
    other = {"format": "iceberg"}
    lines = [night(n, "waits") for n in range(3)] + [night(n, **other) for n in range(3)]

    assert waited(to_table(lines)) == {"t": 3}
    assert waited(to_table([*lines, night(3, "failed", format=None)])) == {"t": 0}
    moved = [measured(0, 4), measured(1, 2, **other)]
    assert correction(to_table(moved))["t"] == pytest.approx(2)
    assert correction(to_table([*moved, measured(2, 4)]))["t"] == pytest.approx(4)


def test_lines_of_an_unknown_format_belong_to_the_table_that_is_found_later():
    lines = [night(0, "waits", format=None), night(1, "waits")]

    assert waited(to_table(lines)) == {"t": 2}


def test_a_run_that_was_taken_up_again_counts_once():
    failed = night(1, "failed", format=None)
    lines = [night(0, "waits"), night(1, "waits"), failed, night(1, "waits")]

    assert waited(to_table(lines)) == {"t": 2}
    assert waited(to_table(lines[:3])) == {"t": 0}
    assert latest(to_table(lines))["t"].verdict == "waits"
    (_, row) = describe(split_runs(to_table(lines))).rows
    assert row[1:4] == ("0", "1", "0")


@pytest.mark.parametrize("verdict", VERDICTS)
def test_tables_that_were_settled_and_did_not_change_are_not_judged_again(verdict):
    last = latest(to_table([replace(LINE, verdict=verdict)]))
    settled = verdict in {"rewritten", "nothing to do", "declined"}

    assert unchanged(last, "t", 1) == unchanged(last, "t", 1, format="delta") == settled
    assert not unchanged(last, "t", 2)
    assert not unchanged(last, "t", None)
    assert not unchanged(last, "u", 1)
    assert not unchanged(last, "t", 1, format="iceberg")
    unknown = latest(to_table([replace(LINE, verdict=verdict, version=None)]))
    assert not unchanged(unknown, "t", None)


def test_a_history_has_a_line_for_each_run():
    lines = [
        night(0, money=0.5),
        night(0, "waits", table="u", bytes_rewritten=0, share_before=0.3, share_after=0.3),
        night(0, "failed", table="v", share_after=None),
        night(1, "nothing to do", bytes_rewritten=0, share_before=None),
    ]

    assert describe(split_runs(to_table(lines))).rows == (
        ("2025-10-26 00:00:00", "1", "1", "1", "2 GB", "6", "0.50", "40.0%", "20.0%"),
        ("2025-10-27 00:00:00", "0", "0", "0", "0 B", "2", "", "", ""),
    )


@pytest.mark.parametrize("count", [1, 2, 9])
def test_the_last_runs_are_those_that_were_appended_last(count):
    """Whatever the clocks of their machines say."""
    lines = [night(n, table=table) for n, table in [(2, "t"), (0, "t"), (1, "t"), (1, "u")]]

    kept = split_runs(keep_last_runs(to_table(lines), count))

    last = [["2"], ["0"], ["1", "1"]][-count:]
    assert [[line.run for line in each] for each in kept] == last


def test_an_empty_journal_says_nothing_of_tables():
    empty = SCHEMA.empty_table()

    assert (latest(empty), waited(empty), correction(empty)) == ({}, {}, {})
    assert describe(split_runs(empty)).rows == ()
    assert keep_last_runs(empty, 3).num_rows == 0


def test_columns_that_an_older_release_did_not_write_are_unknown():
    old = to_table([LINE])
    for name in ("bytes_rewritten", "seconds", "share_after", "waited"):
        at = old.column_names.index(name)
        old = old.set_column(at, old.field(at), pa.nulls(1, old.field(at).type))

    assert latest(old)["t"].waited is None
    assert correction(old) == {"t": 1.0}
    assert describe(split_runs(old)).rows[0][4] == "0 B"
