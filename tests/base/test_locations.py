"""A location is asked for only where its URI may look different."""

import re
import threading

import pytest

from zadapter.base import locations
from zadapter.base.locations import check_present
from zadapter.errors import VerificationError


@pytest.mark.parametrize(
    ("uri", "folder", "is_in"),
    [
        ("file:///a/b/c", "/a/b", True),
        ("file:/a/b/c", "file:/a/b/", True),
        ("file:/a/x%20y/c", "/a/x y", True),
        ("s3://b/t/c", "s3://b/t", True),
        ("file:/a/bc/d", "/a/b", False),
        ("file:/a/b", "/a/b", False),
        ("file:/a/b/../c", "/a/b", False),
        ("file:/a/x/../b/c", "/a/b", True),
        ("s3://b/t/../u/c", "s3://b/t", False),
        ("s3a://b/t/c", "s3://b/t", True),
        ("s3n://other/t/c", "s3://b/t", False),
        ("gs://b/t/c", "s3://b/t", False),
        ("abfss://c@a.dfs.core.windows.net/t/f", "abfs://c@a.dfs.core.windows.net/t", True),
        ("wasbs://c@a.blob.core.windows.net/t/f", "abfss://c@a.dfs.core.windows.net/t", True),
        ("abfss://c@b.dfs.core.windows.net/t/f", "abfss://c@a.dfs.core.windows.net/t", False),
        ("az://c/t/f", "abfss://c@a.dfs.core.windows.net/t", False),
        ("hdfs://n:8020/t/f", "hdfs://n/t", True),
        ("hdfs://n/t/f", "hdfs:/t", True),
        ("hdfs://n/t/f", "/t", False),
    ],
)
def test_a_file_lies_in_a_folder_however_that_is_written(uri, folder, is_in):
    assert locations.within(uri, folder) == is_in


def test_a_link_out_of_a_folder_is_followed(tmp_path):
    """What a table names by a link may be deleted where it lies."""
    (tmp_path / "table").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "table" / "link").symlink_to(tmp_path / "other")

    assert not locations.within(f"file:{tmp_path}/table/link/file", f"{tmp_path}/table")
    assert locations.within(f"file:{tmp_path}/table/link/file", f"{tmp_path}/other")


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("/a/b", "file:/a/b/c", True),
        ("/a/b/../c", "/a/b", False),
        ("/a/b", "/a/bc", False),
        ("s3://b/t", "s3a://b/t/u", True),
        ("s3://b/t", "s3://c/t", False),
        ("s3://key:secret@b/t", "s3://b/t", True),
        ("s3://b/t", "s3n://b/u/../t", True),
        ("gs://b/t", "gcs://b/t", True),
        ("abfs://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t", True),
        ("abfs://c@a.dfs.core.windows.net/t", "wasb://c@a.blob.core.windows.net/t", True),
        ("abfs://c@a.dfs.core.windows.net/t", "az://c/t", True),
        ("abfs://c@a.dfs.core.windows.net/t", "abfss://c@b.dfs.core.windows.net/t", False),
        ("hdfs://n/t", "webhdfs://n:9870/t", True),
        ("hdfs:/t", "hdfs://n/t/u", True),
        ("hdfs://n/t", "/t", False),
    ],
)
def test_two_folders_may_be_one_however_they_are_written(one, other, may):
    assert locations.overlap(one, other) == may
    assert locations.overlap(other, one) == may


def test_a_store_is_asked_for_several_files_at_once():
    """The first one gets its answer when the sixteenth has asked."""
    all_there = threading.Barrier(16)
    uris = [f"s3://b/{number}" for number in range(32)]

    def look(uri):
        all_there.wait(60)
        return uri

    assert list(locations.map_files(look, uris)) == uris


