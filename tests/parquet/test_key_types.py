"""Which key types have values that a folder's name can represent, and which files hold."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zadapter.base.key_types import BINARY, DECIMAL, FLOAT, KEY_TYPES, KINDS, TIMESTAMP
from zadapter.table.compatibility import find_mismatch
from zadapter_parquet.store.hive_names import FOLDER_KINDS, is_folder_type


@pytest.mark.parametrize("row", KEY_TYPES, ids=lambda row: row.name)
def test_every_key_type_is_decided_for_folders(row):
    """Floats and timestamps print in several ways, binary is no text."""
    assert is_folder_type(row.name) is (row.kind not in {FLOAT, TIMESTAMP, BINARY})


def test_every_kind_is_decided_for_folders():
    assert {*KINDS} == FOLDER_KINDS | {FLOAT, TIMESTAMP, BINARY}


@pytest.mark.parametrize("row", KEY_TYPES, ids=lambda row: row.name)
def test_files_of_arrow_hold_every_key_type(row):
    """A file's type is the row's own, and no other row's."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c": pa.nulls(1, row.arrow)}), sink)
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))

    def fits(other):
        name = "decimal(38,0)" if other.kind is DECIMAL else other.name
        column = {"name": "c", "type": name, "nullable": True, "metadata": {}}
        return find_mismatch(footer, [column], set()) is None

    assert [other.name for other in KEY_TYPES if fits(other)] == [row.name]
