"""Log of a table: consecutive versions, each an entry that is created once and never changed."""

import re
from collections.abc import Iterator
from contextlib import suppress

from zadapter.base.interrupts import ignoring_errors
from zadapter.errors import (
    ConflictError,
    CorruptLogError,
    StoreError,
    UnknownOutcomeError,
    UnknownTableError,
)
from zadapter_parquet.format.entries import Entry, LogOperation, decode, digest, encode
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.store.contract import Outcome, Store

FOLDER = f"{HIDDEN}/log"
HINT = f"{FOLDER}/_head"
_REQUESTS = 5
_VERSION = re.compile(rb"[0-9]{1,18}")


def path_of(version: int) -> str:
    """Return the path of the entry of *version*."""
    return f"{FOLDER}/{version:020d}.json"


class Log:
    """Reader and writer of a table's log.

    The first writer to create a version wins. Once an entry is readable, all other attempts at that
    version have failed; while it is absent, the same bytes may be sent again. So an entry is
    committed at most once, without locks or clocks.
    """

    def __init__(self, store: Store, table: str) -> None:
        self._store = store
        self._table = table

    def exists(self) -> bool:
        """Return whether the log exists.

        Raises:
            CorruptLogError: Its first entry is missing.
        """
        if self._store.has(path_of(0)):
            return True
        if self._store.has_after(path_of(0)):
            raise CorruptLogError(f"{self._table}: log entry 0 is missing; restore it")
        return False

    def head(self) -> Entry:
        """Return the entry of the newest version.

        Raises:
            UnknownTableError: There is no log, or the table was dropped.
            CorruptLogError: The entry is damaged, or does not follow the previous one.
        """
        newest = self.newest()
        if newest is None:
            raise UnknownTableError(
                f"{self._table} has no log of zadapter; the first write creates it, for example "
                "zadapter.optimize()"
            )
        if newest.operation is LogOperation.DROP:
            raise UnknownTableError(
                f"{self._table} was dropped, since its migration could not be verified; migrate "
                f"again, or delete {HIDDEN}/ if no writer is active"
            )
        return newest

    def newest(self) -> Entry | None:
        """Return the last entry, even of a dropped table, or None if there is no log.

        Raises:
            CorruptLogError: The entry is damaged, or does not follow the previous one.
        """
        low = self._read_hint()
        if not self._has(low):
            if not self.exists():
                return None
            low = 0
        low = self._last(low)
        while self._store.has_after(path_of(low)):
            # another writer has just added a version, or one in between is missing
            if not self._has(low + 1):
                raise CorruptLogError(f"{self._table}: log entry {low + 1} is missing; restore it")
            low = self._last(low + 1)
        return self.entry(low)

    def _last(self, low: int) -> int:
        """Return the last version, searching from the existing version *low*."""
        step = 1
        while self._has(low + step):
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._has(middle) else (low, middle)
        return low

    def entry(self, version: int) -> Entry:
        """Return the entry of a version.

        Raises:
            UnknownTableError: There is no such version.
            CorruptLogError: The entry is damaged, or does not follow the previous one.
        """
        data = self._store.read(path_of(version)) if version >= 0 else None
        if data is None:
            raise UnknownTableError(
                f"{self._table}: version {version} not found; zadapter.history() lists all versions"
            )
        entry = self._decode(data, version)
        previous = self._store.read(path_of(version - 1)) if version else b""
        if version and (previous is None or digest(previous) != entry.previous):
            raise CorruptLogError(
                f"{self._table}: log entry {version} does not follow entry {version - 1}; restore "
                "the log"
            )
        return entry

    def has(self, entry: Entry) -> bool:
        """Return whether the log still contains an equal entry.

        Raises:
            UnknownTableError: The log was removed.
        """
        data = self._store.read(path_of(entry.version))
        if data is None and not self.exists():
            raise UnknownTableError(
                f"{self._table} was removed by another program; nothing was committed"
            )
        return data is not None and decode(data, entry.version) == entry

    def entries_between(self, after: int, until: int) -> Iterator[Entry]:
        """Yield the entries after version *after*, up to and including *until*.

        Raises:
            CorruptLogError: An entry is missing or damaged.
        """
        return map(self._require_entry, range(after + 1, until + 1))

    def _require_entry(self, version: int) -> Entry:
        try:
            return self.entry(version)
        except UnknownTableError as error:
            raise CorruptLogError(
                f"{self._table}: log entry {path_of(version)} is missing; restore it from a backup"
            ) from error

    def hash_of(self, version: int) -> str:
        """Return the hash of the entry of *version*, empty for a negative version.

        Raises:
            UnknownTableError: The entry is missing: the table was removed since it was read.
        """
        if version < 0:
            return ""
        data = self._store.read(path_of(version))
        if data is None:
            raise UnknownTableError(
                f"{self._table} was removed by another program; nothing was committed"
            )
        return digest(data)

    def claim(self, entry: Entry) -> None:
        """Commit *entry*.

        Raises:
            ConflictError: Another writer created the version.
            StoreError: The store refused the entry; nothing was committed.
            UnknownOutcomeError: The commit may or may not have succeeded.
        """
        data, path = encode(entry), path_of(entry.version)
        try:
            refusal: StoreError | None = None
            outcome = self._store.create(path, data)
        except StoreError as error:
            # the client may have retried, and an earlier request may have succeeded
            refusal, outcome = error, Outcome.UNKNOWN
        try:
            self._settle(entry, data, outcome, refusal)
        except (ConflictError, UnknownOutcomeError):
            raise
        except Exception as error:
            if error is refusal:
                raise
            # a request was sent, so this error does not prove a failure
            raise UnknownOutcomeError(self._table, entry.transaction) from error

    def try_claim(self, entry: Entry) -> bool:
        """Commit *entry*, and return False if another writer created the version.

        Raises:
            StoreError: The store refused the entry; nothing was committed.
            UnknownOutcomeError: The commit may or may not have succeeded.
        """
        try:
            self.claim(entry)
        except ConflictError:
            return False
        return True

    def _settle(
        self, entry: Entry, data: bytes, outcome: Outcome, refusal: StoreError | None
    ) -> None:
        """Determine who created the version, after a request with *outcome* or *refusal*."""
        path = path_of(entry.version)
        for _ in range(_REQUESTS):
            if outcome is Outcome.CREATED:
                return self._hint(entry.version)
            stored = self._store.read(path)
            if stored is not None:
                # an earlier attempt may have succeeded after its request failed
                if self._decode(stored, entry.version).transaction == entry.transaction:
                    return None
                raise ConflictError(
                    f"{self._table} was changed by another writer: version {entry.version} exists; "
                    "nothing was committed"
                )
            if refusal is not None:
                raise refusal
            # the version is still free, so the same bytes may be sent again
            outcome = self._store.create(path, data)
        raise UnknownOutcomeError(self._table, entry.transaction)

    def _decode(self, data: bytes, version: int) -> Entry:
        try:
            return decode(data, version)
        except CorruptLogError as error:
            raise CorruptLogError(f"{self._table}: {path_of(version)}: {error}") from error

    def _has(self, version: int) -> bool:
        return self._store.has(path_of(version))

    def _read_hint(self) -> int:
        """Return the version to start searching at; callers check that it exists."""
        with suppress(CorruptLogError, OSError):
            hint = self._store.read(HINT) or b""
            # ignore anything but a version number: a damaged hint does no harm
            return int(hint) if _VERSION.fullmatch(hint) else 0
        return 0

    def _hint(self, version: int) -> None:
        # a hint every 64 versions suffices: later ones are searched for
        if version % 64 == 0:
            with ignoring_errors():
                self._store.write(HINT, str(version).encode())
