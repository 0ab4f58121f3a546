"""A z-value is its columns' bits in turn, and orders rows in every column at once."""

from itertools import chain, product, zip_longest

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.errors import UsageError
from zadapter.layout.zvalue import bit_order, interleave, zvalue

INT8 = st.integers(-128, 127)


def row_of(*ordinals):
    """One row of columns, from the bytes of each."""
    return [np.frombuffer(bytes_, np.uint8).reshape(1, -1) for bytes_ in ordinals]


def dealt(*ordinals):
    """The specification: bits written as text, dealt in turn."""
    texts = ["".join(f"{byte:08b}" for byte in bytes_) for bytes_ in ordinals]
    bits = "".join(chain.from_iterable(zip_longest(*texts, fillvalue="")))
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def zvalues(*columns, **options):
    """Z-values of columns of int8."""
    return zvalue([pa.array(column, pa.int8()) for column in columns], **options).to_pylist()


def test_ranks_as_delta_interleaves_them():
    """Known answer: bytes of interleave_bits for three range ids, as Java prints them."""
    row = [pa.array([rank], pa.uint32()) for rank in (0, 99, 50)]

    (key,) = zvalue(row, nulls=None).to_pylist()

    assert np.frombuffer(key, np.int8).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0, 9, -112, 26]


@pytest.mark.parametrize(("point", "key"), [((2, 3), 13), ((214, 97), 0b1011011000101001)])
def test_known_answers(point, key):
    """The first column is in the higher bit of each group."""
    row = [pa.array([coordinate], pa.uint8()) for coordinate in point]

    assert [key.to_bytes(2, "big")] == zvalue(row, nulls=None).to_pylist()


@given(st.integers(1, 4).flatmap(lambda w: st.lists(st.binary(min_size=w, max_size=w), min_size=1)))
def test_equal_widths_deal_their_bits_in_turn(ordinals):
    """One bit of each column in a round."""
    assert dealt(*ordinals) == interleave(row_of(*ordinals))[0].tobytes()


@given(st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=12))
def test_unequal_widths_deal_their_bits_from_the_left(ordinals):
    """A column without bits left drops out of the round."""
    assert dealt(*ordinals) == interleave(row_of(*ordinals))[0].tobytes()


@given(st.lists(st.integers(1, 6), min_size=1, max_size=9))
def test_every_bit_has_one_place(widths):
    """Interleaving is a permutation of bits."""
    every_bit = {(c, bit) for c, width in enumerate(widths) for bit in range(8 * width)}

    order = bit_order(widths)

    assert len(order) == len(every_bit)
    assert set(order) == every_bit


@pytest.mark.parametrize(
    ("dimensions", "bits"), [(1, 5), (2, 1), (2, 4), (3, 1), (3, 3), (4, 2), (5, 1), (5, 2)]
)
def test_cells_with_a_common_prefix_are_a_box(dimensions, bits):
    """Every run of 2**k z-values of a grid that starts at a multiple of 2**k fills a box."""
    grid = np.array(list(product(range(1 << bits), repeat=dimensions)), np.uint8)
    keys = [int.from_bytes(row, "big") for row in interleave([*grid.T[:, :, None]])]
    cells = grid[np.argsort(keys)].astype(int)

    assert sorted(keys) == list(range(len(grid)))
    for dropped in range(bits * dimensions + 1):
        boxes = cells.reshape(-1, 1 << dropped, dimensions)
        extents = boxes.max(axis=1) - boxes.min(axis=1) + 1
        assert (extents.prod(axis=1) == 1 << dropped).all()


@pytest.mark.parametrize("nulls", ["first", "last", None])
@given(low=st.lists(INT8, min_size=2, max_size=4), steps=st.lists(INT8, min_size=4, max_size=4))
def test_what_is_not_less_in_any_column_is_not_less(nulls, low, steps):
    """A z-value is monotone in every column, and equal only for equal rows."""
    high = [min(127, value + abs(step)) for value, step in zip(low, steps, strict=False)]

    less, more = zvalues(*zip(low, high, strict=True), nulls=nulls)

    assert less <= more
    assert (less == more) == (low == high)


@given(st.lists(st.none() | INT8, min_size=1), st.sampled_from(["first", "last"]))
def test_nulls_are_a_class_of_their_own(values, nulls):
    """One column sorts as asked, and a null equals nulls only."""
    found = zvalues(values, nulls=nulls)
    expected = [((v is None) == (nulls == "last"), v or 0) for v in values]

    for (a, a_bytes), (b, b_bytes) in product(zip(expected, found, strict=True), repeat=2):
        assert (a < b, a == b) == (a_bytes < b_bytes, a_bytes == b_bytes)


@given(st.lists(st.none() | INT8, min_size=1, max_size=17), st.sampled_from(["first", "last"]))
def test_class_bits_are_one_more_bit_in_front_of_each_column(row, nulls):
    """They fill whole bytes, with zeros on the left."""
    absent = int(nulls == "last")
    classes = "".join(str(absent if v is None else 1 - absent) for v in row)
    ordinals = [bytes([0 if v is None else v + 128]) for v in row]
    lead = int(classes, 2).to_bytes(-(-len(row) // 8), "big")

    assert [lead + dealt(*ordinals)] == zvalues(*[[v] for v in row], nulls=nulls)


@given(st.lists(st.tuples(st.none() | INT8, st.none() | INT8), max_size=20))
def test_without_class_bits_a_null_makes_a_null(rows):
    """As any SQL function does; the other rows keep their bytes."""
    expected = [
        None if None in row else dealt(*(bytes([value + 128]) for value in row)) for row in rows
    ]
    columns = [[row[i] for row in rows] for i in range(2)]

    assert expected == zvalues(*columns, nulls=None)


def test_many_rows_are_as_single_rows():
    """However rows are batched."""
    pairs = np.indices((256, 300)).reshape(2, -1).astype(np.uint8)

    keys = interleave([column.reshape(-1, 1) for column in pairs])

    expected = [int.from_bytes(dealt(bytes([a]), bytes([b])), "big") for a, b in pairs.T.tolist()]
    assert (keys.astype(int) @ [256, 1]).tolist() == expected


def test_strings_count_with_the_width_asked_for():
    """And other columns with their own."""
    columns = [pa.array(["abc"]), pa.chunked_array([pa.array([1], pa.int8())])]

    assert [dealt(b"ab", b"\x81")] == zvalue(columns, width=2, nulls=None).to_pylist()


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ([], {}),
        ([pa.array([1]), pa.array([1, 2])], {}),
        ([pa.array([1])], {"nulls": "middle"}),
        ([pa.array(["a"])], {}),
        ([pa.array([[1]])], {}),
    ],
)
def test_wrong_calls_are_refused(columns, options):
    """Before any bytes are made."""
    with pytest.raises(UsageError):
        zvalue(columns, **options)
