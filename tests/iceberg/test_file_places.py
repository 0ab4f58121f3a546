"""The manifests of some files, by the places of their paths."""

import pyarrow as pa
import pytest

from zadapter_iceberg.stats.scan_tasks import FilePlaces

PLACES = FilePlaces(pa.chunked_array([["b", "b", "c"], ["d"]]), None, [1, 0, 2, 1])


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["c"], [2]),
        (["d", "c"], [2, 3]),
        ([], []),
        (["b"], None),
        (["a", "b"], None),
        (["a"], None),
    ],
)
def test_manifests_are_known_if_each_file_is_there_once(paths, expected):
    """One that is missing, and one that is there twice, do not make up for each other."""
    assert PLACES.find_manifests(paths) == expected
