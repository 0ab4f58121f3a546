"""Tables of the log's first format."""

import pytest

from tests.parquet.kit.folder import put
from tests.parquet.kit.legacy import age
from tests.parquet.kit.publishing import NOW, WRITERS, changed, everything
from zadapter_parquet.store import guard_files


@pytest.fixture
def folder(tmp_path):
    """Rows 0, 1, 3, 4 and 5; the folder itself shows 0 to 3."""
    return changed(tmp_path / "table")


def test_a_table_of_the_first_format_is_read_as_it_is(folder):
    age(folder.root)
    before = everything(folder)

    assert folder.versions() == {0: [0, 1, 2, 3], 1: [0, 1, 2, 3, 4, 5], 2: [0, 1, 3, 4, 5]}
    folder.publish(dry_run=True)
    folder.backend.vacuum(folder.table, NOW, dry_run=True)
    assert everything(folder) == before


@pytest.mark.parametrize("act", WRITERS)
def test_the_first_write_moves_a_table_of_the_first_format(folder, act):
    """Engines that walk it read rows twice before; all versions that could be read still can."""
    versions = folder.versions()
    age(folder.root)
    assert len(list((folder.root / "_zadapter").rglob("*.parquet"))) == 5

    WRITERS[act](folder)

    if act == "vacuum":
        assert folder.rows() == versions[2]
    elif act != "publish":
        assert folder.walked() == [0, 1, 2, 3]
        assert folder.versions().items() >= versions.items()
    assert not list((folder.root / "_zadapter").rglob("*.parquet"))
    folder.publish()
    assert folder.walked() == folder.rows()


def test_what_spark_is_writing_keeps_its_name(folder):
    """A zadapter of today writes into a table that another one moves."""
    age(folder.root)
    own = folder.root / "_zadapter" / "data" / ("a" * 32) / "own"
    put(own / "sparks" / "0.parquet", [9])
    (own / guard_files.WRITING).write_bytes(guard_files.TEXT)

    folder.append([6])

    assert (own / "sparks" / "0.parquet").exists()
    assert len(list((folder.root / "_zadapter").rglob("*.parquet"))) == 2
