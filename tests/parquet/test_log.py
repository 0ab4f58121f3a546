"""The log of plain Parquet tables: one winner a version, and nothing believed that is damaged."""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parquet.kit.log import ENTRY, MemoryStore, entry_after, winners_of_a_race
from tests.parquet.kit.world import table_of
from zadapter.errors import (
    CorruptLogError,
    StoreError,
    UnknownOutcomeError,
    UnknownTableError,
    UnsupportedError,
)
from zadapter_parquet.format.entries import FORMAT, decode, digest, encode
from zadapter_parquet.format.paths import check_path
from zadapter_parquet.log import stats_table
from zadapter_parquet.log.log import HINT, Log, path_of
from zadapter_parquet.store.contract import Outcome, probe
from zadapter_parquet.store.local import LocalFiles

ROOT = Path(__file__).parents[2]


@pytest.fixture
def files(tmp_path):
    return LocalFiles(tmp_path)


@pytest.fixture
def log(files):
    made = Log(files, "t")
    made.claim(ENTRY)
    return made


def grown(log, versions):
    for _ in range(versions):
        log.claim(entry_after(log))
    return log


def test_an_entry_survives_its_bytes():
    assert decode(encode(ENTRY), 0) == ENTRY


@given(cut=st.integers(0, len(encode(ENTRY)) - 2))
def test_a_torn_entry_is_never_believed(cut):
    with pytest.raises(CorruptLogError, match="incomplete or was modified"):
        decode(encode(ENTRY)[:cut], 0)


@given(at=st.integers(0, len(encode(ENTRY)) - 2), to=st.integers(0, 255))
def test_a_changed_entry_is_never_believed(at, to):
    data = bytearray(encode(ENTRY))
    if data[at] == to:
        return
    data[at] = to
    with pytest.raises((CorruptLogError, UnsupportedError)):
        decode(bytes(data), 0)


def test_an_entry_in_the_wrong_place_is_named():
    with pytest.raises(CorruptLogError, match="log entry 3 has version 0"):
        decode(encode(ENTRY), 3)


def test_a_newer_format_is_refused():
    body = json.dumps(json.loads(encode(ENTRY).splitlines()[0]) | {"format": FORMAT + 1}).encode()
    with pytest.raises(UnsupportedError, match="newer zadapter"):
        decode(body + b'\n{"end":"' + digest(body).encode() + b'"}\n', 0)


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "./a", "%2e%2e/x", "%252e%252e/x",
     "a/%2e%2e/%2e%2e/x", "..%2fx", "a\\..\\b", "%2Fetc/passwd", "a\0b"],
)  # fmt: skip
def test_a_path_that_may_lead_out_is_refused(path):
    with pytest.raises(CorruptLogError):
        check_path(path)


@pytest.mark.parametrize(
    "path", ["a.parquet", "p=a%2Fb/x y.parquet", "ü=é/#1?.parquet", "a..b/c%d", "p=../x"]
)
def test_a_path_within_the_table_is_as_it_is(path):
    assert check_path(path) == path


@pytest.mark.parametrize("hint", [None, b"", b"torn", b"-5", b"70", b"99999", b"null", b"1e999"])
def test_the_head_is_found_whatever_the_hint_says(files, log, hint):
    grown(log, 70)
    if hint is not None:
        files.write(HINT, hint)

    assert log.head().version == 70


@pytest.mark.parametrize("versions", range(18))
def test_the_head_is_the_last_version(log, versions):
    assert grown(log, versions).head().version == versions


def test_no_log(files):
    with pytest.raises(UnknownTableError, match="has no log of zadapter"):
        Log(files, "t").head()
    with pytest.raises(UnknownTableError, match="version 7 not found"):
        Log(files, "t").entry(7)


def test_an_entry_that_does_not_follow_is_named(files, log):
    """Someone has put another version 1 in place: version 2 speaks of the one before."""
    grown(log, 2)
    forged = replace(log.entry(1), rows=99)
    files.write(path_of(1), encode(forged))

    with pytest.raises(CorruptLogError, match="log entry 2 does not follow entry 1"):
        log.head()


def test_a_huge_entry_is_not_read(files, log, monkeypatch):
    monkeypatch.setattr("zadapter_parquet.store.local.LARGEST", 10)
    with pytest.raises(CorruptLogError, match="too large"):
        log.entry(0)


