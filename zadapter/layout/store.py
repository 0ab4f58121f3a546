"""Layouts stored beside a table, in ``_zadapter/layouts/<id>.json``.

Layouts are too large for table properties. The formats' own clean-ups ignore folders whose name
starts with an underscore. The request of every layout is stored under its own id, as a layout
without cuts. The cuts of layouts that will not last, such as the layout of one append, are not
stored: so a table that is optimized every night has few of them.

The request of the last rewrite is also stored under the id ``last``: a table whose rows were all
overwritten has no file that names a layout. With it is stored whether the rewrite was meant for the
whole table. Such a rewrite may take several calls, which the next one continues.
"""

import re
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from zadapter.layout.cold import request_of_table
from zadapter.layout.layout import Layout

FOLDER = "_zadapter/layouts"
LARGEST = 32 << 20
"""Maximum bytes of a stored layout. Stores read at most twice as many bytes of a file."""

LAST = "last"
"""Id of the request of the last rewrite."""

_ID = re.compile(rf"(([0-9a-f]{{16}}){{1,2}}|{LAST})\Z")


class Store(Protocol):
    """Small files beside a table, addressed relative to its root folder."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file, or replace it."""


class Layouts:
    """The stored layouts of one table, each read on first use."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, Layout | None] = {}

    def get(self, layout_id: str) -> Layout | None:
        """Return the layout with an id, or None if it is not stored."""
        if layout_id not in self._read:
            self._read[layout_id] = self._look_up(layout_id)
        return self._read[layout_id]

    def _look_up(self, layout_id: str) -> Layout | None:
        # the id comes from the table, and must not escape the folder
        data = self._store.read(_path(layout_id)) if _ID.match(layout_id) else None
        try:
            return None if data is None else Layout.from_json(data.decode())
        except (ValueError, LookupError, TypeError, AttributeError, pa.ArrowException):
            return None  # incomplete or of another version: treated as missing

    def keep(self, layout: Layout) -> None:
        """Write the request of *layout*, and its cuts if they last, unless they are stored already.

        A layout with long texts may be too large. It is not stored, and fitted again when needed.
        """
        self._keep(layout.request.id, Layout.uncut(layout.request))
        last = Layout.uncut(request_of_table(layout.request))
        self._keep_last(replace(last, of_part=layout.of_part))
        if layout.lasting:
            self._keep(layout.id, layout)

    def _keep_last(self, request: Layout) -> None:
        """Write a request as the last one.

        That of the table stays if a part is rewritten by the same keys, also into other sizes.
        """
        last = self.get(LAST)
        if last is None or last.of_part or not request.of_part:
            stays = last == request and last.of_part == request.of_part
        else:
            stays = last.request.has_keys_of(request.request)
        if not stays:
            self._write(LAST, request)

    def _keep(self, layout_id: str, layout: Layout) -> None:
        if self.get(layout_id) != layout:  # equal ids mean equal trees
            self._write(layout_id, layout)

    def _write(self, layout_id: str, layout: Layout) -> None:
        data = layout.to_json().encode()
        if len(data) <= LARGEST:
            self._store.write(_path(layout_id), data)
            self._read[layout_id] = layout


def _path(layout_id: str) -> str:
    return f"{FOLDER}/{layout_id}.json"
