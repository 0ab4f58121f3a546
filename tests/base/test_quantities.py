"""Sizes are read as people write them, and written as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.base.quantities import parse, show
from zadapter.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1024, 1024),
        ("2048", 2048),
        ("2048b", 2048),
        ("1KB", 1 << 10),
        ("128MB", 128 << 20),
        ("128 mib", 128 << 20),
        (" 1.5g ", 3 << 29),
        ("0.5MB", 1 << 19),
        ("2T", 2 << 40),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_known_sizes(text, size):
    """Units are powers of 1024, in any case, with a blank or without."""
    assert parse(text) == size


@given(st.integers(1 << 10, 1 << 80), st.sampled_from(["", "B", "b"]))
def test_bytes_are_exact(size, unit):
    """However many there are."""
    assert parse(size) == size
    assert parse(f"{size}{unit}") == size


@pytest.mark.parametrize(
    "wrong",
    ["", "MB", "-1MB", "1XB", "1 M B", "1e9", "1,5GB", ".5GB", "nan", 1.5e9, True, None, b"1MB"],
)
def test_what_is_no_size(wrong):
    """The error shows what was given, and how to write it."""
    with pytest.raises(UsageError, match="is not a size; pass") as raised:
        parse(wrong)

    assert repr(wrong) in str(raised.value)


@pytest.mark.parametrize("small", [0, 1023, "0.9KB", -5])
def test_what_is_too_small(small):
    """A file of some bytes is a slip of the pen."""
    with pytest.raises(UsageError):
        parse(small)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KB"),
        (134_217_728, "128 MB"),
        (1_500_000_000, "1.397 GB"),
        (5 << 40, "5 TB"),
        (12_345 << 40, "1.234e+04 TB"),
    ],
)
def test_sizes_as_text(size, text):
    """In the largest unit that leaves a whole."""
    assert show(size) == text


@given(st.integers(1 << 10, 1 << 50))
def test_text_tells_the_size_to_four_digits(size):
    """Reading what was written gives about the same."""
    if "e" not in show(size):
        assert abs(parse(show(size)) - size) <= size / 1_000
