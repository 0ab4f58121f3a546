"""Events of rewrites in OpenLineage, if its client is installed and configured.

The client has its own configuration: ``OPENLINEAGE_URL``, ``openlineage.yml``, or variables that
begin with ``OPENLINEAGE__``. Without one, nothing is imported. No rewrite depends on its events:
a thread sends them, for which the end of a run waits ten seconds at most. After an error, one
warning is logged, and the run sends no further event. The client itself has tried again by then.

The thread also tells errors of the client, which may be of any package, from exceptions that a time
limit of the caller raises: these arrive in the caller's thread alone.
"""

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from importlib import import_module
from importlib.metadata import version
from queue import SimpleQueue
from typing import Any
from uuid import UUID

from zadapter.base import distribution
from zadapter.base.interrupts import is_interrupted, reraise
from zadapter.base.java_errors import first_line
from zadapter.base.locations import STORE, bare
from zadapter.base.names import split
from zadapter.base.secrets import mask_secrets
from zadapter.table.snapshot import Snapshot

LOGGER = logging.getLogger("zadapter.lineage")

_PATIENCE = 10.0
"""Seconds that the end of a run waits for a client that sends events in the background."""
_S3 = re.compile(r"^s3[an]:")
_OBJECT_STORE = re.compile(r"(s3|gs|wasbs?|abfss?)://")
"""Stores whose objects have names that begin without a slash."""

