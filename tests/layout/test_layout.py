"""A layout survives being written, and being cut into fewer files."""

import json
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.builders import fitted, placed, request
from zadapter.errors import UsageError
from zadapter.layout.layout import Curve, Layout, Request
from zadapter.layout.levels import Level

EVERY_CURVE = pytest.mark.parametrize("curve", [curve.value for curve in Curve])
MOMENT = datetime.fromisoformat("0001-01-01T00:00:00.000001")
VALUES = [
    ([True, False, None], pa.bool_()),
    ([-128, 0, None, 127], pa.int8()),
    ([-(1 << 15), 0, 7], pa.int16()),
    ([-(1 << 31), 0, (1 << 31) - 1], pa.int32()),
    ([-(1 << 63), 0, None, (1 << 63) - 1], pa.int64()),
    ([0.1, -0.0, float("nan"), float("inf"), 1e-45, None], pa.float32()),
    ([0.1, -0.0, float("nan"), float("-inf"), 5e-324, None], pa.float64()),
    ([Decimal("0." + "9" * 38), None, Decimal("-1e-38")], pa.decimal128(38, 38)),
    ([Decimal("-1.50"), Decimal("2.25")], pa.decimal128(5, 2)),
    ([date(1, 1, 1), date(1582, 10, 10), None, date(9999, 12, 31)], pa.date32()),
    ([MOMENT, MOMENT + timedelta(days=3e6, microseconds=1), None], pa.timestamp("us")),
    ([MOMENT.replace(tzinfo=timezone.utc), None], pa.timestamp("us", "UTC")),
    (["", "é", "\ue000", "\U00010000", "\0", None], pa.string()),
    ([b"", b"\x00", b"\xff\xfe", None], pa.binary()),
]
TYPED = [pytest.param(pa.array(values, type_), id=str(type_)) for values, type_ in VALUES]


def parts(layout):
    """All that a layout is, comparable: bits of floats show in their repr."""
    arrays = [layout.first_file, layout.width, layout.order]
    return (
        layout.request,
        layout.roots,
        [(level.column, level.cuts.type, repr(level.cuts.to_pylist())) for level in layout.levels],
        [None if array is None else (array.dtype, array.tolist()) for array in arrays],
    )


@st.composite
def layouts(draw):
    """A layout of three partitions, where one value may be heavy, with its rows."""
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    values = random.random(200)
    values[random.random(200) < draw(st.sampled_from([0.0, 0.7]))] = 0.5
    files = draw(st.lists(st.integers(1, 9), min_size=3, max_size=3))
    root_of = random.integers(0, 3, 200)
    roots = [("a", None), ("b", "1"), (None, "2")]
    return fitted([values], files, roots=roots, root_of=root_of), [values], root_of


@EVERY_CURVE
@pytest.mark.parametrize("values", TYPED)
def test_a_layout_comes_back_as_it_was_written(curve, values):
    """Every curve, every type, every bit."""
    other = pa.array(np.arange(len(values)) % 2)
    layout = fitted([values, other], 3, roots=[("x", None)], curve=curve)

    again = Layout.from_json(layout.to_json())

    assert parts(again) == parts(layout)
    assert again.id == layout.id
    assert again.to_json() == layout.to_json()


