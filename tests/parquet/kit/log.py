"""In-memory log of a plain Parquet table, on a store that loses answers."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

from zadapter.errors import ConflictError
from zadapter_parquet.format.entries import Entry, LogOperation, digest, encode
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.log.commit_entries import current_time
from zadapter_parquet.log.log import Log
from zadapter_parquet.store.contract import ListedFile, Outcome

ENTRY = Entry(
    version=0,
    previous="",
    transaction="first",
    operation=LogOperation.REGISTER,
    read_version=-1,
    timestamp=1,
    table="t",
    schema='{"type":"struct","fields":[]}',
    partition=(),
    parts=(),
    files=0,
    size=0,
    rows=0,
    oldest=0,
)


def entry_after(log, **said):
    """Return an entry for the version after the newest."""
    head = log.head()
    return replace(
        head,
        version=head.version + 1,
        previous=digest(encode(head)),
        transaction=uuid4().hex,
        operation=LogOperation.APPEND,
        **said,
    )


def winners_of_a_race(files):
    """Let sixteen threads claim the next version, and return those that succeed."""
    after = entry_after(Log(files, "t"))
    entries = [replace(after, transaction=str(number)) for number in range(16)]

    def claim(entry):
        try:
            Log(files, "t").claim(entry)
        except ConflictError:
            return None
        return entry.transaction

    with ThreadPoolExecutor(16) as pool:
        return [won for won in pool.map(claim, entries) if won is not None]


class MemoryStore:
    """Store of files in memory.

    The fate of each creation is the next item of *fates*: "fine"; "lost": the request arrives, but
    its answer is lost; "never": it does not arrive; or "late": it arrives in :meth:`deliver`.
    """

    uri = "memory:/table"

    def __init__(self, fates=()):
        self.held, self.fates, self.late = {}, iter(fates), []
        self.made = {}

    def create(self, path, data):
        fate = next(self.fates, "fine")
        if fate == "late":
            self.late.append((path, data))
        if fate in {"never", "late"}:
            return Outcome.UNKNOWN
        taken = path in self.held
        self.held.setdefault(path, data)
        self.made.setdefault(path, current_time())
        if fate == "lost":
            return Outcome.UNKNOWN
        return Outcome.EXISTS if taken else Outcome.CREATED

    def deliver(self):
        """Deliver the late requests."""
        for path, data in self.late:
            self.held.setdefault(path, data)
            self.made.setdefault(path, current_time())
        self.late.clear()

    def has(self, path):
        return path in self.held

    def read(self, path):
        return self.held.get(path)

    def write(self, path, data):
        self.held[path] = data
        self.made[path] = current_time()

    def has_after(self, path):
        return any(other > path and other.endswith(".json") for other in self.held)

    def delete(self, paths):
        for path in paths:
            self.held.pop(path, None)

    def list_files(self, folder=""):
        for path, data in sorted(self.held.items()):
            if path.startswith(folder):
                # visible files are older than the table
                modified = self.made[path] * 1_000 if path.startswith(HIDDEN) else 0
                yield ListedFile(path=path, size=len(data), modified=modified)