Setting = Callable[[str], str | None]
"""Returns a setting of Spark by its name; None: it is not set."""
Facts = Mapping[str, int | None]
"""Version of a table, and files, bytes and rows that were written; None: unknown."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run of a job, of which rewrites are parts."""

    run: str
    """Id of the run, as hexadecimal digits."""
    name: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table, by the naming conventions of OpenLineage."""

    namespace: str
    name: str
    symlink: tuple[str, str] | None = None
    """Namespace and name in a catalog; None: it has none, or they are unknown."""


def dataset_of(snapshot: Snapshot, setting: Setting) -> Dataset:
    """Return the dataset of a table: its location, as the events of Spark's own listener name it.

    Args:
        snapshot: The table.
        setting: Returns settings, by which catalogs are identified.
    """
    namespace, name = name_location(snapshot.location)
    if snapshot.identifier is None:
        return Dataset(namespace, name)
    catalog, *names = split(snapshot.identifier)
    prefix = f"spark.sql.catalog.{catalog}"
    found = setting(f"{prefix}.uri") or setting(f"{prefix}.warehouse")
    where = None if found is None else mask_secrets(found.partition("?")[0].rstrip("/"))
    return Dataset(namespace, name, None if where is None else (where, ".".join(names)))


def name_location(location: str) -> tuple[str, str]:
    """Return the namespace and the name of a location.

    >>> name_location("s3a://bucket/lake/events")
    ('s3://bucket', 'lake/events')
    >>> name_location("file:///lake/events/")
    ('file', '/lake/events')
    >>> name_location("hdfs://namenode:8020/lake/events")
    ('hdfs://namenode:8020', '/lake/events')
    """
    shown = _S3.sub("s3:", mask_secrets(location))
    store = re.match(STORE, shown)
    namespace = store[0].rstrip(":/") if store else "file"
    path = bare(shown).rstrip("/")
    return namespace, (path.lstrip("/") if _OBJECT_STORE.match(shown) else path) or "/"


@contextmanager
def sending(parent: Job | None = None) -> Iterator["_Sender"]:
    """Use one client for the rewrites within a block, unless a block around it has one.

    Args:
        parent: The run that the rewrites are parts of.
    """
    around = _sender.get()
    if around is not None:
        yield around
        return
    sender = _Sender(parent)
    token = _sender.set(sender)
    try:
        yield sender
    finally:
        _sender.reset(token)
        sender.close()


@contextmanager
def rewriting(
    run: str, table: str, dataset: Callable[[], Dataset], facts: Callable[[], Facts]
) -> Iterator[None]:
    """Send events of a rewrite when it starts, and when it completes, fails or is aborted.

    Args:
        run: Id of the rewrite, as hexadecimal digits.
        table: The table as the caller named it.
        dataset: Returns the table.
        facts: Returns what has been committed so far.
    """
    with sending() as sender:
        known = cache(dataset)

        def tell(state: str, error: str | None = None) -> None:
            sender.send(
                lambda: _Event(
                    job=Job(run, _name_job("optimize", table)),
                    parent=sender.parent,
                    dataset=known(),
                    state=state,
                    time=datetime.now(timezone.utc),
                    facts=facts(),
                    error=error,
                )
            )

        tell("START")
        try:
            yield
        except BaseException as error:
            aborted = is_interrupted() or not isinstance(error, Exception)
            tell("ABORT" if aborted else "FAIL", _describe(error))
            raise
        tell("COMPLETE")


def lake_job(run: str, lake: str) -> Job:
    """Return the run of ``maintain`` over a lake."""
    return Job(run, _name_job("maintain", lake))


def _name_job(function: str, subject: str) -> str:
    return f"zadapter.{function}.{mask_secrets(subject)}"


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """What is known when the state of a rewrite changes."""

    job: Job
    """The rewrite."""
    parent: Job | None
    dataset: Dataset
    state: str
    """``START``, ``COMPLETE``, ``FAIL`` or ``ABORT``."""
    time: datetime
    facts: Facts
    """What was committed so far."""
    error: str | None
    """Why the rewrite has failed; None: it has not."""

    def of_client(self) -> Any:
        """Return the event as the client sends it."""
        events = import_module("openlineage.client.event_v2")
        kind = _facet("job_type_job.JobTypeJobFacet", "BATCH", "ZADAPTER", "COMMAND")
        return events.RunEvent(
            eventType=events.RunState[self.state],
            eventTime=self.time.isoformat(),
            run=events.Run(_uuid(self.job.run), self._of_run()),
            job=events.Job(_namespace(), self.job.name, {"jobType": kind}),
            outputs=[
                events.OutputDataset(
                    self.dataset.namespace,
                    self.dataset.name,
                    facets=self._of_dataset(),
                    outputFacets=self._of_output(),
                )
            ],
            producer=_producer(),
        )

    def _of_run(self) -> Mapping[str, Any]:
        facets, found = import_module("openlineage.client.facet_v2"), dict[str, Any]()
        if self.parent is not None:
            found["parent"] = _facet(
                "parent_run.ParentRunFacet",
                facets.parent_run.Run(_uuid(self.parent.run)),
                facets.parent_run.Job(_namespace(), self.parent.name),
            )
        if self.error is not None:
            name = "error_message_run.ErrorMessageRunFacet"
            found["errorMessage"] = _facet(name, self.error, "PYTHON")
        return found

    def _of_dataset(self) -> Mapping[str, Any]:
        facets, found = import_module("openlineage.client.facet_v2"), dict[str, Any]()
        if self.dataset.symlink is not None:
            link = facets.symlinks_dataset.Identifier(*self.dataset.symlink, "TABLE")
            found["symlinks"] = _facet("symlinks_dataset.SymlinksDatasetFacet", [link])
        if self.facts.get("version") is not None:
            name = "dataset_version_dataset.DatasetVersionDatasetFacet"
            found["version"] = _facet(name, str(self.facts["version"]))
        return found

    def _of_output(self) -> Mapping[str, Any]:
        if not self.facts.get("files"):
            return {}
        written = (self.facts["rows"], self.facts["bytes"], self.facts["files"])
        name = "output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet"
        return {"outputStatistics": _facet(name, *written)}


def _facet(name: str, *fields: Any) -> Any:
    """Return a facet of the client, by its module and class."""
    module, _, kind = name.partition(".")
    facets = getattr(import_module("openlineage.client.facet_v2"), module)
    return getattr(facets, kind)(*fields, producer=_producer())


def _producer() -> str:
    """Return a package URL, which names the program wherever it is hosted."""
    return f"pkg:generic/zadapter@{version(distribution.NAME)}"


def _namespace() -> str:
    return os.environ.get("OPENLINEAGE_NAMESPACE", "default")


def _uuid(digits: str) -> str:
    return str(UUID(digits))


class _Sender:
    """Sends events by a thread of its own, until an error.

    The thread is a daemon: no process waits for a client that never returns.
    """

    def __init__(self, parent: Job | None) -> None:
        """Start the thread, if a client is configured."""
        self.parent = parent
        self._client: Any = None
        self._steps = SimpleQueue[Callable[[], object] | None]()
        self._ended = threading.Event()
        self._failed = not _is_configured()
        if not self._failed:
            try:
                threading.Thread(target=self._run, name="zadapter-lineage", daemon=True).start()
            except RuntimeError as error:  # no more threads, or the interpreter ends
                self._give_up(_describe(error))

    def send(self, event: Callable[[], _Event]) -> None:
        """Send an event after those before it."""
        if self._failed:
            return
        try:
            known = event()
        except Exception as error:  # noqa: BLE001 - Java may have ended
            reraise(error)
            self._give_up(_describe(error))
        else:
            self._steps.put(lambda: self._client.emit(known.of_client()))

    def close(self) -> None:
        """Wait until the events are sent, but not for long."""
        if self._failed:
            self._steps.put(None)
            return
        self._steps.put(lambda: self._client.close(timeout=_PATIENCE))
        self._steps.put(None)
        if not self._ended.wait(_PATIENCE):
            self._give_up(f"some are not sent after {_PATIENCE:.0f} seconds")

    def _run(self) -> None:
        """Open the client, and take the steps until there is none."""
        step: Callable[[], object] | None = self._open
        while step is not None:
            self._take(step)
            step = self._steps.get()
        self._ended.set()

    def _open(self) -> None:
        try:
            package = import_module("openlineage.client")
        except ImportError:  # it is configured for others
            self._failed = True
        else:
            self._client = package.OpenLineageClient()

    def _take(self, step: Callable[[], object]) -> None:
        if self._failed:
            return
        try:
            step()
        except Exception as error:  # noqa: BLE001 - a transport may fail in any way
            self._give_up(_describe(error))

    def _give_up(self, why: str) -> None:
        if not self._failed:
            self._failed = True
            LOGGER.warning("no further events are sent to OpenLineage by this run: %s", why)


_sender: ContextVar[_Sender | None] = ContextVar("zadapter_lineage", default=None)


def _is_configured() -> bool:
    """Return whether the client would find a configuration."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    # Path raises errors where there is no home, or no right to look
    home = os.path.expanduser("~/.openlineage/openlineage.yml")  # noqa: PTH111
    files = (os.environ.get("OPENLINEAGE_CONFIG", ""), "openlineage.yml", home)
    return (
        bool(os.environ.get("OPENLINEAGE_URL"))
        or any(name.startswith("OPENLINEAGE__TRANSPORT") for name in os.environ)
        or any(map(os.path.isfile, files))
    )
