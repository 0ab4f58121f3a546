"""Avro files with the header of another one, from records of a fixed length.

Iceberg writes the header and one record of a kind; so nothing here knows its schemas.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Bytes = np.ndarray

_SYNC = 16
_A_BLOCK = 160
"""Records of a block."""


@dataclass(frozen=True)
class Header:
    """The header of an Avro file: its bytes, with the mark between blocks, and its schema."""

    data: bytes
    schema: Any

    @classmethod
    def of(cls, path: Path) -> "Header":
        """Read the header of a file."""
        data = path.read_bytes()
        at, values = 4, dict[str, bytes]()
        while True:
            count, at = _long(data, at)
            if count == 0:
                break
            if count < 0:
                count = -count
                _, at = _long(data, at)
            for _ in range(count):
                key, at = _bytes(data, at)
                values[key.decode()], at = _bytes(data, at)
        if values.get("avro.codec", b"null") != b"deflate":
            raise ValueError(f"{path} is not compressed with deflate")
        return cls(data[: at + _SYNC], json.loads(values["avro.schema"]))

    def write(self, path: Path, blocks: Iterable[tuple[int, bytes]]) -> int:
        """Write blocks of so many records each, and return the bytes of the file."""
        with path.open("wb") as file:
            file.write(self.data)
            for count, records in blocks:
                packer = zlib.compressobj(1, zlib.DEFLATED, -15)
                packed = packer.compress(records) + packer.flush()
                file.write(varint(count) + varint(len(packed)) + packed + self.data[-_SYNC:])
            return file.tell()


def blocks(records: Bytes) -> Iterable[tuple[int, bytes]]:
    """Yield blocks of *records*, an array of bytes with a row for each."""
    for start in range(0, len(records), _A_BLOCK):
        some = records[start : start + _A_BLOCK]
        yield len(some), some.tobytes()


def _long(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _long(data, at)
    return data[at : at + length], at + length


def varint(number: int) -> bytes:
    """Return a number in Avro's encoding."""
    value, found = (number << 1) ^ (number >> 63), bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def varints(numbers: np.ndarray, width: int) -> Bytes:
    """Return numbers that all take *width* bytes in that encoding, a row each."""
    value = numbers.astype(np.uint64) << np.uint64(1)
    columns = [(value >> np.uint64(7 * at)) & np.uint64(0x7F) for at in range(width)]
    more = np.array([0x80] * (width - 1) + [0], np.uint8)
    return np.stack(columns, 1).astype(np.uint8) | more


def encoded(schema: Any, value: Any) -> bytes:
    """Return *value* as Avro; what a mapping lacks is null."""
    if isinstance(schema, list):
        null = schema.index("null")
        return (
            varint(null) if value is None else varint(1 - null) + encoded(schema[1 - null], value)
        )
    kind = schema["type"] if isinstance(schema, Mapping) else schema
    if isinstance(kind, Mapping | list):
        return encoded(kind, value)
    if kind == "record":
        return b"".join(encoded(f["type"], value.get(f["name"])) for f in schema["fields"])
    if kind == "array":
        items = b"".join(encoded(schema["items"], item) for item in value)
        return (varint(len(value)) + items if value else b"") + b"\0"
    return _WRITERS[kind](value)


def _text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(len(raw)) + raw


_WRITERS: Mapping[str, Callable[[Any], bytes]] = {
    "int": varint,
    "long": varint,
    "boolean": lambda value: bytes([value]),
    "string": _text,
    "bytes": _text,
}
