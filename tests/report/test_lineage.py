"""Events of rewrites, sent by OpenLineage's own client."""

import logging
import socket
import subprocess
import sys
from dataclasses import dataclass
from uuid import UUID

import pytest
from openlineage.client import OpenLineageClient, event_v2, facet_v2

from tests.base.kit.signals import interrupt, python_s_handler, spark_context  # noqa: F401
from tests.kit.lineage import configure, send_to_file
from zadapter.base.interrupts import interruptible
from zadapter.report import lineage
from zadapter.report.lineage import Dataset, Job, dataset_of, name_location, rewriting, sending

RUN, LAKE = "0f" * 16, "1e" * 16
TABLE = Dataset("s3://bucket", "lake/t")
WRITTEN = {"version": 7, "files": 3, "bytes": 4096, "rows": 50}
NOTHING = {"version": None, "files": 0, "bytes": 0, "rows": 0}


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """A folder and a home without a configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("URL", "CONFIG", "DISABLED", "NAMESPACE"):
        monkeypatch.delenv(f"OPENLINEAGE_{name}", raising=False)


@pytest.fixture
def events(tmp_path):
    """Reads the events that a client has sent to a file."""
    _, read = send_to_file(tmp_path)
    return read


def rewrite(facts=WRITTEN, dataset=TABLE, error=None):
    with rewriting(RUN, "lake/t", lambda: dataset, lambda: facts):
        if error is not None:
            raise error


def of_client(event):
    """Return an event as the client's own type, which checks its fields; none is left over."""
    known = {**event, "eventType": event_v2.RunState(event["eventType"])}
    assert known.pop("schemaURL").endswith("#/$defs/RunEvent")
    known["run"] = event_v2.Run(**known["run"])
    known["job"] = event_v2.Job(**known["job"])
    known["outputs"] = [event_v2.OutputDataset(**each) for each in known["outputs"]]
    return event_v2.RunEvent(**known)


def without_base(facet):
    """Return what a facet says, besides its producer and its schema."""
    producer = facet["_producer"]
    assert producer.startswith("pkg:generic/zadapter@"), producer
    return {name: value for name, value in facet.items() if not name.startswith("_")}


def test_a_rewrite_has_an_event_of_its_start_and_one_of_its_end(events):
    rewrite()

    start, end = map(of_client, events())
    assert (start.eventType.value, end.eventType.value) == ("START", "COMPLETE")
    assert start.eventTime <= end.eventTime
    assert {start.run.runId, end.run.runId} == {str(UUID(RUN))}
    assert start.job == end.job
    assert (end.job.namespace, end.job.name) == ("default", "zadapter.optimize.lake/t")
    assert without_base(end.job.facets["jobType"])["processingType"] == "BATCH"
    (output,) = end.outputs
    assert (output.namespace, output.name) == ("s3://bucket", "lake/t")
    assert without_base(output.facets["version"]) == {"datasetVersion": "7"}
    assert without_base(output.outputFacets["outputStatistics"]) == {
        "rowCount": 50, "size": 4096, "fileCount": 3,
    }  # fmt: skip
    assert end.inputs == []
    assert "parent" not in end.run.facets


@pytest.mark.parametrize(
    ("error", "state"), [(ValueError("token=hidden"), "FAIL"), (KeyboardInterrupt(), "ABORT")]
)
def test_what_ends_a_rewrite_is_in_its_event(events, error, state):
    with pytest.raises(type(error)):
        rewrite(NOTHING, error=error)

    end = of_client(events()[-1])
    told = without_base(end.run.facets["errorMessage"])["message"]
    assert end.eventType.value == state
    assert told.startswith(type(error).__name__)
    assert "hidden" not in told
    assert end.outputs[0].outputFacets == {}  # nothing was committed


def test_a_rewrite_that_a_signal_ends_is_aborted(events, context):
    """Its jobs are cancelled, and so it fails; the next one that fails has failed by itself."""

    def run(*, interrupts):
        with interruptible(context), rewriting(RUN, "lake/t", lambda: TABLE, lambda: NOTHING):
            if interrupts:
                interrupt()
                context.job()
            raise FileNotFoundError

    with pytest.raises(KeyboardInterrupt):
        run(interrupts=True)
    with pytest.raises(FileNotFoundError):
        run(interrupts=False)

    assert [each["eventType"] for each in events()] == ["START", "ABORT", "START", "FAIL"]


def test_rewrites_of_a_lake_are_parts_of_its_run(events, monkeypatch):
    """They share one client, and a namespace that the user has named."""
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "nightly")
    opened, begin = [], OpenLineageClient.__init__
    monkeypatch.setattr(OpenLineageClient, "__init__", lambda c: opened.append(c) or begin(c))

    with sending(Job(LAKE, "zadapter.maintain.lake.toml")):
        rewrite()
        rewrite()

    assert len(opened) == 1
    parents = [without_base(each["run"]["facets"]["parent"]) for each in events()]
    assert parents == 4 * [
        {
            "run": {"runId": str(UUID(LAKE)), "facets": {}},
            "job": {"namespace": "nightly", "name": "zadapter.maintain.lake.toml", "facets": {}},
        }
    ]
    facet_v2.parent_run.Run(parents[0]["run"]["runId"])
    assert {each["job"]["namespace"] for each in events()} == {"nightly"}


