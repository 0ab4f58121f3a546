"""Stats of files that get a deletion vector."""

import json

from zadapter_delta.commits.deletion_vectors import widen


def test_null_counts_stay_where_deletes_cannot_change_what_they_say():
    """A count between none and all may be of deleted rows, so it is unknown."""
    stats = {
        "numRecords": 10,
        "minValues": {"a": 1, "s": {"b": "x"}},
        "nullCount": {"a": 0, "n": 10, "some": 3, "s": {"b": 4, "c": 0}},
        "tightBounds": True,
    }

    found = json.loads(widen(json.dumps(stats, separators=(",", ":"))))

    assert found["nullCount"] == {"a": 0, "n": 10, "s": {"c": 0}}
    assert found["tightBounds"] is False
    assert found["numRecords"] == 10
    assert found["minValues"] == stats["minValues"]


def test_bounds_stay_as_they_are_written():
    """A decimal of 38 digits has no float, and names of columns may look like members of stats."""
    bounds = (
        '{"d":12345678901234567890123456.789012345678,"nullCount":{"tightBounds":1e400},"t":"\\"}"}'
    )
    stats = f'{{"numRecords":5,"minValues":{bounds},"maxValues":{bounds},"nullCount":{{"t":2}}}}'

    found = widen(stats)

    assert found.count(bounds) == 2
    assert found.endswith('"nullCount":{},"tightBounds":false}')


def test_stats_without_null_counts():
    """Other writers may have left them out."""
    assert json.loads(widen('{"numRecords":5}')) == {
        "numRecords": 5,
        "nullCount": {},
        "tightBounds": False,
    }
