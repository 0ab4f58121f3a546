"""Files of a write that no log references yet."""

import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

SHORT = 16
"""Characters of a write's id that are unique, too, for names of files."""
_ID = re.compile(r"[0-9a-f]{32}\Z")
_LAYOUT = re.compile(r"([0-9a-f]{16}){1,2}\Z")


def new_id() -> str:
    """Return the id of a new write, or of a new run."""
    return uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedWrite:
    """A write of files that are invisible to readers; its id names them."""

    id: str
    layout: str | None
    """Id of the layout that placed the rows; None for no layout."""

    @classmethod
    def from_dict(cls, stored: Any) -> "StagedWrite":
        """Return a stored write.

        Raises:
            ValueError: The ids are not such as a write has, and could name other files.
        """
        write = cls(id=stored["id"], layout=stored["layout"])
        if not is_id(write.id) or not (write.layout is None or _LAYOUT.match(write.layout)):
            raise ValueError("not the id of a write")
        return write


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A file of a write, as the store lists it."""

    location: str
    size: int
    modified: int
    """Milliseconds since 1970, by the store's clock."""


def is_id(text: object) -> bool:
    """Return whether a text is the id of a write or of a run."""
    return isinstance(text, str) and _ID.match(text) is not None
