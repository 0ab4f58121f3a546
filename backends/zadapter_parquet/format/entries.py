"""Log entries, one per version.

An entry describes its version completely, so no other entry has to be read. It contains the hash of
the previous entry, which makes the log a chain. Its last line is the hash of the preceding bytes,
which detects a torn entry.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from zadapter.errors import CorruptLogError, UnsupportedError
from zadapter.table.snapshot import Source
from zadapter_parquet.format.paths import check_path, successor

FORMAT = 2
"""Current format version. Entries of a newer one raise an error."""
_FORMATS = (1, FORMAT)
"""Readable format versions. In version 1, engines that walk the folder read hidden data files."""
UNREGISTERED = -1
"""Version in the entry of a folder that is not registered, or of a pending table."""
_NOT_JSON = (ValueError, LookupError, TypeError, RecursionError)
"""Errors from reading JSON that zadapter has not written."""
LARGEST = 64 << 20
"""Bytes; zadapter writes no larger entry."""
_COUNT_LIMIT = 1 << 63
"""Exclusive upper limit of counts."""


class LogOperation(str, Enum):
    """Operation that created a version."""

    REGISTER = "register"
    APPEND = "append"
    DELETE = "delete"
    OVERWRITE = "overwrite"
    OPTIMIZE = "optimize"
    RESTORE = "restore"
    VACUUM = "vacuum"
    ABORT = "abort"
    MIGRATE = "migrate"
    MOVE = "move"
    PUBLISH = "publish"
    DROP = "drop"


@dataclass(frozen=True, kw_only=True)
class StatsPart:
    """Part of the stats table: an immutable Parquet file."""

    path: str
    files: int
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Log entry: one version of a table."""

    version: int
    previous: str
    """SHA-256 of the previous entry, in hexadecimal; empty for version 0."""
    transaction: str
    """Id of the commit, unique among entries."""
    operation: LogOperation
    read_version: int
    """Version that the commit is based on."""
    timestamp: int
    """Milliseconds since 1970, UTC; higher than that of the previous version."""
    table: str
    """Id of the table: a digest of the registered files, or random for a migrated table."""
    schema: str
    """All columns as Spark's schema JSON."""
    partition: tuple[str, ...]
    parts: tuple[StatsPart, ...]
    """Parts of the stats table; each live file is in one of them."""
    files: int
    size: int
    """Bytes of all live files."""
    rows: int
    oldest: int
    """Oldest readable version: files that only earlier versions need may be deleted."""
    folder: str | None = None
    """Folder of the data files that this commit added; for an abort, that of the aborted commit."""
    summary: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Counts of added and removed files and rows."""
    source: Source | None = None
    """Migrated table and its last loaded version."""
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Properties and comment of the migrated table."""
    moves: StatsPart | None = None
    """List of files that are being moved (``moving``); None: all files are in place."""
    visible: int = 0
    """Version whose visible files are the only ones that the folder may hold."""
    int96: bool = False
    """Whether the files store timestamps as INT96, Spark's default."""
    format: int = FORMAT
    """Format version of the stored entry; new entries have the current one."""


def encode(entry: Entry) -> bytes:
    """Return the bytes of *entry*; the encoding is deterministic."""
    values = {attribute.name: getattr(entry, attribute.name) for attribute in fields(entry)}
    values["parts"] = [asdict(part) for part in entry.parts]
    values["summary"] = dict(entry.summary)
    values["properties"] = dict(entry.properties)
    values["source"] = None if entry.source is None else entry.source.to_dict()
    values["moves"] = None if entry.moves is None else asdict(entry.moves)
    body = json.dumps({**values, "format": FORMAT}, sort_keys=True, separators=(",", ":"))
    return f'{body}\n{{"end":"{digest(body.encode())}"}}\n'.encode()


def digest(data: bytes) -> str:
    """Return the SHA-256 of *data* in hexadecimal."""
    return sha256(data).hexdigest()


def decode(data: bytes, version: int) -> Entry:
    """Decode the entry of *version*.

    Raises:
        CorruptLogError: The entry is torn, was changed, or belongs to another version.
        UnsupportedError: A newer zadapter has written it.
    """
    body, _, end = data.rstrip(b"\n").rpartition(b"\n")
    try:
        complete = json.loads(end)["end"] == digest(body)
        values = json.loads(body) if complete else {}
    except _NOT_JSON:
        complete = False
    if not complete or not isinstance(values, dict):
        raise CorruptLogError(f"log entry {version} is incomplete or was modified; restore it")
    if values.get("format") not in _FORMATS:
        raise UnsupportedError(f"a newer zadapter wrote log entry {version}; upgrade zadapter")
    try:
        entry = _entry(values)
    except (*_NOT_JSON, AttributeError) as error:
        raise CorruptLogError(f"log entry {version} is invalid: {error}; restore it") from error
    if entry.version != version:
        raise CorruptLogError(f"log entry {version} has version {entry.version}; restore it")
    return entry


def _entry(values: dict[str, Any]) -> Entry:
    parts = tuple(map(_part, values["parts"]))
    if values["folder"] is not None:
        check_path(values["folder"])
    values = {"moves": None, "visible": 0} | values
    _check_counts(values, ("version", "timestamp", "files", "size", "rows", "oldest", "visible"))
    texts = {name: values[name] for name in ("previous", "transaction", "table", "schema")}
    _check_texts(texts | {f"partition column {at}": p for at, p in enumerate(values["partition"])})
    return Entry(
        **values
        | {
            "operation": LogOperation(values["operation"]),
            "partition": tuple(values["partition"]),
            "parts": parts,
            "summary": MappingProxyType(values["summary"]),
            "properties": MappingProxyType(values.get("properties", {})),
            "source": Source.from_dict(values["source"]) if values.get("source") else None,
            "moves": None if values["moves"] is None else _part(values["moves"]),
        }
    )


def _part(values: dict[str, Any]) -> StatsPart:
    part = StatsPart(**values)
    _check_counts(values, ("files", "size"))
    return replace(part, path=successor(check_path(part.path)))


def _check_counts(values: Mapping[str, Any], names: Iterable[str]) -> None:
    """Check counts: JSON numbers may be negative, fractional, NaN or of any size.

    Raises:
        ValueError: A value is no integer from 0 to below 2**63.
    """
    for name in names:
        count = values[name]
        if type(count) is not int or not 0 <= count < _COUNT_LIMIT:
            raise ValueError(f"{name} is {str(count)[:40]!r}, not a count")


def _check_texts(values: Mapping[str, Any]) -> None:
    """Check strings.

    Raises:
        TypeError: A value is no string.
    """
    for name, text in values.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} is {str(text)[:40]!r}, not a string")
