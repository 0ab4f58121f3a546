"""An advice says when a rewrite has paid, and what a layout has become worth."""

import json
from dataclasses import replace

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.report.test_optimize_report import PLAN
from zadapter.inspection.advice import (
    LEARNED,
    STEADY,
    Advice,
    Again,
    Candidate,
    Drift,
    JoinEffect,
    QueryEffect,
)
from zadapter.layout.filters import Keys
from zadapter.layout.layout import Request
from zadapter.planning.options import Options
from zadapter.planning.relearning import Relearning

KEYS = Keys({"k": 1.0})
TODAY, THEN = (
    Candidate(name=name, keys=keys, share=share, row_group_share=None, bytes_rewritten=size)
    for name, keys, share, size in (("as it is", None, 0.41, 0), (STEADY, KEYS, 0.21, 9_000))
)  # fmt: skip
DRIFT = Drift(filters=180, promised=0.231, held=0.24, elsewhere=0.17)


def advice(**changed):
    """An advice to learn from the log."""
    queries = (QueryEffect(where="k = 1 AND s = '<b>'", weight=3.0, before=0.41, after=0.21),)
    said = Advice(table="t", format="delta", version=1, entries=3, filters=1, learned_from=1,
                  judged_by=1, held_out=True, unused={}, rows=9, sampled=9, files=4,
                  candidates=(TODAY, THEN), best=KEYS, bloom_filters={},
                  queries=queries)  # fmt: skip
    return replace(said, **changed)


def test_a_rewrite_pays_after_days_where_the_log_has_times():
    """It reads and writes all bytes once, and each query saves a fifth of them."""
    timed = advice(queries_a_day=4.0)

    assert THEN.pays_after(TODAY) == 10
    assert timed.pays_after_days(THEN) == 2.5
    assert timed.facts()["pays after"] == "2.5 days, 10 queries, in bytes read"
    assert advice().pays_after_days(THEN) is None
    assert advice().facts()["pays after"] == "10 queries, in bytes read"
    assert timed.pays_after_days(TODAY) is None
    assert advice(queries_a_day=1e3).facts()["pays after"] == "10 queries, in bytes read"


@pytest.mark.parametrize(
    ("changed", "learned", "judged"),
    [
        ({"entries": 20}, "1 filter, the older part of the log", "1 filter, the newer part"),
        ({"entries": 19}, "1 filter, the older part of the log", "too few to rely on"),
        ({"held_out": False}, "1 filter, the whole log", "the same: only one part"),
    ],
)
def test_what_an_advice_rests_on_is_said(changed, learned, judged):
    """Queries that were not learned from, and enough of them."""
    facts = advice(**changed).facts()

    assert facts["learned from"] == learned
    assert judged in facts["judged by"]


def test_a_learned_layout_is_compared_with_what_it_promised():
    """And learning again is proposed where that lets queries read less."""
    drifted = advice(drift=DRIFT)
    left = advice(drift=DRIFT, best=None)

    assert "promised 23.1% to the 180 filters" in drifted.facts()["drift"]
    assert "these queries read 41.0%; 17% filter none of its columns" in drifted.facts()["drift"]
    assert drifted.facts()["advice"] == f"learn again, {STEADY}: k"
    assert left.facts()["advice"].startswith("keep the current layout")
    assert "drift" not in advice().facts()
    assert "only newer" not in advice().facts()
    assert (
        "queries filter b, c, but older ones do not"
        in advice(newer_columns=("b", "c")).facts()["only newer"]
    )
    assert advice().facts()["advice"] == f"{STEADY}: k"


@pytest.mark.parametrize("best", [KEYS, None])
def test_every_form_has_the_same_facts(best):
    """Text, HTML with a picture, and JSON; texts of a log are escaped."""
    found = advice(best=best, drift=DRIFT, queries_a_day=4.0)

    document = json.loads(json.dumps(found.to_dict()))
    assert document["drift"]["promised"] == 0.231
    assert document["queries_a_day"] == 4.0
    assert found.facts()["drift"] in str(found)
    assert "<b>" not in found._repr_html_()
    assert found._repr_html_().count("<svg") == 1
    canvas = FigureCanvasAgg(found.plot())
    canvas.draw()
    assert canvas.get_width_height() == (1200, 800)


def test_the_tree_that_reads_least_is_named_with_its_risk():
    """Even if queries of other kinds are expected to read less of it."""
    found = advice()
    tree = replace(found.candidates[1], name=LEARNED, share=0.1, row_group_share=0.05,
                   new_share=0.15, new_row_group_share=0.1)  # fmt: skip
    chosen = replace(found.candidates[1], row_group_share=0.08, new_share=0.25,
                     new_row_group_share=0.2)  # fmt: skip

    text = replace(found, candidates=(found.today, chosen, tree)).facts()["new queries"]

    assert "25.0% / 20.0%" in text
    assert "'learned from the log' is not advised: 15.0% / 10.0%" in text
    assert "one new kind of queries may read several times as much" in text


def test_joins_that_are_not_known_are_named_with_the_reason():
    """So nobody takes them for joins that no layout helps."""
    plain = {"column": "day", "queries": 3, "matching": 1.0, "share": None, "counted": 0}
    unread = JoinEffect(through="dates.name", unread="the table cannot be read", **plain)
    counted = JoinEffect(through="dates.year", **plain | {"share": 0.1, "counted": 3})

    said = advice(joins=(unread, counted)).facts()

    assert said["joins not counted"] == (
        "day through dates.name (the table cannot be read): the keys that match are not known"
    )
    assert said["joins"].startswith("3 queries filter day through dates.year")
    assert "joins not counted" not in advice(joins=(counted,)).facts()


HELD = Request(columns=(("k",),), weights=(1.0,), target_file_size=1 << 20)
BY_LOG = Options(table="t", by="auto", queries=["k = 1"])


@pytest.mark.parametrize(
    ("regret", "kept", "force", "says"),
    [
        (0.5, HELD, False, "the layout is kept: by what counts of the log"),
        (0.5, HELD, True, "none is chosen; the layout of the table is kept, and force=True"),
        (4.0, None, False, "the layout is learned again: it has cost queries"),
        (4.0, None, True, "the layout is learned again: it has cost queries"),
    ],
)
def test_a_report_says_what_a_log_did_to_the_layout(regret, kept, force, says):
    """Also where force=True rewrites a table that keeps its layout, as no other suits the log."""
    again = Again(relearning=Relearning(regret=regret, bytes=1 << 20), keys=KEYS, _kept=kept)

    found = again.apply(replace(BY_LOG, force=force))

    told = replace(PLAN, relearning=found.relearning, unchosen=found.unchosen).facts()["queries"]
    assert says in told
    assert ("takes the layout of the log now" in told) == (kept is not None and not force)
