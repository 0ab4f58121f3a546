"""Lists of files that are being moved, and lookup of their current paths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from zadapter.base.locations import map_files
from zadapter_parquet.format.entries import FORMAT, Entry, Part
from zadapter_parquet.format.legacy_names import former
from zadapter_parquet.format.paths import HIDDEN, checked
from zadapter_parquet.log import stats_table
from zadapter_parquet.store.contract import Files


@dataclass(frozen=True, kw_only=True)
class Moves:
    """Files to rename, and files to delete."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Old path by new path."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes by new path."""
    deletes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Visible files that the newest version does not need: bytes by path."""

    @property
    def visible(self) -> set[str]:
        """Visible paths that are created or deleted."""
        return {*self.deletes, *(new for new in self.names if not new.startswith(f"{HIDDEN}/"))}


def write(files: Files, moves: Moves) -> Part:
    """Write *moves* as a part, which the log entry names."""
    columns = {
        "path": pa.array([*moves.names, *moves.deletes], pa.string()),
        "from": pa.array([*moves.names.values(), *[None for _ in moves.deletes]], pa.string()),
        "size": pa.array([*map(moves.sizes.get, moves.names), *moves.deletes.values()], pa.int64()),
    }
    return stats_table.write(files, pa.table(columns))


def pending(files: Files, head: Entry) -> Moves:
    """Return the moves that *head* lists as unfinished.

    Raises:
        CorruptLogError: The list is missing or damaged.
    """
    if head.moves is None:
        return Moves()
    rows = stats_table.read(files, head.moves, ["path", "from", "size"]).to_pylist()
    renames = [row for row in rows if row["from"] is not None]
    return Moves(
        names={row["path"]: checked(row["from"]) for row in renames},
        sizes={row["path"]: row["size"] for row in renames},
        deletes={row["path"]: row["size"] for row in rows if row["from"] is None},
    )


def places(files: Files, head: Entry, paths: Sequence[str]) -> list[str]:
    """Return the current path of each file.

    Args:
        files: The table's files.
        head: Entry of the current version.
        paths: Paths in the log, of any version.
    """
    if head.format < FORMAT:
        return [former(path) for path in paths]
    old = pending(files, head).names
    moving = [path for path in paths if path in old]
    moved = dict(zip(moving, map_files(files.has, moving, files.uri), strict=True))
    return [path if moved.get(path, True) else old[path] for path in paths]


def has(files: Files, moving: Moves, path: str) -> bool:
    """Return whether a file exists at its old or new path, checked in this order."""
    old = moving.names.get(path)
    return (old is not None and files.has(old)) or files.has(path)
