"""The warehouse folder is removed only if it is new and empty."""

from types import SimpleNamespace

import pytest

from zadapter.base.locations import remove_new_warehouse


@pytest.fixture
def spark(tmp_path):
    """A session whose warehouse has a name that a URI escapes."""
    settings = {"spark.sql.warehouse.dir": f"file://{tmp_path}/a%20b"}
    return SimpleNamespace(conf=SimpleNamespace(get=settings.get))


def test_a_new_empty_folder_goes(spark, tmp_path):
    folder = tmp_path / "a b"

    with remove_new_warehouse(spark):
        folder.mkdir()

    assert not folder.exists()


def test_a_folder_that_was_there_stays(spark, tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()

    with remove_new_warehouse(spark):
        pass

    assert folder.exists()


def test_a_table_that_was_made_meanwhile_stays(spark, tmp_path):
    with remove_new_warehouse(spark):
        (tmp_path / "a b" / "t").mkdir(parents=True)

    assert (tmp_path / "a b" / "t").exists()