def test_who_has_seen_enough_of_a_store_asks_no_more():
    """No thread is left that would go on."""
    before = threading.active_count()
    found = locations.map_files(str.upper, ["s3://b/a"] * 100)

    next(found)
    assert threading.active_count() > before
    found.close()

    assert threading.active_count() == before


@pytest.mark.parametrize("folder", [None, "file:///t"])
def test_a_disk_is_asked_without_threads(folder):
    here = threading.get_ident()

    found = locations.map_files(lambda _: threading.get_ident(), ["/a", "/b"], folder)

    assert list(found) == [here, here]
    assert list(locations.map_files(never, [], folder)) == []


def never(location):
    raise AssertionError(location)


def asked(location):
    return f"asked:{location}"


@pytest.mark.parametrize("location", ["s3://b/k=1/a-0.parquet", "file:/a/b", "hdfs://node/a_b"])
def test_a_plain_location_with_a_scheme_is_its_own_uri(location):
    assert locations.uris([location], never) == [location]


def test_the_scheme_of_all_plain_ones_is_asked_for_once():
    """It is that of the root folder."""
    roots = iter(["file:///"])

    found = locations.uris(["/a/b", "/c=2"], lambda _: next(roots))

    assert found == ["file:/a/b", "file:/c=2"]


@pytest.mark.parametrize("location", ["/a/../b", "file:/a/./b", "s3://b//c", "/a/..", "/"])
def test_what_hadoop_would_shorten_is_asked_for(location):
    assert locations.uris([location], asked) == [f"asked:{location}"]


@pytest.mark.parametrize("name", ["a b", "ä", "a%20b", "a#b", "a?b", "a:b", "a+b", "[a]", "a\nb"])
def test_whatever_may_be_escaped_is_asked_for(name):
    for location in (f"/t/{name}", f"s3://b/{name}"):
        assert locations.uris([location], asked) == [f"asked:{location}"]
    assert not locations.is_relative(name)


@pytest.mark.parametrize(
    ("location", "is_relative"),
    [("part-0.parquet", True), ("p=1/x", True), ("/p", False), ("s3://b/k", False)],
)
def test_what_lies_within_a_folder(location, is_relative):
    assert locations.is_relative(location) == is_relative


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:/t/a%20b%252F%23", "/t/a b%2F#"),
        ("file:///t/p=%C3%BC", "/t/p=\u00fc"),
        ("s3a://b/t/a+b;c", "/t/a+b;c"),
    ],
)
def test_a_uri_is_unescaped_once(uri, path):
    """A plus is no blank, and a semicolon ends nothing."""
    assert locations.path_of(uri) == path


def test_files_that_went_or_changed_are_named(tmp_path):
    """On disk, where names may have any character, and in a store that is asked."""
    kept, gone, cut = (tmp_path / f"{name} ä%.parquet" for name in ("kept", "gone", "cut"))
    for path in (kept, cut):
        path.write_bytes(b"four")

    check_present({kept.as_uri(): 4}, lambda uri: None)
    check_present({"s3://b/x": 4}, {"s3://b/x": 4}.get)
    for uri, size in [(gone.as_uri(), 4), (cut.as_uri(), 5), ("s3://b/y", 4)]:
        with pytest.raises(VerificationError, match=re.escape(uri)):
            check_present({kept.as_uri(): 4, uri: size}, {"s3://b/x": 4}.get)


def test_spellings_of_a_location_are_identified(tmp_path, monkeypatch):
    """Links, schemes and slashes differ between the log, the catalog and the user."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "t")
    local = {f"{tmp_path}/t", f"file:{tmp_path}/t/", f"file://{tmp_path}/link", "t", "./link"}
    stored = {"s3://lake/t", "s3a://lake/t/", "s3n://key@lake/u/../t"}

    assert len(set(map(locations.identify, local))) == 1
    assert len(set(map(locations.identify, stored))) == 1
    assert len(set(map(locations.identify, [*local, *stored, "hdfs://lake/t", "s3://b/t"]))) == 4
