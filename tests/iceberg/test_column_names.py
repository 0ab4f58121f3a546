"""Names of an Iceberg table's columns that cannot be kept right are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.errors import UnsupportedError
from zadapter_iceberg.columns import check_names


def struct(*names, type_="long"):
    return {"type": "struct", "fields": [{"name": name, "type": type_} for name in names]}


WRAPPED = [
    lambda inner: inner,
    lambda inner: struct("a", type_=inner),
    lambda inner: struct("a", type_={"type": "list", "element": inner}),
    lambda inner: struct("a", type_={"type": "map", "key": "long", "value": inner}),
]


@pytest.mark.parametrize("wrap", WRAPPED)
def test_an_empty_name_is_refused(wrap):
    with pytest.raises(
        UnsupportedError, match=r"column (a\.(element\.|value\.)?)?`` has an empty name"
    ):
        check_names(wrap(struct("b", "")))


@pytest.mark.parametrize("wrap", WRAPPED)
@pytest.mark.parametrize("twins", [("Key", "kEY"), ("k", "\u212a"), ("\u00fc", "\u00dc")])
def test_names_that_differ_in_case_only_are_refused(wrap, twins):
    with pytest.raises(UnsupportedError, match="differ only in case"):
        check_names(wrap(struct("b", *twins)))


@given(st.lists(st.text(min_size=1), unique_by=str.lower))
def test_other_names_are_accepted(names):
    """Beside the same names within a struct."""
    for name in names:
        check_names(struct(*names, f"{''.join(names)} {name}", type_=struct(*names)))
