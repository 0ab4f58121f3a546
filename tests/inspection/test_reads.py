"""What queries read in vain follows from what they open, and from what the opened files hold."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.builders import file_table
from tests.kit.leaves import is_
from zadapter.inspection.query_log import LoggedFilter, QueryLog
from zadapter.inspection.reads import NO_POSITION, Footers, listing, matches_of, query, reads
from zadapter.predicates.predicate import And, Or, Unknown
from zadapter.predicates.pruning import matching

UPPER = Unknown("upper(s) = 'A'")


def files_of(values):
    """A file for each list of values of column a, with its bounds."""
    low, high = (pa.array([side(each) for each in values], pa.int64()) for side in (min, max))
    stats = {"a": (low, high, pa.array([0] * len(values), pa.int64()))}
    rows = [len(each) for each in values]
    return file_table([str(at) for at in range(len(values))], rows=rows, stats=stats)


def equals(value):
    """A filter on one value."""
    return is_("a", "=", value, pa.int64())


def counts(values, value):
    """The number of rows with a value in each file."""
    return np.array([each.count(value) for each in values], np.int64)


def judged(values, value, *, weight=1.0, groups=None, known=True, predicate=None):
    """What a filter on one value reads of files, each of which is cut into row groups."""
    files, predicate = files_of(values), predicate or equals(value)
    footers, in_groups = None, None
    if groups is not None:
        parts = [part for file in groups for part in file]
        file_of = np.repeat(np.arange(len(groups)), [len(file) for file in groups])
        footers = Footers(files_of(parts), file_of)
        in_groups = counts(parts, value) if known else None
    may = matching(predicate, files)
    found = query(f"a = {value}", predicate, files, may, weight=weight, footers=footers)
    hits = matches_of(predicate, may, counts(values, value), footers, in_groups)
    return found, hits


def together(*found):
    """What filters read together."""
    filters = [LoggedFilter(equals(0), q.condition, (q.weight,), 1) for q, _ in found]
    log = QueryLog(tuple(filters), len(found) + 1, {"no text": 1})
    return reads(log, with_matches(*found))


def with_matches(*found):
    """Queries with what they find."""
    fields = type(found[0][0]).__dataclass_fields__
    return [
        type(q)(**{name: m if name == "matches" else getattr(q, name) for name in fields})
        for q, m in found
    ]


@given(
    st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=6), min_size=1, max_size=8),
    st.integers(0, 20),
)
def test_every_matching_row_is_in_an_opened_file(values, value):
    """So the share in vain is that of all files without a match among those that bounds keep."""
    found, hits = judged(values, value)

    kept = [each for each in values if min(each) <= value <= max(each)]
    missed = [each for each in kept if value not in each]
    assert found.read.files == len(kept)
    assert hits.rows == sum(each.count(value) for each in values)
    assert hits.files == len(kept) - len(missed)
    assert hits.in_vain == pytest.approx(len(missed) / len(kept) if kept else 0)
    assert hits.exact


def test_row_groups_are_counted_within_opened_files():
    """Those of a file that is not opened count nowhere, whatever their bounds."""
    values = [[1, 2, 8, 9], [5, 5, 6, 7], [20, 30]]
    found, hits = judged(values, 5, groups=[[[1, 2], [8, 9]], [[5, 5], [4, 7]], [[5], [30]]])

    assert (found.row_groups.files, found.row_groups.of) == (2, 2)
    assert (found.row_groups.kept, found.row_groups.row_groups) == (2, 4)
    assert (hits.row_groups, hits.row_groups_in_vain) == (1, 0.5)
    assert (hits.files, hits.in_vain) == (1, 0.5)


def test_weights_count_what_all_queries_open():
    """A filter that is asked nine times opens its files nine times."""
    vain = judged([[1, 9], [5, 6]], 7, weight=9.0)
    hit = judged([[1, 9], [5, 6]], 6, weight=1.0)

    found = together(vain, hit)

    assert (found.entries, found.filters, found.judged, found.counted) == (3, 2, 2, 2)
    assert found.share == pytest.approx((9 * 0.5 + 1 * 1.0) / 10)
    assert found.in_vain == pytest.approx((9 * 1 + 1 * 1) / (9 * 1 + 1 * 2))
    assert found.row_groups_in_vain is None
    assert "90.9% of the opened files" in found.facts()["in vain"]
    assert listing(with_matches(hit, vain)).rows[0][0] == "a = 7"


def test_what_could_not_be_counted_is_said():
    """Row groups without positions of rows, and parts that bounds cannot answer."""
    without = judged([[1, 9]], 5, groups=[[[1, 4], [4, 9]]], known=False)
    weaker = judged([[1, 9]], 5, predicate=And((equals(5), UPPER)))
    either = judged([[1, 9]], 5, predicate=Or((equals(5), UPPER)))

    assert together(without).note == NO_POSITION
    assert NO_POSITION in together(without).facts()["in vain"]
    assert together(weaker).note == ""
    assert (weaker[1].exact, either[1].exact) == (False, False)
    assert "at least 100.0%" in listing(with_matches(weaker)).rows[0]


def test_queries_without_counts_have_no_share_in_vain():
    """Nothing was read; the share that bounds leave is known all the same."""
    (found, _) = judged([[1, 9], [20, 30]], 5)
    log = QueryLog((LoggedFilter(equals(5), "a = 5", (1.0,), 1),), 1, {})

    whole = reads(log, [found])

    assert (whole.share, whole.in_vain, whole.counted) == (0.5, None, 0)
    assert "in vain" not in whole.facts()
    assert listing([found]).columns == ("condition", "files", "rows read", "excludes nothing")
    json.dumps([whole.unused, found.condition])