def test_a_transport_that_fails_is_a_warning_and_no_error(tmp_path, caplog):
    """One for a whole run, which does not wait for a server that is down."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        configure(tmp_path, {"type": "http", "url": url, "retry": {"total": 0}})
        with sending(Job(LAKE, "lake")):
            rewrite()
            rewrite()

    warnings = [each for each in caplog.records if each.name == "zadapter.lineage"]
    assert [each.levelno for each in warnings] == [logging.WARNING]
    assert "no further events" in warnings[0].getMessage()


def test_a_server_that_never_answers_holds_up_no_rewrite(tmp_path, caplog, monkeypatch):
    """The end of the run waits for it, and not for long."""
    monkeypatch.setattr(lineage, "_PATIENCE", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        configure(tmp_path, {"type": "http", "url": url, "timeout": 60, "retry": {"total": 0}})
        rewrite()

    assert "some are not sent after" in caplog.text


@pytest.mark.parametrize("transport", [{"type": "nosuch"}, {"type": "kafka"}])
def test_a_configuration_that_is_wrong_is_a_warning(tmp_path, caplog, transport):
    configure(tmp_path, transport)

    rewrite()

    assert [each.levelno for each in caplog.records if each.name == "zadapter.lineage"] == [30]


def test_an_error_of_the_rewrite_is_raised_although_its_event_fails(tmp_path, events):
    def broken():
        raise OSError("Java has ended")

    with (
        pytest.raises(ValueError, match="mine"),
        rewriting(RUN, "t", broken, lambda: NOTHING),
    ):
        raise ValueError("mine")


def test_without_a_configuration_nothing_is_imported():
    code = """
import os, sys
from zadapter.report.lineage import sending

def imported():
    with sending(): pass
    return "openlineage" in sys.modules

found = [imported()]
os.environ["OPENLINEAGE_CONFIG"] = "nosuch.yml"
found.append(imported())
os.environ |= {"OPENLINEAGE_URL": "http://localhost:1", "OPENLINEAGE_DISABLED": "True"}
found.append(imported())
del os.environ["OPENLINEAGE_DISABLED"]
print(*found, imported())
"""

    assert python(code) == "False False False True\n"


def test_variables_of_the_client_are_a_configuration(tmp_path, monkeypatch):
    transport = {"TYPE": "file", "LOG_FILE_PATH": str(tmp_path / "sent"), "APPEND": "true"}
    for name, value in transport.items():
        monkeypatch.setenv(f"OPENLINEAGE__TRANSPORT__{name}", value)

    rewrite()

    assert len((tmp_path / "sent").read_text().splitlines()) == 2


def test_the_client_is_not_needed(events):
    code = (
        "import sys; sys.modules['openlineage'] = None\n"
        "from zadapter.report.lineage import rewriting\n"
        f"with rewriting('{RUN}', 't', dict, dict): print('done')\n"
    )

    assert python(code) == "done\n"


def python(code):
    """Return what a new process prints; it complains about nothing."""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    return ended.stdout


@pytest.mark.parametrize(
    ("location", "dataset"),
    [
        ("/lake/a b", ("file", "/lake/a b")),
        ("file:/lake/t", ("file", "/lake/t")),
        ("s3n://bucket/t", ("s3://bucket", "t")),
        ("s3://bucket", ("s3://bucket", "/")),
        ("s3://id:hidden@bucket/t", ("s3://***@bucket", "t")),
        ("gs://bucket/lake/t/", ("gs://bucket", "lake/t")),
        (
            "abfss://box@account.dfs.core.windows.net/lake/t",
            ("abfss://box@account.dfs.core.windows.net", "lake/t"),
        ),
        ("hdfs://name:8020/lake/t", ("hdfs://name:8020", "/lake/t")),
    ],
)
def test_tables_are_named_by_their_location(location, dataset):
    assert name_location(location) == dataset


@dataclass
class Table:
    location: str
    identifier: str | None


@pytest.mark.parametrize(
    ("identifier", "settings", "symlink"),
    [
        (None, {"spark.sql.catalog.ice.uri": "http://catalog"}, None),
        ("`ice`.`db`.`t`", {"spark.sql.catalog.other.uri": "http://catalog"}, None),
        (
            "`ice`.`db`.`a.b`",
            {
                "spark.sql.catalog.ice.uri": "https://catalog/ws/",
                "spark.sql.catalog.ice.warehouse": "s3://b",
            },
            ("https://catalog/ws", "db.a.b"),
        ),
        ("`ice`.`db`.`t`", {"spark.sql.catalog.ice.warehouse": "s3://b/wh"}, ("s3://b/wh", "db.t")),
        (
            "`ice`.`db`.`t`",
            {"spark.sql.catalog.ice.uri": "jdbc:postgresql://host/db?user=u&password=hidden"},
            ("jdbc:postgresql://host/db", "db.t"),
        ),
    ],
)
def test_a_name_in_a_catalog_is_a_link_to_the_location(identifier, settings, symlink):
    found = dataset_of(Table("s3://bucket/t", identifier), settings.get)

    assert (found.namespace, found.name, found.symlink) == ("s3://bucket", "t", symlink)


def test_the_link_is_in_the_events(events):
    rewrite(dataset=Dataset("s3://bucket", "t", ("https://catalog", "db.t")))

    links = [without_base(each["outputs"][0]["facets"]["symlinks"]) for each in events()]
    identifier = {"namespace": "https://catalog", "name": "db.t", "type": "TABLE"}
    assert links == [{"identifiers": [identifier]}] * 2
