"""Checkpoints of short logs: all of their files, or none."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zadapter_delta.table.replay import _is_odd, read_lines

TEXTS = pa.map_(pa.string(), pa.string())
ADD = {
    "path": pa.string(),
    "partitionValues": TEXTS,
    "size": pa.int64(),
    "tags": TEXTS,
    "stats": pa.string(),
    "stats_parsed": pa.struct({"minValues": pa.struct({"day": pa.date32()})}),
}
FIRST = {
    "path": "p=a/1.parquet",
    "partitionValues": [("p", "a"), ("q", None)],
    "size": 7,
    "stats": '{"numRecords":3}',
}
BEYOND = {"minValues": {"day": pa.scalar(-1_000_000, pa.int32()).cast(pa.date32())}}
"""A date before year 1, which Spark writes and Python's dates do not have."""


def checkpoint(*adds, add=ADD, **columns):
    """Return the file of a checkpoint; the other actions are null, as in those of Delta."""
    rows = [*adds, None]
    names = {"add": pa.array(rows, pa.struct(add))}
    names |= {name: pa.array([None] * len(adds) + [value]) for name, value in columns.items()}
    out = io.BytesIO()
    pq.write_table(pa.table(names), out)
    return out.getvalue()


def test_fields_are_as_in_the_log():
    (line,) = read_lines(checkpoint(FIRST), 9)

    assert json.loads(line)["add"] == FIRST | {"partitionValues": {"p": "a", "q": None}}


def test_values_that_python_does_not_have_are_not_read():
    """They are copies of the stats."""
    assert len(read_lines(checkpoint({**FIRST, "stats_parsed": BEYOND}), 9)) == 1


@pytest.mark.parametrize(
    "data",
    [
        checkpoint(FIRST, sidecar={"path": "s.parquet"}),
        checkpoint(FIRST, checkpointMetadata={"version": 3}),
        checkpoint(FIRST, {**FIRST, "stats": None}),
    ],
    ids=["files elsewhere", "of version 2", "no stats as JSON"],
)
def test_a_checkpoint_that_is_not_complete_is_not_read(data):
    assert read_lines(data, 9) is None


def test_a_checkpoint_of_more_files_than_the_driver_keeps_is_not_read():
    """Removed files do not count: their rows have no file that is added."""
    assert len(read_lines(checkpoint(FIRST, None, None, FIRST), 2)) == 2
    assert read_lines(checkpoint(FIRST, FIRST, FIRST), 2) is None


def test_a_checkpoint_without_stats_has_none():
    without = {name: type_ for name, type_ in ADD.items() if not name.startswith("stats")}
    plain = {name: value for name, value in FIRST.items() if name != "stats"}

    (line,) = read_lines(checkpoint(plain, add=without), 9)

    assert "stats" not in json.loads(line)["add"]


@pytest.mark.parametrize("action", ["add", "remove"])
@pytest.mark.parametrize("path", ["./a", "/a", "p=1//a", "p=1/./a", "file:/a", "../a"])
def test_paths_that_delta_writes_otherwise_are_seen(action, path):
    """A file that is removed by another spelling would stay."""
    assert _is_odd(json.dumps({action: {"path": path}}))
    assert not _is_odd(json.dumps({action: {"path": "p=%3A/a.parquet"}}))
    assert not _is_odd(json.dumps({"commitInfo": {}}))
