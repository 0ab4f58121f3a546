"""Facts of AddFile actions that Arrow reads, and those that it leaves to Spark."""

import json
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

from zadapter_delta.stats.add_files import Wanted
from zadapter_delta.stats.arrow_adds import flatten, look_up
from zadapter_delta.table import checkpoints
from zadapter_delta.table.checkpoints import Checkpoint, format_lines, to_structs

TYPES = {
    "i": (pa.int32(), T.IntegerType()),
    "x": (pa.float64(), T.DoubleType()),
    "d": (pa.decimal128(10, 2), T.DecimalType(10, 2)),
    "day": (pa.date32(), T.DateType()),
    "t": (pa.timestamp("us", "UTC"), T.TimestampType()),
    "local": (pa.timestamp("us"), T.TimestampNTZType()),
    "s": (pa.string(), T.StringType()),
    "f": (pa.float32(), T.FloatType()),
    "b": (pa.bool_(), T.BooleanType()),
}
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "sizeInBytes": 9, "cardinality": 4}


def wanted(name, physical=None):
    """Return a column of a name, by its physical name."""
    arrow, spark = TYPES[name]
    return Wanted(parts=(name,), physical=physical or (name,), type=arrow, spark_type=spark)


def add(stats=None, **fields):
    """Return an action whose stats are an object or a text."""
    text = stats if stats is None or isinstance(stats, str) else json.dumps(stats)
    return {"path": "1", "partitionValues": {}, "size": 7, "stats": text, **fields}


def bounds(low, high=None):
    """Return stats whose only column is ``c-o.l``."""
    high = low if high is None else high
    return {"numRecords": 3, "minValues": {"c-o.l": low}, "maxValues": {"c-o.l": high}}


def read(*adds, columns=(), partition=()):
    """Return facts of actions as a list for each."""
    parts = {name: wanted(name, (f"col-{name}",)) for name in partition}
    return flatten(to_structs(adds), columns, parts).to_pydict()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("i", -0, 0),
        ("x", -0.0, -0.0),
        ("d", 1.5, Decimal("1.50")),
        ("day", "0001-01-01", date(1, 1, 1)),
        ("t", "2024-01-01T01:30:00.5+01:30", datetime(2024, 1, 1, 0, 0, 0, 500_000, timezone.utc)),
        ("local", "2024-01-01T01:30:00", datetime(2024, 1, 1, 1, 30)),  # noqa: DTZ001 - without
        ("s", 'ä"\n\\😀', 'ä"\n\\😀'),
    ],
)
def test_bounds_are_values_of_their_type(name, text, value):
    """By the column's physical name, which may have dots."""
    found = read(add(bounds(text)), add(), add("{}"), columns=[wanted(name, ("c-o.l",))])

    assert found["min0"] == found["max0"] == [value, None, None]
    assert str(found["min0"][0]) == str(value)
    assert (found["records"], found["nulls0"]) == ([3, None, None], [None] * 3)


def test_a_field_of_a_struct_is_null_where_the_struct_is():
    column = wanted("i", ("a", "b"))
    stats = [{"minValues": {"a": {"b": 1}}}, {"minValues": {"a": None}}, {"minValues": None}]

    assert read(*map(add, stats), columns=[column])["min0"] == [1, None, None]


def test_facts_of_files_are_those_of_their_actions():
    """Deletion vectors with an offset or none, layouts, owners, and what stats count."""
    offset = VECTOR | {"offset": 1}
    tags = {"other": "x", "zadapter.layout": "id"}
    found = read(
        add(),
        add({"tightBounds": True}, deletionVector=VECTOR, tags=tags, clusteringProvider="zadapter"),
        add(deletionVector=offset, clusteringProvider="liquid"),
    )

    assert found["deletes"] == [None, "u@ab", "u@ab@1"]
    assert found["deleted"] == [0, 4, 4]
    assert found["tight"] == [True, True, False]
    assert found["layout"] == [None, "id", None]
    assert found["owner"] == [None, None, "liquid"]


def test_the_empty_text_is_null_but_in_columns_of_texts():
    """As some writers of Delta write null."""
    values = [{"col-i": "-5", "col-s": "", "col-day": "2024-02-29"}, {"col-i": ""}, {"col-s": None}]

    found = read(*(add(partitionValues=each) for each in values), partition=["i", "s", "day"])

    assert found["partition0"] == [-5, None, None]
    assert found["partition1"] == ["", None, None]
    assert found["partition2"] == [date(2024, 2, 29), None, None]


