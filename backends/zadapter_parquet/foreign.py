"""What other programs did to a table's files behind its log."""

import pyarrow as pa

from zadapter.errors import ForeignChangeError
from zadapter.locations import map_files
from zadapter_parquet import folders, stats
from zadapter_parquet.entries import Entry, Operation
from zadapter_parquet.paths import HIDDEN
from zadapter_parquet.stores import Files

_RESTORE = "bring them back, or go back to a version without them with zadapter.restore()"


def check_visible(files: Files, table: str, original: Entry, head: Entry) -> None:
    """Refuse a folder whose visible files are not those that it became a table with.

    All that commits add is hidden.

    Args:
        files: The table's files.
        table: The table as the caller named it.
        original: Version 0.
        head: The current version.

    Raises:
        ForeignChangeError: Files came, changed, or are live and gone.
    """
    # a table that was migrated has begun with hidden files alone
    parts = () if original.operation is Operation.MIGRATE else original.parts
    first = _sizes(stats.load(files, parts, {}, {}))
    known = {path: size for path, size in first.items() if not path.startswith(f"{HIDDEN}/")}
    found = {file.path: file.size for file in folders.visible(files.listed())}
    if added := sorted(found.keys() - known):
        advice = "move them out, and append their rows with zadapter.append()"
        raise ForeignChangeError(table, "came", added, advice)
    if edited := sorted(path for path, size in found.items() if size != known[path]):
        raise ForeignChangeError(table, "changed", edited, _RESTORE)
    live = _sizes(stats.load(files, head.parts, {}, {}))
    if gone := sorted((live.keys() & known.keys()) - found.keys()):
        raise ForeignChangeError(table, "went", gone, _RESTORE)


def _sizes(files: pa.Table) -> dict[str, int]:
    return dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))


def check_live(files: Files, table: str, live: pa.Table) -> None:
    """Refuse files that are gone or have another size.

    Args:
        files: The table's files.
        table: The table as the caller named it.
        live: File table of those that are about to be read.

    Raises:
        ForeignChangeError: There are some.
    """
    paths, sizes = live["path"].to_pylist(), live["size"].to_pylist()
    found = map_files(files.size, paths, files.uri)
    told = list(zip(paths, sizes, found, strict=True))
    if gone := [path for path, _, now in told if now is None]:
        raise ForeignChangeError(table, "went", gone, _RESTORE)
    if edited := [path for path, size, now in told if now != size]:
        raise ForeignChangeError(table, "changed", edited, _RESTORE)
