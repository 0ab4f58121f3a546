"""The page of a lake: order, trends, texts of others."""

import json
import re
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser

import pytest

from zadapter.lake import journal, page
from zadapter.lake.journal import Line
from zadapter.lake.report import LakeReport

START = datetime(2025, 10, 1, 3, 15, tzinfo=timezone.utc)
VOID = {"meta", "br"}


class Reading(HTMLParser):
    """What a browser reads: tags that are closed in order, cells of the tables, titles of SVG."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.rows, self.titles, self.texts = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open[-2:] == ["svg", "title"]:
            self.titles.append(data)
        elif {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def tables(self):
        """The first cells of the rows of tables and groups."""
        head = next(at for at, row in enumerate(self.rows) if row[0] == "table")
        return [row[0].strip() for row in self.rows[head + 1 :]]


def line(table, verdict="nothing to do", *, night=0, share=None, after=None, **facts):
    known = {
        "format": "delta",
        "share_before": share,
        "share_after": share if after is None else after,
    }
    return Line(
        run=str(night), time=START + timedelta(days=night), table=table, verdict=verdict,
        **known | facts,
    )  # fmt: skip


def report(*lines, earlier=(), **facts):
    history = None if earlier is None else journal.to_table(earlier)
    known = {"lake": "lake.toml", "run": "r", "dry_run": False, "seconds": 1.0}
    return LakeReport(lines=lines, history=history, **known | facts)


def read(*lines, **facts):
    return Reading(report(*lines, **facts).to_html())


def test_the_worst_tables_come_first():
    found = read(
        line("left", "left out", format=None),
        line("fine", share=0.9),
        line("small", share=0.1),
        line("unknown"),
        line("done", "rewritten", share=1.0, after=0.2, bytes_rewritten=7),
        line("no keys", "declined", share=0.3),
        line("waits", "waits", share=0.4, waited=1),
        line("waits longer", "waits", share=0.4, waited=2),
        line("in part", "rewritten in part", share=1.0, after=0.6),
        line("broken", "failed"),
        line("unclean", "rewritten", share=0.9, after=0.1, error="clean-up failed: VACUUM: no"),
    )

    assert [name.removesuffix(" delta") for name in found.tables] == [
        "failed: 2", "unclean", "broken",
        "with rewrites left: 3", "in part", "waits longer", "waits",
        "declined: 1", "no keys",
        "done: 4", "fine", "done", "small", "unknown",
        "left out: 1", "left",
    ]  # fmt: skip
    assert (
        "Tables: 2 failed, 3 with rewrites left, 1 declined, 4 done, 1 left out. "
        "The longest wait is 2 nights." in found.texts
    )


def test_a_row_says_what_was_measured_and_what_is_predicted():
    found = read(
        line("a", "rewritten", share=0.5, after=0.2, share_predicted=0.1, bytes_rewritten=1 << 20),
        line("b", "waits", share=0.5, share_predicted=0.1, waited=3, remark="too large"),
        line("c", share=0.5, share_predicted=0.1),
    )
    rows = {row[0]: row[1:] for row in found.rows if len(row) > 1 and row[0] != "table"}

    assert rows["a delta"] == ["rewritten", "50.0% to 20.0%", "", "1 MB", "", ""]
    assert rows["b delta"] == ["waits", "50.0%predicted 10.0%", "", "", "3", "too large"]
    assert rows["c delta"] == ["nothing to do", "50.0%", "", "", "", ""]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "\"'><img src=x onerror=alert(1)>",
        "&lt;b&gt;",
        "</style></title>",
    ],
)
def test_texts_of_others_are_no_markup(text):
    """Names, errors, the lake and its runs, of a run and of the journal alone."""

    def pages(given):
        lines = [line(f"{given}{n}", "failed", error=given) for n in range(2)]
        alone = page.render(given, lines, [])
        return read(*lines, earlier=None, lake=given, run=given), Reading(alone)

    for found, harmless in zip(pages(text), pages(re.sub("[<>&]", "x", text)), strict=True):
        assert found.tags == harmless.tags
        assert text in found.texts
        assert f"Maintenance of {text}" in found.texts


def test_characters_that_are_not_seen_are_escaped():
    """They would hide the order of others, end the text, or have no bytes in UTF-8."""
    nasty = "a\u202eb\x00\x1b\ud800é"
    text = report(line(nasty), lake=nasty).to_html()

    shown = r"a\u202eb\x00\x1b\ud800é"
    assert f"<h1>Maintenance of {shown}</h1>" in text
    assert f">{shown} <small>" in text
    assert text.encode("utf-8")


def test_a_trend_leads_from_the_journal_to_this_run():
    earlier = [line("a", "rewritten", share=0.8, after=0.3, bytes_rewritten=1 << 20),
               line("b", night=0, share=0.5), line("a", night=1, share=0.4)]  # fmt: skip
    found = read(
        line("a", "rewritten", night=2, share=0.6, after=0.1, bytes_rewritten=2 << 20),
        line("b", night=2, share=0.5),
        line("new", night=2),
        earlier=earlier,
    )

    assert found.titles == [
        "data scanned 65.0% to 30.0%, at most 65.0%; 3 MB rewritten in 2 of 3 runs",
        "data scanned 50.0% to 50.0%, at most 50.0%; 0 B rewritten in 0 of 3 runs",
        "data scanned 80.0% to 10.0%, at most 80.0%; 3 MB rewritten in 2 of 3 runs",
    ]
    assert "2025-10-01 to 2025-10-03" in "".join(found.texts)


def test_a_dry_run_is_no_run_of_the_trend():
    found = read(
        line("a", "due", night=1, share=0.9, share_predicted=0.1, bytes_rewritten=1 << 20),
        earlier=[line("a", share=0.5)],
        dry_run=True,
    )

    assert set(found.titles) == {
        "data scanned 50.0% to 50.0%, at most 50.0%; 0 B rewritten in 0 of 1 run"
    }
    assert "would be rewritten" in found.texts


@pytest.mark.parametrize(
    ("earlier", "dry_run", "told"),
    [(None, False, "add a [journal]"), (None, True, "add a [journal]"), ((), True, "no run yet")],
)
def test_without_a_trend_the_page_says_why(earlier, dry_run, told):
    found = read(line("a", share=0.5), earlier=earlier, dry_run=dry_run)

    assert told in "".join(found.texts)
    assert "svg" not in found.tags
    assert "trend" not in found.texts


def test_a_name_that_moves_to_another_format_begins_a_new_trend():
    earlier = [line("a", share=0.9)]
    found = read(line("a", night=1, share=0.2, format="iceberg"), earlier=earlier)

    assert (
        "data scanned 20.0% to 20.0%, at most 20.0%; 0 B rewritten in 0 of 2 runs" in found.titles
    )


def test_of_many_runs_the_last_are_shown():
    lines = [line("a", night=night, share=0.5) for night in range(2 * page.RUNS)]

    assert f"in {page.RUNS} runs" in "".join(read(lines[-1], earlier=lines[:-1]).texts)


def test_a_page_loads_nothing_and_a_thousand_tables_stay_small():
    nights = [
        [
            line(f"s3://lake/raw/t{n}", "rewritten" if n % 3 == night % 3 else "nothing to do",
                 night=night, share=(n * night % 97) / 97, after=0.1 * (n % 3),
                 bytes_rewritten=n % 3 * 1_000_000_007)
            for n in range(1_000)
        ]
        for night in range(3)
    ]  # fmt: skip
    text = page.render("lake.toml", nights[-1], [*nights[:-1] * 14, nights[-1]])

    assert len(text) < 2_000_000
    assert not re.search(r"<script|<link|<img|https?:|url\(|@import", text)


def test_the_history_is_no_part_of_texts_and_json():
    """Programs have the journal itself."""
    with_history, without = report(line("a"), earlier=[line("b")]), report(line("a"), earlier=None)

    assert with_history.to_dict() == without.to_dict()
    json.dumps(with_history.to_dict(files=True))
    assert str(with_history) == str(without)
    assert repr(with_history) == repr(without)


@pytest.mark.parametrize("earlier", [[], [[]]])
def test_a_run_over_no_table_is_no_part_of_a_trend(earlier):
    """As before the first run, and where all that matches is excluded."""
    assert "the journal has no run yet" in page.render("lake.toml", [], earlier)


def test_a_lake_without_tables_has_a_page():
    assert "Tables: none." in read(earlier=None).texts
