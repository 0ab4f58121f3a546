"""Files of one write among those of a large folder."""

import pytest

from zadapter.spark.jvm.removal import find_files, remove_named

CALL = "c\n"
OURS, OTHERS = "zadapter-0123456789abcdef-", 300


@pytest.fixture
def folder(tmp_path):
    """A folder with partitions, whose files are others' but for three."""
    for partition in ("day=1", "day=2", "_log"):
        (tmp_path / partition / "hour=1").mkdir(parents=True)
        for number in range(OTHERS):
            (tmp_path / partition / f"part-{number}.parquet").touch()
    for path in ("0", "day=1/hour=1/1", "day=2/2"):
        where, _, name = f"/{path}".rpartition("/")
        (tmp_path / where.lstrip("/") / f"{OURS}{name}").write_bytes(b"12345")
    return tmp_path


def test_files_are_found_at_any_depth_without_a_question_for_each(spark, folder, sent):
    found = [
        (status.getPath().getName(), status.getLen())
        for status in find_files(spark, str(folder), OURS)
    ]

    assert sorted(found) == [(f"{OURS}{number}", 5) for number in range(3)]
    calls = [command for command in sent if command.startswith(CALL)]  # not of objects to forget
    assert len(calls) < OTHERS


def test_only_files_of_the_write_are_removed(spark, folder):
    before = {path for path in folder.rglob("*") if path.is_file()}

    remove_named(spark, str(folder), OURS, [f"{OURS}1"])

    left = {path for path in folder.rglob("*") if path.is_file()}
    assert {path.name for path in before - left} == {f"{OURS}0", f"{OURS}2"}
