"""Results have one form for people, notebooks and programs."""

import json
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum

import numpy as np
import pyarrow as pa

from zadapter.report.facts import SHOWN, Facts, Listing


class Kind(Enum):
    """Something with a value."""

    ONE = "one"


@dataclass(frozen=True)
class Result(Facts):
    """A result with values of every kind."""

    kind: Kind = Kind.ONE
    nan: float = float("nan")
    number: object = field(default_factory=lambda: np.int64(7))
    day: date = date(2024, 1, 2)
    time: datetime = datetime(2024, 1, 2, 3, 4, tzinfo=timezone.utc)
    price: Decimal = Decimal("1.50")
    raw: bytes = b"\xff"
    names: frozenset = frozenset({"a"})
    files: pa.Table = field(default_factory=lambda: pa.table({"path": ["a\x1b[2J<i>"]}))
    boxes: pa.Table = field(default_factory=lambda: pa.table({"x": [1]}))

    def facts(self):
        return {"kind": "one <b>"}

    def listings(self):
        rows = tuple((number, None, True, 0.25) for number in range(SHOWN + 1))
        return Listing("rows", ("n", "none", "yes", "share"), rows), Listing("empty", ("n",), ())


def test_values_become_json():
    """Without NaN, which JSON lacks; files only on request, other tables never."""
    document = Result().to_dict(files=True)

    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document == {
        "kind": "one", "nan": "nan", "number": 7, "day": "2024-01-02",
        "time": "2024-01-02T03:04:00+00:00", "price": "1.50", "raw": "ff", "names": ["a"],
        "files": [{"path": "a\x1b[2J<i>"}],
    }  # fmt: skip
    assert "files" not in Result().to_dict()


def test_text_and_html_show_the_same():
    """Long listings are cut, and say so; nothing is taken for markup."""
    text, html = str(Result()), Result()._repr_html_()

    for shown in (text, html):
        assert "rows, 20 of 21" in shown
        assert "empty" not in shown
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert Listing("rows", ("n",), ((1,), (2,)), total=7).heading == "rows, 2 of 7"
    assert Listing("rows", ("n",), ((1,), (2,)), total=2).heading == "rows"
