"""The log on S3, as moto serves it, behind a network that loses answers."""

from threading import Lock
from urllib.request import Request
from uuid import uuid4

import pytest
from moto.server import ThreadedMotoServer

from integration.kit.network import HOST, Network, send
from tests.parquet.kit.log import ENTRY, entry_after, winners_of_a_race
from zadapter_parquet.log.log import Log
from zadapter_parquet.store.contract import Outcome, probe
from zadapter_parquet.store.object_store import ObjectFiles

CONFLICT = "<Error><Code>ConditionalRequestConflict</Code><Message>again</Message></Error>"
ANSWERS = {"lost": (503, ""), "busy": (409, CONFLICT)}


class Store(Network):
    """S3 creates a file in one step; moto looks whether it exists, and creates it then."""

    one_at_a_time = Lock()

    def passed_on(self, request):
        with self.one_at_a_time:
            return super().passed_on(request)


def is_commit(method, path, headers):
    """Only creations are conditional."""
    return method == "PUT" and headers.get("If-None-Match") == "*"


@pytest.fixture
def network(monkeypatch):
    server = ThreadedMotoServer(ip_address=HOST, port=0, verbose=False)
    server.start()
    with Store(server.get_host_and_port()[1], is_commit, ANSWERS) as network:
        for key, value in {
            "AWS_ENDPOINT": network.uri, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        }.items():  # fmt: skip
            monkeypatch.setenv(key, value)
        assert send(Request(f"{network.uri}/lake", method="PUT"))[0] == 200
        yield network
        network.shutdown()
    server.stop()


@pytest.fixture
def files(network):
    # what moto holds outlives its server
    return ObjectFiles(f"s3://lake/{uuid4().hex}")


def test_the_log_works_there(files):
    """A store that passes the probe; versions follow one another; files are listed and deleted."""
    probe(files)
    log = Log(files, "t")
    log.claim(ENTRY)
    for _ in range(5):
        log.claim(entry_after(log))

    assert log.head().version == 5
    assert [entry.version for entry in log.entries_between(-1, 5)] == list(range(6))
    entries = [found for found in files.list_files("_zadapter/log") if found.path.endswith(".json")]
    assert len(entries) == 6
    files.delete([found.path for found in files.list_files()])
    assert list(files.list_files()) == []


def test_of_many_who_claim_a_version_one_wins(files):
    log = Log(files, "t")
    log.claim(ENTRY)
    winners = winners_of_a_race(files)

    assert winners == [log.head().transaction]


def test_a_lost_answer_and_a_412_on_ones_own_write(files, network):
    """The client sends the request again by itself, and is told that the file exists."""
    network.fates.append("lost")

    Log(files, "t").claim(ENTRY)

    assert not network.fates
    assert Log(files, "t").head() == ENTRY
    assert files.create("_zadapter/log/00000000000000000000.json", b"other") is Outcome.EXISTS


def test_a_409(files, network):
    """Someone else is creating the file at this moment; whoever it is, the entry decides."""
    network.fates.append("busy")

    Log(files, "t").claim(ENTRY)

    assert not network.fates
    assert Log(files, "t").head() == ENTRY
