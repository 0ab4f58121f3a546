"""File tables in parts are those at once."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.kit.file_tables import ANY, bounds, table_of
from zadapter.base.arrays import as_array, no_texts, take_rows, zeros
from zadapter.base.ranks import rank
from zadapter.layout import predict
from zadapter.layout.filters import Filter, Range
from zadapter.layout.predict import RankedSample
from zadapter.rewrite import shares
from zadapter.table import file_stats
from zadapter.table.file_stats import concat_files, structs
from zadapter.table.snapshot import select_paths, without


@pytest.fixture
def files():
    """A file table with stats, nulls and partitions."""
    known = ({"a": bounds(n, n + 3), "p": str(n % 3)} for n in range(19))
    return table_of(*known, {"a": ANY, "p": None}, partition=["p"], a=pa.int64(), p=pa.string())


@pytest.mark.parametrize("cuts", [(), (0, 0), (1, 7), (20,)])
def test_parts_are_joined_to_the_whole(files, cuts):
    """In one piece, whatever the parts: also empty ones, and parts in pieces."""
    edges = [0, *cuts, files.num_rows]
    parts = [files.slice(a, b - a) for a, b in pairwise(edges)]
    pieces = pa.concat_tables(parts)

    whole = concat_files([*parts, pieces.slice(0, 0)])

    assert whole.equals(files)
    assert {column.num_chunks for column in whole.columns} == {1}


def test_large_columns_stay_in_pieces(files, monkeypatch):
    """They would be in memory twice for a moment."""
    monkeypatch.setattr(file_stats, "MOST_COPIED", 9 * files.num_rows)

    whole = concat_files([files.slice(0, 7), files.slice(7)])

    assert whole.equals(files)
    assert [whole[name].num_chunks for name in ("stats", "size")] == [2, 1]


@pytest.mark.parametrize("cuts", [(), (7,), (0, 7, 7, 15)])
def test_rows_are_taken_from_pieces_as_from_the_whole(files, cuts):
    """In their order, also rows that are asked for twice, and none."""
    edges = [0, *cuts, files.num_rows]
    pieces = pa.concat_tables([files.slice(a, b - a) for a, b in pairwise(edges)])
    for at in ([3, 19, 0, 7, 7, 6], [15], []):
        numbers = np.array(at, np.int64)

        assert take_rows(pieces, numbers).equals(files.take(pa.array(numbers)))


def test_rows_of_many_pieces_are_taken_without_a_copy_of_the_others():
    """A file table has some GB; ``Table.take`` joins its pieces first."""
    piece = pa.table({"path": ["x" * 1_000] * 1_000})
    pieces, before = pa.concat_tables([piece] * 50), pa.default_memory_pool()
    counted = pa.proxy_memory_pool(before)
    pa.set_memory_pool(counted)
    try:
        take_rows(pieces, np.array([40_000, 3]))
    finally:
        pa.set_memory_pool(before)

    assert 0 < counted.max_memory() < pieces.nbytes // 10


def test_one_piece_is_no_copy(files):
    """The stats of ten million files are read often."""
    values = files["size"]

    assert as_array(values).buffers()[1].address == values.chunk(0).buffers()[1].address
    assert as_array(pa.chunked_array([values.chunk(0)] * 2)).equals(
        pa.concat_arrays([*values.chunks] * 2)
    )


def test_columns_of_nothing_take_no_memory():
    """Most tables have no deletes: these columns would have a quarter of a GB."""
    count, pool = 1_000_001, pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        columns = [zeros(count, pa.int64()), zeros(count, pa.float64()), no_texts(count)]
    finally:
        pa.set_memory_pool(before)

    for column in columns:
        column.validate(full=True)
        assert len(column) == count
    assert pool.max_memory() == 0
    assert [pc.sum(each).as_py() for each in columns[:2]] == [0, 0.0]
    assert columns[2].equals(pa.nulls(count, pa.string()))
    assert no_texts(0).to_pylist() == []


def test_nothing_is_kept_of_the_messages_that_parts_come_in(files):
    """A view of one column would keep the message, with columns that nobody needs."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, files.schema) as stream:
        stream.write_table(files)
    message = sink.getvalue()
    part = pa.ipc.open_stream(message).read_all()
    held = range(message.address, message.address + message.size)

    whole = concat_files([part])

    columns = [column.chunk(0) for column in whole.columns]
    buffers = [buffer for column in columns for buffer in column.buffers() if buffer is not None]
    assert not any(buffer.address in held for buffer in buffers)


def test_the_share_of_many_files_is_that_of_some(monkeypatch):
    """Those are evenly spread, and weigh as much as all."""
    random = np.random.default_rng(3)
    lows = random.integers(0, 9_000, 4_000).tolist()
    files = table_of(*({"c0": bounds(low, low + 1_000)} for low in lows), c0=pa.int64())
    rows = RankedSample((("c0",),), (rank(pa.array(range(10_000))),))
    of_all = shares.share_now(rows, files)

    monkeypatch.setattr(predict, "BOXES", 1_000)

    assert shares.share_now(rows, files) == pytest.approx(of_all, abs=0.01)
    assert 0.1 < of_all < 0.2


@pytest.mark.parametrize(
    ("low", "high", "closed", "read"),
    [
        *((None, "5", "both", 1), ("45", "47", "both", 1), ("11", "39", "both", 0)),
        *(("60", None, "both", 1), ("60", None, "right", 0)),
        *(("5", "40", "left", 1), ("5", "40", "both", 2)),
    ],
)
def test_filters_read_files_that_no_sampled_row_is_in(low, high, closed, read):
    """Bounds and ends of filters are told apart where no sampled value lies between them."""
    files = table_of({"c0": bounds(0, 10)}, {"c0": bounds(40, 60)}, c0=pa.int64())
    asked = Filter(((Range(("c0",), low, high, closed),),), 1.0)
    sample = RankedSample((("c0",),), (rank(pa.array([50])),), (asked,))

    assert shares.share_now(sample, files) == read / 2


@pytest.mark.parametrize("most", [0, 1_000])
def test_files_are_among_some_or_are_not(files, monkeypatch, most):
    """Each file once, in the order of the table, also where the others are not copied."""
    monkeypatch.setattr("zadapter.table.snapshot.MOST_PIECES", most)
    paths = files["path"].to_pylist()
    some, every = set(paths[3:9]), set(paths)

    assert select_paths(files, some)["path"].to_pylist() == paths[3:9]
    assert without(files, some).equals(pa.concat_tables([files.slice(0, 3), files.slice(9)]))
    assert without(files, {paths[0], paths[-1]}).equals(files.slice(1, files.num_rows - 2))
    assert without(files, every).equals(files.slice(0, 0))
    assert without(files, set()) is files


@pytest.mark.parametrize("null", [None, [False] * 11, [True] * 11, [True, False] * 5 + [True]])
def test_structs_without_fields_are_null_where_they_are_said_to_be(null):
    """An unpartitioned table has them, one for each file."""
    mask = None if null is None else pa.array(np.array(null))

    found = structs([], pa.struct([]), 11, mask)

    assert found.to_pylist() == [None if is_null else {} for is_null in null or [False] * 11]
