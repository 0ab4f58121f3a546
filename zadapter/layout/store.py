"""Layouts kept beside a table, in ``_zadapter/layouts/<id>.json``.

They are too large for a table property. The formats' own clean-ups leave folders alone whose name
starts with an underscore.
"""

import re
from typing import Protocol

import pyarrow as pa

from zadapter.layout.layout import Layout

FOLDER = "_zadapter/layouts"
LARGEST = 32 << 20
"""Bytes; stores read no more of a file than twice as many."""

_ID = re.compile(r"[0-9a-f]{32}\Z")


class Store(Protocol):
    """Small files beside a table, named relative to its root folder."""

    def read(self, path: str) -> bytes | None:
        """Return what a file holds, None where there is none."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file, or write it anew."""


class Layouts:
    """The layouts of one table, each read when it is first asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, Layout | None] = {}

    def get(self, layout_id: str) -> Layout | None:
        """Return a layout by its id, None where it is not kept, or no longer."""
        if layout_id not in self._read:
            self._read[layout_id] = self._look_up(layout_id)
        return self._read[layout_id]

    def _look_up(self, layout_id: str) -> Layout | None:
        # the id comes from the table, and must not lead out of the folder
        data = self._store.read(_path(layout_id)) if _ID.match(layout_id) else None
        try:
            return None if data is None else Layout.from_json(data.decode())
        except (ValueError, LookupError, TypeError, AttributeError, pa.ArrowException):
            return None  # torn or of another version, so as good as absent

    def keep(self, layout: Layout) -> None:
        """Write *layout*, unless it is there already: equal ids mean equal trees.

        One that is too large, as it may be by long texts, is fitted anew whenever it is wanted.
        """
        if self.get(layout.id) is not None:
            return
        data = layout.to_json().encode()
        if len(data) <= LARGEST:
            self._store.write(_path(layout.id), data)
            self._read[layout.id] = layout


def _path(layout_id: str) -> str:
    return f"{FOLDER}/{layout_id}.json"
