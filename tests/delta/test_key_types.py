"""Which key types have bounds in Delta's log."""

import pytest

from zadapter.base.key_types import BINARY, BOOLEAN, KEY_TYPES, KINDS
from zadapter_delta.stats.add_files import BOUNDED, with_bounds


@pytest.mark.parametrize("row", KEY_TYPES, ids=lambda row: row.name)
def test_every_key_type_has_bounds_but_booleans_and_binary(row):
    """As Delta's own ``SkippingEligibleDataType`` has it; a new kind is added there or here."""
    assert with_bounds(row.arrow) is (row.name not in {"boolean", "binary"})


def test_every_kind_is_decided():
    assert {*KINDS} == BOUNDED | {BOOLEAN, BINARY}
