"""Entries of a table's log: what each version is.

An entry says all of its version, so that no other entry needs to be read to use it; the hash of the
one before makes a chain of them.  Its last line is the hash of what stands before, which a torn
entry lacks.
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
from zadapter_parquet.format.legacy_names import successor
from zadapter_parquet.format.paths import checked

FORMAT = 2
"""Version of this format. A table of a higher one is refused."""
_FORMATS = (1, FORMAT)
"""In the first one, hidden files have names that engines which walk the folder take for rows."""
_NOT_JSON = (ValueError, LookupError, TypeError, RecursionError)
"""What reading JSON raises that zadapter has not written."""
LARGEST = 64 << 20
"""Bytes; an entry that is larger was not written by zadapter."""
_MOST = 1 << 63
"""No count is as high."""


class Operation(str, Enum):
    """What made a version."""

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
class Part:
    """A piece of the stats table: a Parquet file, never changed."""

    path: str
    files: int
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One version of a table."""

    version: int
    previous: str
    """SHA-256 of the entry before, in hexadecimal; empty for version 0."""
    transaction: str
    """Id of the commit. No two entries have the same."""
    operation: Operation
    read_version: int
    """The version that the commit was planned on."""
    timestamp: int
    """Milliseconds since 1970, UTC; higher than that of the version before."""
    table: str
    """Id of the table, made of the files that it was registered with."""
    schema: str
    """Spark's JSON of all columns."""
    partition: tuple[str, ...]
    parts: tuple[Part, ...]
    """The stats table: each live file is in one of them."""
    files: int
    size: int
    """Bytes of all files."""
    rows: int
    oldest: int
    """The oldest version that can still be read: what later ones do not need may be gone."""
    folder: str | None = None
    """Folder of the data files that this commit added; for an abort, whose commit it rules out."""
    summary: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Files and rows that were added and removed."""
    source: Source | None = None
    """What the table was migrated from, and up to which version."""
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What a table of another format said of itself, and no file can say."""
    moves: Part | None = None
    """Files that lie at their old or their new place (``moving``); None: all are at their place."""
    visible: int = 0
    """The version whose visible files are those that the folder may hold."""
    int96: bool = False
    """Whether moments are INT96, as in the files that Spark wrote before."""
    format: int = FORMAT
    """Of the entry as it lies in the log; new ones have the newest."""


def encode(entry: Entry) -> bytes:
    """Return the bytes of *entry*, the same whenever and wherever it is encoded."""
    said = {each.name: getattr(entry, each.name) for each in fields(entry)}
    said["parts"] = [asdict(part) for part in entry.parts]
    said["summary"] = dict(entry.summary)
    said["properties"] = dict(entry.properties)
    said["source"] = None if entry.source is None else asdict(entry.source)
    said["moves"] = None if entry.moves is None else asdict(entry.moves)
    body = json.dumps({**said, "format": FORMAT}, sort_keys=True, separators=(",", ":"))
    return f'{body}\n{{"end":"{digest(body.encode())}"}}\n'.encode()


def digest(data: bytes) -> str:
    """Return SHA-256 in hexadecimal."""
    return sha256(data).hexdigest()


def decode(data: bytes, version: int) -> Entry:
    """Return the entry of *version*.

    Raises:
        CorruptLogError: The bytes are no such entry: torn, changed, or in the wrong place.
        UnsupportedError: A newer zadapter has written it.
    """
    body, _, end = data.rstrip(b"\n").rpartition(b"\n")
    try:
        whole = json.loads(end)["end"] == digest(body)
        said = json.loads(body) if whole else {}
    except _NOT_JSON:
        whole = False
    if not whole or not isinstance(said, dict):
        raise CorruptLogError(f"entry {version} of the log is torn or was changed")
    if said.get("format") not in _FORMATS:
        raise UnsupportedError(f"entry {version} of the log was written by a newer zadapter")
    try:
        entry = _entry(said)
    except (*_NOT_JSON, AttributeError) as error:
        raise CorruptLogError(f"entry {version} of the log makes no sense: {error}") from error
    if entry.version != version:
        raise CorruptLogError(f"entry {version} of the log says that it is {entry.version}")
    return entry


def _entry(said: dict[str, Any]) -> Entry:
    parts = tuple(map(_part, said["parts"]))
    if said["folder"] is not None:
        checked(said["folder"])
    said = {"moves": None, "visible": 0} | said
    _check_counts(said, ("version", "timestamp", "files", "size", "rows", "oldest", "visible"))
    texts = {name: said[name] for name in ("previous", "transaction", "table", "schema")}
    _check_texts(texts | {f"partition column {at}": p for at, p in enumerate(said["partition"])})
    return Entry(
        **said
        | {
            "operation": Operation(said["operation"]),
            "partition": tuple(said["partition"]),
            "parts": parts,
            "summary": MappingProxyType(said["summary"]),
            "properties": MappingProxyType(said.get("properties", {})),
            "source": Source(**said["source"]) if said.get("source") else None,
            "moves": None if said["moves"] is None else _part(said["moves"]),
        }
    )


def _part(said: dict[str, Any]) -> Part:
    part = Part(**said)
    _check_counts(said, ("files", "size"))
    return replace(part, path=successor(checked(part.path)))


def _check_counts(said: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse what is no count; JSON's own numbers may be negative, fractions, NaN or of any size.

    Raises:
        ValueError: It is none.
    """
    for name in names:
        count = said[name]
        if type(count) is not int or not 0 <= count < _MOST:
            raise ValueError(f"{name} is {str(count)[:40]!r}, not a count")


def _check_texts(said: Mapping[str, Any]) -> None:
    """Refuse what is no text.

    Raises:
        TypeError: It is none.
    """
    for name, text in said.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} is {str(text)[:40]!r}, not a text")
