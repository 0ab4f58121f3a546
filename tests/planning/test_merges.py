"""Which files are rewritten for their row-level deletes."""

import pyarrow as pa
import pytest

from tests.kit.builders import file_table
from zadapter.planning.merges import worn


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, [False] * 3),
        ({"deleted": [30, 50, None]}, [False, True, False]),
        ({"deleted": [None, None, 0], "deleted_share": [0.3, 0.31, None]}, [False, True, False]),
        ({"deleted_share": [0.2] * 3, "delete_files": [9, 10, None]}, [False, True, False]),
        ({"deleted_share": [0.1, 0.11, 0], "delete_files": [90] * 3}, [False, True, False]),
    ],
    ids=["without deletes", "known", "estimated", "delete files", "few deleted rows"],
)
def test_files_are_worn_by_deleted_rows_or_by_delete_files(columns, expected):
    """Above 0.3 of the rows, with 10 delete files above 0.1; what is unknown is no reason."""
    files = file_table(["a", "b", "c"], sizes=[1] * 3, rows=[100] * 3)
    for name, values in columns.items():
        files = files.append_column(name, pa.array(values))

    assert worn(files).tolist() == expected