@pytest.mark.parametrize("values", TYPED)
def test_cuts_come_back_whatever_they_are(values):
    """Also those that fitting would not choose: zeros with a sign, infinities, nulls."""
    level = Level(0, pa.concat_arrays([values, pa.nulls(1, values.type)]))
    size = 2 * len(level.cuts)
    some = np.arange(size, dtype=np.int32)
    layout = Layout(
        request=request(), roots=((),) * (size // 2), levels=(level,), first_file=some, width=some
    )

    assert parts(Layout.from_json(layout.to_json())) == parts(layout)


def test_a_session_time_zone_leaves_no_trace():
    """Instants are instants: the layout is the same whatever zone they are shown in."""
    instants = pa.array([0, 1, None, 3], pa.int64())

    utc, tokyo = (
        fitted([instants.cast(pa.timestamp("us", zone))], 2) for zone in ("UTC", "Asia/Tokyo")
    )

    assert utc.to_json() == tokyo.to_json()


def test_the_text_is_plain_json_of_one_format():
    """Other languages and later versions can read it, and this one what earlier ones wrote."""
    data = json.loads(fitted([np.arange(8)], 2, row_groups=2).to_json(), parse_constant=pytest.fail)

    assert data["format"] == 2
    assert Layout.from_json(json.dumps(data | {"format": 1})) == Layout.from_json(json.dumps(data))
    assert [level["cuts"] for level in data["levels"]] == [["4"], ["2", "6"], ["1", "3", "5", "7"]]
    assert data["first_file"] == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
def test_a_grid_of_long_texts_is_small(curve):
    """A column has a thousand cuts at most, however many cells it cuts; Cyrillic is no escapes."""
    texts = pa.array([f"{'я' * 250}{number:05}" for number in range(3_000)])
    layout = fitted([texts, pa.array(range(3_000))], 50, curve=curve)

    assert sum(len(level.cuts) for level in layout.levels) > 60_000
    assert len(layout.to_json().encode()) < 4_000_000
    assert parts(Layout.from_json(layout.to_json())) == parts(layout)


@pytest.mark.parametrize("format_", [None, 0, 5, "1"])
def test_another_format_is_refused(format_):
    """With both ways out in the message."""
    data = json.loads(fitted([[1, 2]], 1).to_json())
    data["format"] = format_

    with pytest.raises(UsageError, match="upgrade zadapter, or pass force=True"):
        Layout.from_json(json.dumps(data))


def test_ids_are_equal_where_trees_are():
    """The request, the roots, each level's column, type and cuts count; what files are cut, not."""
    layout = fitted([np.arange(8), np.arange(8)], 2, roots=[("a",)], row_groups=2)
    first, *rest = layout.levels
    others = [
        replace(layout, request=request(2, row_groups=3)),
        replace(layout, roots=(("b",),)),
        replace(layout, roots=((None,),)),
        replace(layout, levels=(Level(1, first.cuts), *rest)),
        replace(layout, levels=(Level(0, pa.nulls(1, first.cuts.type)), *rest)),
        replace(layout, levels=(Level(0, first.cuts.cast(pa.int32())), *rest)),
        replace(layout, levels=(first,)),
    ]

    assert len({layout, *others}) == 1 + len(others)
    assert {len(other.id) for other in others} == {32}
    assert all(other.id.startswith(other.request.id) for other in others)
    assert layout == layout.regrain([1]) == Layout.from_json(layout.to_json())
    assert layout.id == layout.regrain([1]).id
    assert layout != layout.id


@given(drawn=layouts(), files=st.lists(st.integers(0, 12), min_size=3, max_size=3))
@settings(deadline=None, max_examples=60)
def test_regraining_joins_neighbouring_files(drawn, files):
    """Each root gets as many files as asked for, if it has them; each is some old ones, whole."""
    layout, values, root_of = drawn
    grain = [min(new, old) for new, old in zip(files, layout.grain().tolist(), strict=True)]
    starts = np.cumsum(grain) - grain

    new = layout.regrain(files)

    assert new.grain().tolist() == grain
    assert new.files == sum(grain)
    leaf, _ = placed(layout, values, root_of)
    for at in np.unique(leaf[np.isin(root_of, np.flatnonzero(grain))]):
        root = root_of[leaf == at][0]
        old = np.arange(layout.width[at]) + layout.first_file[at] - layout.grain()[:root].sum()
        wanted = starts[root] + np.unique(old * grain[root] // layout.grain()[root])
        assert wanted.tolist() == list(
            range(new.first_file[at], new.first_file[at] + new.width[at])
        )


def test_regraining_keeps_sizes_even():
    """Nine files become four: none holds fewer than two, or more than three, of them."""
    values = np.arange(900)

    layout = fitted([values], 9).regrain([4])

    rows = np.bincount(placed(layout, [values])[1])
    assert sorted(rows) == [200, 200, 200, 300]


def test_regraining_twice_finds_files_for_every_root():
    """A root that was left out gets one file again, rather than none to go to."""
    layout = fitted([np.arange(8)], [2, 2], roots=[("a",), ("b",)], root_of=np.arange(8) % 2)

    assert layout.regrain([0, 2]).grain().tolist() == [0, 2]
    assert layout.regrain([0, 2]).regrain([2, 1]).grain().tolist() == [1, 1]


names = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3, unique=True)


@given(names=names, weight=st.floats(1e-9, 1e9), size=st.integers(1, 1 << 60), data=st.data())
def test_a_request_comes_back_as_it_was_written(names, weight, size, data):
    """Through JSON, odd column names included, with the same id; any change makes another."""
    asked = Request(
        columns=tuple((name, "x") for name in names),
        weights=(weight,) * len(names),
        curve=data.draw(st.sampled_from(Curve)),
        target_file_size=size,
    )

    again = Request.from_dict(json.loads(json.dumps(asked.to_dict())))

    assert again == asked
    assert again.id == asked.id
    assert replace(asked, target_file_size=size + 1).id != asked.id
    assert replace(asked, columns=tuple((*c, "y") for c in asked.columns)).id != asked.id


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"columns": ()}, "no key columns"),
        ({"columns": (("a",), ("a",))}, "duplicate key columns: a, a"),
        ({"weights": (1.0,)}, "2 key columns require 2 weights"),
        ({"weights": (1.0, 0.0)}, "positive"),
        ({"weights": (1.0, -1.0)}, "positive"),
        ({"weights": (float("nan"), 1.0)}, "positive"),
        ({"weights": (float("inf"), 1.0)}, "positive"),
        ({"row_groups": 0}, "at least 1"),
    ],
)
def test_a_request_makes_sense(wrong, message):
    """The error says what is wrong with it."""
    right = {"columns": (("a",), ("b",)), "weights": (1.0, 2.0), "target_file_size": 1}
    Request(**right)

    with pytest.raises(UsageError, match=message):
        Request(**right | wrong)


def test_runs_with_equal_cuts_are_told_apart():
    """Appends of one value each have no cuts at all; the run is part of the id, and of the JSON."""
    plain = fitted([[1, 1, 1]], 2)
    one, other = (replace(plain, run=name) for name in ("a", "b"))

    assert len({plain.id, one.id, other.id}) == 3
    assert {each.id[:16] for each in (one, other)} == {plain.request.id}
    assert Layout.from_json(one.to_json()).id == one.id


def test_bloom_filters_belong_to_the_request():
    """Without them, the id and the stored form are those of earlier releases."""
    plain, filtered = request(2), replace(request(2), bloom_filters=(("a", "b.c"), ("d",)))
    layout = fitted([np.arange(8), np.arange(8)], 2)

    assert "bloom_filters" not in plain.to_dict()
    assert plain.id == "2626afa76b1acde8"
    assert filtered.id != plain.id
    assert type(filtered).from_dict(json.loads(json.dumps(filtered.to_dict()))) == filtered
    assert json.loads(layout.to_json())["format"] == 2
    kept = Layout.from_json(replace(layout, request=filtered).to_json())
    assert kept.request == filtered
    assert json.loads(kept.to_json())["format"] == 4