def test_a_link_out_of_the_table_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "link").symlink_to(tmp_path)
    files = LocalFiles(tmp_path / "table")

    for act in (files.read, files.size, files.open_file, lambda path: files.delete([path])):
        with pytest.raises(CorruptLogError, match="outside the table"):
            act("link/secret")
    assert (tmp_path / "secret").exists()


def test_of_many_who_claim_a_version_one_wins(files, log):
    winners = winners_of_a_race(files)

    assert winners == [log.head().transaction]


def test_a_lost_answer_is_looked_up():
    """The entry is there, though the store did not say so."""
    store = MemoryStore(fates=["lost"])
    Log(store, "t").claim(ENTRY)

    assert Log(store, "t").head() == ENTRY


def test_an_own_entry_that_is_there_already_is_no_conflict():
    """A store's client sends a request again by itself, and is told that the file exists."""
    store = MemoryStore()
    assert store.create(path_of(0), encode(replace(ENTRY, timestamp=7))) is Outcome.CREATED

    Log(store, "t").claim(ENTRY)


def test_an_answer_that_never_comes_is_an_unknown_outcome():
    with pytest.raises(UnknownOutcomeError):
        Log(MemoryStore(fates=["never"] * 99), "t").claim(ENTRY)


def test_a_store_that_overwrites_is_refused():
    class Overwriting(MemoryStore):
        def create(self, path, data):
            self.write(path, data)
            return Outcome.CREATED

    with pytest.raises(UnsupportedError, match="commits could be lost"):
        probe(Overwriting())
    probe(MemoryStore())


RACER = """
import sys
from pathlib import Path
from tests.parquet.kit.log import entry_after
from zadapter.errors import ConflictError
from zadapter_parquet.store.local import LocalFiles
from zadapter_parquet.log.log import Log

log, landed = Log(LocalFiles(Path(sys.argv[1])), "t"), 0
while landed < 25:
    try:
        log.claim(entry_after(log))
    except ConflictError:
        continue
    landed += 1
"""


def test_eight_processes_claim_versions_at_once(tmp_path, log):
    """Every commit that its author took for landed is there, once, in one chain."""
    command = [sys.executable, "-c", RACER, str(tmp_path)]
    racers = [subprocess.Popen(command, cwd=ROOT) for _ in range(8)]

    assert [racer.wait(timeout=300) for racer in racers] == [0] * 8
    assert log.head().version == 200
    assert len({entry.transaction for entry in log.entries_between(-1, 200)}) == 201


class Outage(MemoryStore):
    """After the first creation nothing answers any more."""

    down = False

    def create(self, path, data):
        if self.down:
            raise StoreError("403")
        self.down = True
        return super().create(path, data)

    def read(self, path):
        if self.down:
            raise ConnectionError("no route")
        return super().read(path)


@pytest.mark.parametrize("fate", ["lost", "never", "late"])
def test_an_outage_after_a_request_is_an_unknown_outcome(fate):
    """The entry may be there, or arrive yet: its files must stay."""
    with pytest.raises(UnknownOutcomeError):
        Log(Outage(fates=[fate]), "t").claim(ENTRY)


def test_a_refusal_of_ones_own_second_try():
    """A store's client has sent it twice by itself; the first arrived, the second was refused."""

    class Strict(MemoryStore):
        def create(self, path, data):
            super().create(path, data)
            raise StoreError("403")

    Log(Strict(), "t").claim(ENTRY)
    with pytest.raises(StoreError, match="403"):
        Log(Strict(fates=["never"]), "t").claim(ENTRY)


def test_a_refusal_says_nothing_of_what_was_sent_before():
    """The first request may still arrive."""

    class Full(MemoryStore):
        def create(self, path, data):
            if self.late:
                raise StoreError("no room")
            return super().create(path, data)

    store = Full(fates=["late"])
    with pytest.raises(UnknownOutcomeError):
        Log(store, "t").claim(ENTRY)
    store.deliver()
    assert Log(store, "t").head() == ENTRY


@pytest.mark.parametrize("lost", range(9))
def test_an_entry_that_is_missing_hides_no_version(files, log, lost):
    """Or does no harm; an older version is never shown as the newest."""
    grown(log, 9)
    files.delete([path_of(lost)])

    found = []
    with suppress(CorruptLogError):
        found.append(log.head().version)

    assert found in ([], [9])


def test_the_stats_of_two_versions_are_never_the_same_file(files):
    """What one version no longer needs, a clean-up may be about to delete."""
    table = table_of(["a.parquet"])
    first, second = (stats_table.rewrite_parts(files, (), set(), table) for _ in range(2))

    assert first[0].path != second[0].path
