"""The log of a table: dense versions, each created once and never changed."""

import re
from collections.abc import Iterator
from contextlib import suppress

from zadapter.errors import (
    ConflictError,
    CorruptLogError,
    StoreError,
    UnknownOutcomeError,
    UnknownTableError,
)
from zadapter_parquet.format.entries import Entry, Operation, decode, digest, encode
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.store.contract import Outcome, Store

FOLDER = f"{HIDDEN}/log"
HINT = f"{FOLDER}/_head"
TRIES = 20
"""How often a change that reads nothing but the log is made again after losing a race."""
_REQUESTS = 5
_VERSION = re.compile(rb"[0-9]{1,18}")


def path_of(version: int) -> str:
    """Return where the entry of *version* lies."""
    return f"{FOLDER}/{version:020d}.json"


class Log:
    """Reads and extends a table's log.

    A version is whoever creates its entry first.  So once an entry can be read, all other attempts
    at that version have failed for good, and as long as it is absent the same bytes may be sent
    again: an entry is committed at most once, without locks and clocks.
    """

    def __init__(self, store: Store, table: str) -> None:
        self._store = store
        self._table = table

    def exists(self) -> bool:
        """Tell whether there is a log.

        Raises:
            CorruptLogError: Its first entry is gone.
        """
        if self._store.has(path_of(0)):
            return True
        if self._store.has_after(path_of(0)):
            raise CorruptLogError(f"{self._table}: entry 0 of the log is missing")
        return False

    def head(self) -> Entry:
        """Return the newest version.

        Raises:
            UnknownTableError: There is no log, or it says that the table was dropped.
            CorruptLogError: Its newest entry is damaged, or does not follow the one before.
        """
        newest = self.newest()
        if newest is None:
            raise UnknownTableError(
                f"{self._table} has no log of zadapter; a folder becomes a table by its first "
                "write, zadapter.optimize() for one"
            )
        if newest.operation is Operation.DROP:
            raise UnknownTableError(
                f"{self._table} was removed, since it was not what it was made of; migrate to it "
                f"anew, or, if nobody writes to it any more, remove its {HIDDEN}/"
            )
        return newest

    def newest(self) -> Entry | None:
        """Return the last entry, be the table dropped or not; None if there is no log.

        Raises:
            CorruptLogError: It is damaged, or does not follow the one before.
        """
        low = self._hinted()
        if not self._has(low):
            if not self.exists():
                return None
            low = 0
        low = self._last(low)
        while self._store.has_after(path_of(low)):
            # somebody has added a version just now, or one in between is missing
            if not self._has(low + 1):
                raise CorruptLogError(f"{self._table}: entry {low + 1} of the log is missing")
            low = self._last(low + 1)
        return self.entry(low)

    def _last(self, low: int) -> int:
        """Return the last version from *low* on, which is there; versions are dense."""
        step = 1
        while self._has(low + step):
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._has(middle) else (low, middle)
        return low

    def entry(self, version: int) -> Entry:
        """Return one version.

        Raises:
            UnknownTableError: There is no such version.
            CorruptLogError: The entry is damaged, or does not follow the one before.
        """
        data = self._store.read(path_of(version)) if version >= 0 else None
        if data is None:
            raise UnknownTableError(f"{self._table}: there is no version {version}")
        entry = self._decoded(data, version)
        before = self._store.read(path_of(version - 1)) if version else b""
        if version and (before is None or digest(before) != entry.previous):
            raise CorruptLogError(
                f"{self._table}: entry {version} of the log does not follow entry {version - 1}"
            )
        return entry

    def has(self, entry: Entry) -> bool:
        """Tell whether the log still has this very entry.

        Raises:
            UnknownTableError: There is no log any more.
        """
        data = self._store.read(path_of(entry.version))
        if data is None and not self.exists():
            raise UnknownTableError(f"{self._table} was removed meanwhile; nothing was committed")
        return data is not None and decode(data, entry.version) == entry

    def between(self, after: int, until: int) -> Iterator[Entry]:
        """Yield the versions after *after*, up to and with *until*, which are all there.

        Raises:
            CorruptLogError: An entry is missing or damaged.
        """
        return map(self._needed, range(after + 1, until + 1))

    def _needed(self, version: int) -> Entry:
        try:
            return self.entry(version)
        except UnknownTableError as error:
            raise CorruptLogError(
                f"{self._table}: {path_of(version)}, an entry of the log, is missing; restore the "
                "file from a backup"
            ) from error

    def hash_of(self, version: int) -> str:
        """Return what the entry after *version* has as ``previous``.

        Raises:
            UnknownTableError: The entry is gone: the table was removed since it was read.
        """
        if version < 0:
            return ""
        data = self._store.read(path_of(version))
        if data is None:
            raise UnknownTableError(f"{self._table} was removed meanwhile; nothing was committed")
        return digest(data)

    def claim(self, entry: Entry) -> None:
        """Make *entry* a version of the table.

        Raises:
            ConflictError: The version is somebody else's.
            UnknownOutcomeError: It is not known whether it is ours.
        """
        data, path = encode(entry), path_of(entry.version)
        try:
            refusal: StoreError | None = None
            outcome = self._store.create(path, data)
        except StoreError as error:
            # a client may have sent it before, by itself, to somebody who was less strict
            refusal, outcome = error, Outcome.UNKNOWN
        try:
            self._settle(entry, data, outcome, refusal)
        except (ConflictError, UnknownOutcomeError):
            raise
        except Exception as error:
            if error is refusal:
                raise
            # something was sent: whatever stops us now proves nothing
            raise UnknownOutcomeError(self._table, entry.transaction) from error

    def claimed(self, entry: Entry) -> bool:
        """Make *entry* a version of the table, and tell whether nobody was faster.

        Raises:
            UnknownOutcomeError: It is not known whether the version is ours.
        """
        try:
            self.claim(entry)
        except ConflictError:
            return False
        return True

    def _settle(
        self, entry: Entry, data: bytes, outcome: Outcome, refusal: StoreError | None
    ) -> None:
        """Find out whose the version is, after one request that may have arrived."""
        path = path_of(entry.version)
        for _ in range(_REQUESTS):
            if outcome is Outcome.CREATED:
                return self._hint(entry.version)
            found = self._store.read(path)
            if found is not None:
                # an earlier attempt of ours may have arrived after it was given up
                if self._decoded(found, entry.version).transaction == entry.transaction:
                    return None
                raise ConflictError(f"{self._table}: version {entry.version} was taken meanwhile")
            if refusal is not None:
                raise refusal
            # nothing is decided, and the same bytes may be sent again
            outcome = self._store.create(path, data)
        raise UnknownOutcomeError(self._table, entry.transaction)

    def _decoded(self, data: bytes, version: int) -> Entry:
        try:
            return decode(data, version)
        except CorruptLogError as error:
            raise CorruptLogError(f"{self._table}: {path_of(version)}: {error}") from error

    def _has(self, version: int) -> bool:
        return self._store.has(path_of(version))

    def _hinted(self) -> int:
        """Return where to start to look; whatever the hint says is checked."""
        with suppress(CorruptLogError, OSError):
            hint = self._store.read(HINT) or b""
            # a version that a path can hold: whatever else is there is damage, and only a hint
            return int(hint) if _VERSION.fullmatch(hint) else 0
        return 0

    def _hint(self, version: int) -> None:
        # every so many versions will do: from there on each is looked for
        if version % 64 == 0:
            with suppress(Exception):
                self._store.write(HINT, str(version).encode())
