"""Files that get other names: which ones, and where they lie meanwhile."""

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
    """Files that get other names, and files that go."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The old name by the new one."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes by the new name."""
    goes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes of the visible files that the newest version does not need."""

    @property
    def visible(self) -> set[str]:
        """Visible files that come or go."""
        return {*self.goes, *(new for new in self.names if not new.startswith(f"{HIDDEN}/"))}


def write(files: Files, moves: Moves) -> Part:
    """Write *moves* where whoever finishes them finds them."""
    columns = {
        "path": pa.array([*moves.names, *moves.goes], pa.string()),
        "from": pa.array([*moves.names.values(), *[None for _ in moves.goes]], pa.string()),
        "size": pa.array([*map(moves.sizes.get, moves.names), *moves.goes.values()], pa.int64()),
    }
    return stats_table.write(files, pa.table(columns))


def pending(files: Files, head: Entry) -> Moves:
    """Return the moves that are not known to be done.

    Raises:
        CorruptLogError: Their list is missing or damaged.
    """
    if head.moves is None:
        return Moves()
    rows = stats_table.read(files, head.moves, ["path", "from", "size"]).to_pylist()
    come = [row for row in rows if row["from"] is not None]
    return Moves(
        names={row["path"]: checked(row["from"]) for row in come},
        sizes={row["path"]: row["size"] for row in come},
        goes={row["path"]: row["size"] for row in rows if row["from"] is None},
    )


def places(files: Files, head: Entry, paths: Sequence[str]) -> list[str]:
    """Return where files lie.

    Args:
        files: The table's files.
        head: The current version.
        paths: What the log calls the files, in any version.
    """
    if head.format < FORMAT:
        return [former(path) for path in paths]
    old = pending(files, head).names
    moving = [path for path in paths if path in old]
    there = dict(zip(moving, map_files(files.has, moving, files.uri), strict=True))
    return [path if there.get(path, True) else old[path] for path in paths]


def has(files: Files, moving: Moves, path: str) -> bool:
    """Tell whether a file is at one of its places, with a look at the old one first."""
    old = moving.names.get(path)
    return (old is not None and files.has(old)) or files.has(path)
