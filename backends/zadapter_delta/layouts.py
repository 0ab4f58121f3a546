"""Layouts kept beside a Delta table, in ``_zadapter/layouts/<id>.json``.

Delta's VACUUM leaves folders alone whose name starts with an underscore, and a layout is too large
for a table property; a change of properties would also conflict with every other writer.
"""

import json
import re
from collections.abc import Iterator, Mapping

from zadapter.layout import Layout
from zadapter_delta.jvm import JavaObject, Jvm

FOLDER = "_zadapter/layouts"

_ID = re.compile(r"[0-9a-f]{32}\Z")


class Layouts(Mapping[str, Layout]):
    """The layouts of one table by id, each read when it is first asked for."""

    def __init__(self, jvm: Jvm, log: JavaObject) -> None:
        self._jvm = jvm
        self._conf = log.newDeltaHadoopConf()
        self._folder = f"{log.dataPath()}/{FOLDER}"
        self._files = log.dataPath().getFileSystem(self._conf)
        self._read: dict[str, Layout | None] = {}

    def _path(self, layout_id: str) -> JavaObject:
        return self._jvm.path(f"{self._folder}/{layout_id}.json")

    def __getitem__(self, layout_id: str) -> Layout:
        if layout_id not in self._read:
            self._read[layout_id] = self._look_up(layout_id)
        found = self._read[layout_id]
        if found is None:
            raise KeyError(layout_id)
        return found

    def _look_up(self, layout_id: str) -> Layout | None:
        # the id comes from the log, and must not lead out of the folder
        if not _ID.match(layout_id) or not self._files.exists(self._path(layout_id)):
            return None
        stream = self._files.open(self._path(layout_id))
        try:
            return Layout.from_json(bytes(stream.readAllBytes()).decode())
        except (UnicodeDecodeError, json.JSONDecodeError):
            return None  # torn by a crash, so as good as absent
        finally:
            stream.close()

    def __iter__(self) -> Iterator[str]:
        folder = self._jvm.path(self._folder)
        if self._files.exists(folder):
            for status in self._files.listStatus(folder):
                yield status.getPath().getName().removesuffix(".json")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def keep(self, layout: Layout) -> None:
        """Write *layout*, unless it is there already: equal ids mean equal trees."""
        if layout.id in self:
            return
        stream = self._files.create(self._path(layout.id), True)  # noqa: FBT003
        try:
            stream.write(bytearray(layout.to_json().encode()))
        finally:
            stream.close()
        self._read[layout.id] = layout
