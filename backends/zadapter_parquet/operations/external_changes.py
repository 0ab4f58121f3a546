"""What other programs did to a table's files behind its log."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from zadapter.base.locations import map_files
from zadapter.errors import ConflictError, ForeignChangeError, VersionExpiredError
from zadapter_parquet.format.entries import Entry, Operation
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.log import stats_table
from zadapter_parquet.log.log import TRIES, Log, path_of
from zadapter_parquet.operations.move_plan import has, pending, places
from zadapter_parquet.store import hive_names
from zadapter_parquet.store.contract import Files, Found
from zadapter_parquet.store.guard_files import stands_for

RESTORE = "bring them back, or go back to a version without them with zadapter.restore()"


def looked_at(log: Log, files: Files, table: str) -> Entry:
    """Return the current version, after a look at the folder.

    Raises:
        ForeignChangeError: There are files that the log does not know.
    """
    for _ in range(TRIES):
        head = log.head()
        try:
            check_visible(files, table, log.entry(head.visible), head)
        except ForeignChangeError:
            if log.head().version == head.version:
                raise
        else:
            return head
    raise ConflictError(f"{table}: other writers were faster {TRIES} times; try again")


def check_visible(files: Files, table: str, original: Entry, head: Entry) -> None:
    """Refuse a folder whose visible files are not those that the log knows.

    All that commits add is hidden, until the folder is published.

    Args:
        files: The table's files.
        table: The table as the caller named it.
        original: Version 0, or the one that was published last.
        head: The current version.

    Raises:
        ForeignChangeError: Files came, changed, or are live and gone.
    """
    # a table that was migrated has begun with hidden files alone
    parts = () if original.operation is Operation.MIGRATE else original.parts
    moving = pending(files, head)
    first = {**_sizes(stats_table.load(files, parts, {}, {})), **moving.sizes}
    known = {path: size for path, size in first.items() if not path.startswith(f"{HIDDEN}/")}
    there = {file.path: file for file in files.listed()}
    visible = [file for file in hive_names.visible(there.values()) if not stands_for(file.path)]
    found = {file.path: file.size for file in visible}
    if added := sorted(found.keys() - known):
        advice = "move them out, and append their rows with zadapter.append()"
        raise ForeignChangeError(table, "came", added, advice)
    if edited := sorted(path for path, size in found.items() if size != known[path]):
        raise ForeignChangeError(table, "changed", edited, RESTORE)
    live = _sizes(stats_table.load(files, head.parts, {}, {}))
    on_the_way = {new for new, old in moving.names.items() if old in there}
    absent = sorted((live.keys() & known.keys()) - found.keys() - on_the_way)
    # a file that moved while they were listed was perhaps seen at neither place
    if gone := [path for path in absent if not has(files, moving, path)]:
        raise ForeignChangeError(table, "went", gone, RESTORE)


def _sizes(files: pa.Table) -> dict[str, int]:
    return dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))


def check_live(files: Files, table: str, head: Entry, live: pa.Table) -> None:
    """Refuse files that are gone or have another size.

    Args:
        files: The table's files.
        table: The table as the caller named it.
        head: The current version.
        live: File table of those that are about to be read.

    Raises:
        ForeignChangeError: There are some.
    """
    paths, sizes = live["path"].to_pylist(), live["size"].to_pylist()
    found = list(map_files(files.size, places(files, head, paths), files.uri))
    if None in found:  # it has perhaps moved since it was looked for
        found = list(map_files(files.size, places(files, head, paths), files.uri))
    told = list(zip(paths, sizes, found, strict=True))
    if gone := [path for path, _, now in told if now is None]:
        raise ForeignChangeError(table, "went", gone, RESTORE)
    if edited := [path for path, size, now in told if now != size]:
        raise ForeignChangeError(table, "changed", edited, RESTORE)


def check_readable(files: Files, table: str, version: int, head: Entry, live: pa.Table) -> None:
    """Refuse files of a version that cannot be read, as :func:`check_live` does.

    Args:
        files: The table's files.
        table: The table as the caller named it.
        version: The version.
        head: The current version, as it was known when the version was looked up.
        live: File table of those that are about to be read.

    Raises:
        ForeignChangeError: Files are gone or have another size.
        VersionExpiredError: Others have published the folder, or vacuumed it, since.
    """
    try:
        check_live(files, table, head, live)
    except ForeignChangeError as error:
        oldest = Log(files, table).head().oldest
        if 0 <= version < oldest:
            raise VersionExpiredError(table, version, oldest) from error
        raise


def check_old(
    log: Log, table: str, head: Entry, listed: Iterable[Found], paths: Iterable[str]
) -> None:
    """Refuse visible files that are younger than the log's word for them.

    Args:
        log: The table's log.
        table: The table as the caller named it.
        head: The current version.
        listed: All files of the table.
        paths: Visible files that are about to be deleted.

    Raises:
        ForeignChangeError: There are some: another program may have written them.
    """
    when = {file.path: file.modified for file in listed}
    until = known_until(log, head, when)
    if young := sorted(path for path in paths if when.get(path, 0) > until):
        advice = "if no other program has written them, as in a copy of the table, remove them"
        raise ForeignChangeError(table, "changed", young, advice)


def known_until(log: Log, head: Entry, modified: Mapping[str, int]) -> int:
    """Return when the visible files were put into the log, in microseconds since 1970.

    Args:
        log: The table's log.
        head: The current version.
        modified: When files were written by the store's clock, the log's entries among them.
    """
    written = modified.get(path_of(head.visible), 0)
    # files are published right before their entry: another clock could be behind the store's
    return written if head.visible else min(log.entry(0).timestamp * 1_000, written)
