"""A plain Parquet table whose files are missing or damaged: nothing is deleted, nothing hangs."""

import json
import os
import socket
from contextlib import suppress
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.variants import slow
from tests.parquet.kit.folder import made
from tests.parquet.kit.log import ENTRY
from zadapter.errors import CorruptLogError, ZadapterError
from zadapter_parquet.format.entries import decode, digest, encode
from zadapter_parquet.log import stats_table
from zadapter_parquet.log.log import HINT, Log, path_of
from zadapter_parquet.store.local import LocalFiles


@pytest.fixture
def folder(tmp_path):
    """Four versions; the last two share files with the second."""
    folder = made(tmp_path / "table")
    folder.append([4])
    folder.append([5])
    folder.delete(5)
    return folder


def part_of(folder, version=None):
    """The stats that list the files of a version."""
    (part,) = folder.snapshot(version).handle.version.entry.parts
    return folder.root / part.path


def everything(folder):
    return {path for path in folder.root.rglob("*") if path.is_file()}


def flip(path):
    """Change one bit of a list of files where its paths are stored."""
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    data[start + column.total_compressed_size - 3] ^= 0x10
    path.write_bytes(data)


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-40]),
    "empty": lambda path: path.write_bytes(b""),
    "no Parquet": lambda path: path.write_bytes(b"[]" * 400),
    "a flipped bit": flip,
    "another list": lambda path: pq.write_table(pq.read_table(path).slice(1), path),
    "no list": lambda path: pq.write_table(pa.table({"n": [1, 2, 3]}), path),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("dry_run", [True, False])
def test_nothing_is_deleted_while_the_files_of_a_version_are_unknown(folder, damage, dry_run):
    """A backup was restored without the stats of the newest version; vacuum deleted every file."""
    part = part_of(folder)
    damage(part)
    before = everything(folder)

    with pytest.raises(CorruptLogError, match=part.name):
        folder.backend.vacuum(folder.table, timedelta(0), dry_run=dry_run)

    assert everything(folder) == before


@pytest.mark.parametrize("version", [0, 1, 2])
def test_nothing_is_deleted_while_an_entry_is_missing(folder, version):
    """The error names the entry."""
    (folder.root / path_of(version)).unlink()
    before = everything(folder)

    with pytest.raises(CorruptLogError, match=f"{version}"):
        folder.vacuum(timedelta(0))

    assert everything(folder) == before


def test_nothing_is_deleted_while_files_are_missing(folder):
    """Half of a backup is restored; the other half may hold what says more."""
    (gone,) = (folder.root / p for p in folder.live()["path"].to_pylist() if "data" in p)
    gone.unlink()
    before = everything(folder)

    with pytest.raises(CorruptLogError, match=gone.name):
        folder.vacuum(timedelta(0))

    assert everything(folder) == before


def test_stats_of_expired_versions_may_be_missing(folder):
    """A clean-up that was stopped midway goes on."""
    old = part_of(folder, 2)
    folder.vacuum(timedelta(0))
    assert not old.exists()
    folder.append([6])

    assert folder.vacuum(timedelta(0)).paths
    assert folder.rows() == [0, 1, 2, 3, 4, 6]


