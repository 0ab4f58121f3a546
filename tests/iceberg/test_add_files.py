"""Files that others have written, as Iceberg's manifests will have them."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tests.kit.builders import file_table, snapshot
from zadapter.migration.context import build_load
from zadapter.table import file_stats
from zadapter.table.file_stats import Bounds
from zadapter.table.snapshot import Source, Staged
from zadapter_iceberg.columns import Column
from zadapter_iceberg.commits import add_files
from zadapter_iceberg.commits.add_files import with_layouts
from zadapter_iceberg.commits.rewrites import ExchangedFiles

FIELD = SimpleNamespace(fieldId=lambda: 1000)
LEDGER = {"a": "one", "b": "two"}


def layouts(files):
    return files["layout"].to_pylist()


def said(files, columns, partition=()):
    """What is said of each file, where columns have these ids."""
    fields = SimpleNamespace(size=lambda: len(partition), get=lambda _at: FIELD)  # a list of Java's
    partitioned = SimpleNamespace(fields=lambda: fields)
    spec = SimpleNamespace(specId=lambda: 3, partitionType=lambda: partitioned)
    version = SimpleNamespace(
        pinned=SimpleNamespace(spec=lambda: spec),
        columns={parts: Column(number, "long") for parts, number in columns.items()},
    )
    schema = pa.schema([(parts[0], pa.int64()) for parts in columns])
    made = replace(snapshot(schema, partition), handle=version)
    return add_files._content_files(made, files, files["path"].to_pylist())  # noqa: SLF001 - its only caller needs a JVM


def stats(low, high, *, nulls=(0,), nans=(None,), bounds=(Bounds.EXACT,)):
    """Files with stats of one column c."""
    type_ = file_stats.column_type(low.type)
    count = len(low)
    flags = pa.array([int(each) for each in bounds], pa.int8())
    counts = [pa.array(list(each), pa.int64()) for each in (nulls, nans)]
    child = pa.StructArray.from_arrays([low, high, *counts, flags], fields=list(type_))
    files = file_table([f"f{n}" for n in range(count)], rows=10)
    field = file_stats.schema({("c",): low.type}, {}).field("stats")
    return file_stats.replace_column(files, field, file_stats.structs([child], field.type, count))


def test_a_ledger_names_the_layouts_of_files_that_have_none():
    """Our own files name theirs, and others have none."""
    files = file_table(["a", "b", "c", "d"], layouts=[None, "mine", None, "own"])

    named = with_layouts(files, LEDGER)

    assert layouts(named) == ["one", "mine", None, "own"]
    assert named.schema == files.schema
    assert named.drop(["layout"]) == files.drop(["layout"])
    assert with_layouts(files.slice(0, 0), LEDGER).num_rows == 0


def test_the_layouts_of_files_are_written_down_once():
    """For those of them that have any; where all files are ours, there is nothing to write."""
    written = {}
    store = SimpleNamespace(write=written.__setitem__)
    nothing = file_table([])
    ours, others = (
        Staged(
            paths={},
            files=nothing,
            handle=ExchangedFiles(planned=0, sequence=0, removed={}, added={}, **said),
        )
        for said in ({}, {"adopted": [], "layouts": LEDGER})
    )
    base = snapshot(pa.schema([]))
    source = Source(format="x", id="y", version=1, columns="c")

    assert add_files.store_layouts(store, build_load(base, [ours], source)) is None
    change = replace(build_load(base, [others], source), id="abc")
    path = add_files.store_layouts(store, change)

    assert path == "_zadapter/adopted/abc.json"
    assert json.loads(written[path]) == LEDGER


def test_a_file_is_said_to_be_what_it_is():
    values = pa.array(["x y", None])
    files = file_table(["p", "q"], sizes=[5, 6], rows=[7, 8], partition={"d": values})

    first, second = said(files, {("d",): 1}, {"d": pa.string()})

    assert first == {
        "spec-id": 3,
        "content": "DATA",
        "file-path": "p",
        "file-format": "PARQUET",
        "partition": {"1000": "x y"},
        "file-size-in-bytes": 5,
        "record-count": 7,
    }
    assert (second["file-path"], second["partition"], second["record-count"]) == ("q", {}, 8)


def test_what_is_known_of_a_column_is_said_by_its_id():
    low, high = pa.array([1], pa.int32()), pa.array([-1], pa.int32())

    (file,) = said(stats(low, high, nulls=[4], nans=[2]), {("c",): 9})

    assert file["value-counts"] == {"keys": [9], "values": [10]}
    assert file["null-value-counts"] == {"keys": [9], "values": [4]}
    assert file["nan-value-counts"] == {"keys": [9], "values": [2]}
    assert file["lower-bounds"] == {"keys": [9], "values": ["01000000"]}
    assert file["upper-bounds"] == {"keys": [9], "values": ["ffffffff"]}


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_bounds_hold_zeros_of_either_sign(zero, type_):
    """Iceberg takes -0.0 for less than 0.0, Spark for equal: either may be what a log has."""
    bound = pa.array([zero], type_)

    (file,) = said(stats(bound, bound, nulls=[0], nans=[0]), {("c",): 9})

    (low,), (high,) = (file[f"{end}-bounds"]["values"] for end in ("lower", "upper"))
    assert low.endswith("80")
    assert set(high) == {"0"}


def test_what_is_unknown_is_not_said():
    """Neither counts, nor bounds: a zero would be believed."""
    low = pa.array([1, None, 3], pa.int64())
    flags = [Bounds.UNKNOWN, Bounds.UNKNOWN, Bounds.EXACT]
    files = stats(low, low, nulls=[None, 10, 0], nans=[None] * 3, bounds=flags)

    unknown, empty, known = said(files, {("c",): 9})

    assert {"null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds"} & {
        *unknown
    } == set()
    assert empty["null-value-counts"]["values"] == [10]
    assert "lower-bounds" not in empty
    assert known["lower-bounds"]["values"] == ["0300000000000000"]


def test_bounds_that_are_no_values_are_not_said():
    """Spark answers MIN and MAX from Iceberg's bounds, but not those of texts."""
    moments = stats(pa.array([1], pa.timestamp("us")), pa.array([2], pa.timestamp("us")))
    cut = stats(
        pa.array([1], pa.timestamp("us")), pa.array([2], pa.timestamp("us")),
        bounds=[Bounds.WIDENED],
    )  # fmt: skip
    texts = stats(pa.array(["a"]), pa.array(["b"]), bounds=[Bounds.WIDENED])

    found = ["lower-bounds" in said(files, {("c",): 9})[0] for files in (moments, cut, texts)]

    assert found == [True, False, True]


@pytest.mark.parametrize(("nans", "is_said"), [(None, False), (0, True), (3, False)])
@pytest.mark.parametrize("high", [2.0, math.nan])
def test_bounds_of_numbers_are_said_where_there_is_no_nan(nans, is_said, high):
    """To Spark NaN is above all numbers, to Iceberg in no range: told of any, it finds less."""
    (file,) = said(stats(pa.array([1.0]), pa.array([high]), nans=[nans]), {("c",): 9})

    assert ("lower-bounds" in file) == ("nan-value-counts" in file) == is_said
    assert ("upper-bounds" in file) == (is_said and high == 2.0)


@pytest.mark.parametrize("known", [{}, {("d",): 1}])
def test_columns_that_the_table_has_not_are_left_out(known):
    (file,) = said(stats(pa.array([1]), pa.array([2])), known)

    assert "value-counts" not in file