@pytest.mark.parametrize(
    ("name", "low"),
    [
        *(("i", each) for each in (1.0, "1", True, 1 << 31, [1])),
        *(("x", each) for each in ("NaN", float("nan"), float("inf"))),
        *(("d", each) for each in (1.555, 1e9)),
        *(("day", each) for each in ("2024-02-30", "2024-1-1", "2024-01-01T00:00:00", 19_000)),
        *(("t", f"2024-01-01T00:00:00{zone}") for zone in ("", "+19:00", "+0100", "[CET]")),
        *(("t", each) for each in ("2024-01-01 00:00:00Z", "2024-01-01T00:00:00.0000000Z", "now")),
        ("local", "2024-01-01T00:00:00Z"),
        *(("s", each) for each in (1, "\ud800")),
        *(("f", each) for each in (1.5, 0.1)),
    ],
)
def test_bounds_that_spark_may_read_otherwise_are_refused(name, low):
    """Spark takes some for unknown, reads some in the session's zone, and rounds others."""
    with pytest.raises(ValueError, match=r"."):
        read(add(bounds(low)), columns=[wanted(name, ("c-o.l",))])


@pytest.mark.parametrize(
    "texts",
    [
        ['{"numRecords":1}{"numRecords":2}'],
        ["{}", "", "{}{}"],
        ["{}\n"],
        ["{\n}"],
        [" {}"],
        ["{'numRecords':1}"],
        ['{"numRecords":1,"numRecords":2}'],
        ['{"numRecords":"}', '{"}', "{}{}"],
        ["[]"],
        ["null"],
    ],
)
def test_stats_that_are_no_object_in_a_line_are_refused(texts):
    """Above all, no file gets another one's stats."""
    with pytest.raises(ValueError, match=r"."):
        read(*map(add, texts))


@pytest.mark.parametrize(
    ("name", "text"),
    [("i", "0x1F"), ("i", " 5"), ("i", "5.0"), ("day", "2024-1-1"), ("b", "true"), ("x", "1")],
)
def test_partition_values_that_spark_may_read_otherwise_are_refused(name, text):
    with pytest.raises(ValueError, match=r"."):
        read(add(partitionValues={f"col-{name}": text}), partition=[name])


def test_values_of_a_key_are_looked_up_in_any_piece_of_maps():
    """The first of several, as Spark does."""
    rows = [
        [("a", "1")],
        None,
        [("b", "2"), ("a", "3")],
        [("a", None)],
        [],
        [("a", "5"), ("a", "6")],
    ]
    maps = pa.array(rows, pa.map_(pa.string(), pa.string()))
    expected = ["1", None, "3", None, None, "5"]

    assert look_up(maps, "a").to_pylist() == expected
    assert look_up(maps.slice(1, 4), "a").to_pylist() == expected[1:5]
    assert look_up(maps.filter(pa.array([True, False] * 3)), "a").to_pylist() == expected[::2]
    assert look_up(maps.slice(0, 1), "b").to_pylist() == [None]


def test_actions_of_a_checkpoint_are_read_in_pieces_and_found_by_path(tmp_path, monkeypatch):
    """Removed files and other actions have rows without an add."""
    monkeypatch.setattr(checkpoints, "AT_ONCE", 3)
    adds = [add(path=str(number), tags={"n": str(number)}) for number in range(10)]
    rows = pa.table({"add": pa.concat_arrays([pa.nulls(2, to_structs([]).type), to_structs(adds)])})
    pq.write_table(rows, tmp_path / "1", row_group_size=5)
    checkpoint = Checkpoint([tmp_path / "1", tmp_path / "1"])

    paths = [path for part in checkpoint.read() for path in part.field("path").to_pylist()]
    wanted_paths = pa.array(["2", "8"])
    found = [
        json.loads(line)["add"]
        for part in checkpoint.find(lambda here: pc.is_in(here, wanted_paths))
        for line in format_lines(part)
    ]

    assert paths == 2 * [str(number) for number in range(10)]
    assert [(each["path"], each["tags"]) for each in found] == 2 * [
        ("2", {"n": "2"}),
        ("8", {"n": "8"}),
    ]


@pytest.mark.parametrize("path", ["/a", "s3:/a", "a//b", "./a", "a/../b", "a/.b"])
def test_a_path_that_delta_may_write_otherwise_is_refused(tmp_path, path):
    pq.write_table(pa.table({"add": to_structs([add(path="a"), add(path=path)])}), tmp_path / "1")

    with pytest.raises(ValueError, match="path"):
        list(Checkpoint([tmp_path / "1"]).read())