def test_a_folder_that_cannot_be_listed_is_no_empty_folder(folder, monkeypatch):
    """The note that another table has the same files lies in it."""
    folder.backend.protect(folder.snapshot())
    real = os.scandir

    def denied(path):
        if str(path).endswith("shared"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", denied)
    before = everything(folder)

    with pytest.raises(ZadapterError, match=r"shared cannot be listed: Permission denied"):
        folder.vacuum(timedelta(0))

    assert everything(folder) == before


@pytest.mark.parametrize("first", [0, *slow(1, 2, 3)])
def test_no_flipped_bit_changes_which_files_are_known(folder, first):
    """Pages have checksums; what is left is refused or does no harm."""
    part, store = folder.snapshot().handle.version.entry.parts[0], LocalFiles(folder.root)
    whole, place = (folder.root / part.path).read_bytes(), folder.root / part.path
    known = stats_table.load(store, [part], {}, {})
    for at in range(first, len(whole), 4):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with suppress(CorruptLogError):
            assert stats_table.load(store, [part], {}, {})["path"].equals(known["path"]), at


@pytest.mark.parametrize(
    "path", ["../secret.parquet", "/etc/passwd", "a/../../b", "a//b", "%2e%2e/b", "a\\..\\b", None]
)
def test_a_forged_list_names_no_file_outside_the_table(folder, path):
    """Whoever may write the stats must not have others read other files."""
    part = part_of(folder)
    table = pq.read_table(part)
    forged = pa.array([path, *table["path"].to_pylist()[1:]], pa.string())
    pq.write_table(table.set_column(table.schema.get_field_index("path"), "path", forged), part)

    with pytest.raises(CorruptLogError):
        folder.live()


@pytest.mark.parametrize(
    "hint",
    [b"1e308", b"[" * 100_000, b"9" * 400, b"-5", b"NaN", b"true", b"\xff\xfe", b"1_0", b"2.0"],
)
def test_the_hint_is_only_a_hint(folder, hint):
    """Whatever it says, the newest version is found."""
    (folder.root / HINT).write_bytes(hint)

    assert folder.rows() == [0, 1, 2, 3, 4]


def test_a_pipe_in_place_of_the_hint_is_not_waited_for(folder):
    """It is no file."""
    (folder.root / HINT).unlink(missing_ok=True)
    os.mkfifo(folder.root / HINT)

    assert folder.rows() == [0, 1, 2, 3, 4]


def bound(path):
    """A socket."""
    with socket.socket(socket.AF_UNIX) as made_:
        made_.bind(str(path))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, bound])
def test_only_regular_files_are_entries(folder, make):
    """A pipe would be waited for without end."""
    place = folder.root / path_of(3)
    place.unlink()
    os.chdir(place.parent)
    make(place.name)

    with pytest.raises(CorruptLogError, match=f"{place.name} is not a regular file"):
        folder.snapshot()


def test_only_regular_files_are_rows(folder):
    """Version 0 is what is in the folder; a pipe is not, whatever its name."""
    os.mkfifo(folder.root / "pipe.parquet")

    assert folder.rows() == [0, 1, 2, 3, 4]


FORGERIES = {
    "version": [-1, 1.0, True, 10**30, "0", None],
    "timestamp": [float("nan"), float("inf"), "now"],
    "files": [-1, 1.5],
    "rows": [None, [], 1 << 70],
    "oldest": [-1],
    "parts": [None, 3, [3], [{}], [{"path": "a", "files": -1, "size": 1}], [{"path": 1}]],
    "partition": [None, [1], 5],
    "schema": [None, {}],
    "table": [None],
    "operation": ["destroy", [], None],
    "summary": [[], 3],
    "source": [[1], {"format": "delta"}],
    "folder": ["../..", 5],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in FORGERIES.items() for value in values]
)
def test_an_entry_that_makes_no_sense_is_damage(name, value):
    """Its last line is the right hash: somebody has made it on purpose."""
    body, _, _ = encode(ENTRY).partition(b"\n")
    forged = json.dumps(json.loads(body) | {name: value}).encode()

    with pytest.raises(CorruptLogError):
        decode(forged + b'\n{"end":"' + digest(forged).encode() + b'"}\n', 0)


@pytest.mark.parametrize("body", [b"[" * 100_000, b"[]", b"3", b"null", b'"x"', b"\xff"])
def test_nested_brackets_are_damage(tmp_path, body):
    """JSON's reader gives up with an error of its own; ours names the file."""
    store = LocalFiles(tmp_path)
    store.write(path_of(0), body + b'\n{"end":"' + digest(body).encode() + b'"}\n')

    with pytest.raises(CorruptLogError, match=path_of(0)):
        Log(store, str(tmp_path)).head()


def test_the_stats_lie_where_these_tests_look(folder):
    """The damages above are to the stats."""
    assert part_of(folder).is_relative_to(folder.root / stats_table.FOLDER)
