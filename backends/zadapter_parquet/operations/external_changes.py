"""Detection of changes that other programs made to a table's files."""

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.commit_attempts import Attempts
from zadapter.base.locations import map_files
from zadapter.errors import ConflictError, ForeignChangeError, VersionExpiredError
from zadapter_parquet.format.entries import Entry, LogOperation, StatsPart
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.log import stats_table
from zadapter_parquet.log.log import Log, path_of
from zadapter_parquet.operations.moving import current_paths, has_file, pending
from zadapter_parquet.store import hive_names
from zadapter_parquet.store.contract import Files, ListedFile
from zadapter_parquet.store.guard_files import stands_for

RESTORE = "restore them, or call zadapter.restore() with a version without them"


def check_folder(log: Log, files: Files, table: str) -> Entry:
    """Return the current version after checking the folder's visible files.

    Raises:
        ForeignChangeError: Visible files were added, changed or removed outside the log.
        ConflictError: Other writers kept changing the table.
    """
    for _ in Attempts():
        head = log.head()
        try:
            check_visible(files, table, log.entry(head.visible), head)
        except ForeignChangeError:
            if log.head().version == head.version:
                raise
        else:
            return head
    raise ConflictError(f"{table}: other writers committed first in all attempts; retry")


def check_visible(files: Files, table: str, original: Entry, head: Entry) -> None:
    """Check that the folder's visible files match the log.

    Commits add hidden files only, until the folder is published.

    Args:
        files: The table's files.
        table: The table as the caller named it.
        original: Entry of version 0, or of the last published version.
        head: Entry of the current version.

    Raises:
        ForeignChangeError: Files were added or changed, or live files were removed.
    """
    # a migrated table starts with hidden files only
    parts = () if original.operation is LogOperation.MIGRATE else original.parts
    moving = pending(files, head)
    moved = {p: size for p, size in moving.sizes.items() if not p.startswith(f"{HIDDEN}/")}
    expected = _visible(files, parts) | moved
    listed = {file.path: file for file in files.list_files()}
    visible = [path for path in listed if not hive_names.is_hidden(path) and not stands_for(path)]
    actual = {path: listed[path].size for path in visible if listed[path].size or path in expected}
    if added := sorted(actual.keys() - expected):
        advice = "move them out of the folder, and append their rows with zadapter.append()"
        raise ForeignChangeError(table, "added", added, advice)
    if edited := sorted(path for path, size in actual.items() if size != expected[path]):
        raise ForeignChangeError(table, "changed", edited, RESTORE)
    live = _visible(files, head.parts) if expected else {}
    moving_paths = {new for new, old in moving.names.items() if old in listed}
    absent = sorted((live.keys() & expected.keys()) - actual.keys() - moving_paths)
    # the listing may have missed a file that moved meanwhile, at both places
    if missing := [path for path in absent if not has_file(files, moving, path)]:
        raise ForeignChangeError(table, "removed", missing, RESTORE)


def _visible(files: Files, parts: Iterable[StatsPart]) -> dict[str, int]:
    """Return the visible files in some parts of the stats table, with their bytes."""
    found = dict[str, int]()
    for part in parts:
        listed = stats_table.read(files, part, ["path", "size"])
        some = listed.filter(pc.invert(pc.starts_with(listed["path"], f"{HIDDEN}/")))
        found.update(zip(some["path"].to_pylist(), some["size"].to_pylist(), strict=True))
    return found


def check_live(files: Files, table: str, head: Entry, live: pa.Table) -> None:
    """Check that files exist with the sizes in the log.

    Args:
        files: The table's files.
        table: The table as the caller named it.
        head: Entry of the current version.
        live: File table of the files to be read.

    Raises:
        ForeignChangeError: A file is missing or has another size.
    """
    paths, sizes = live["path"].to_pylist(), live["size"].to_pylist()
    actual_sizes = list(map_files(files.size, current_paths(files, head, paths), files.uri))
    if None in actual_sizes:  # a file may have moved between the lookups
        actual_sizes = list(map_files(files.size, current_paths(files, head, paths), files.uri))
    compared = list(zip(paths, sizes, actual_sizes, strict=True))
    if missing := [path for path, _, actual in compared if actual is None]:
        raise ForeignChangeError(table, "removed", missing, RESTORE)
    if edited := [path for path, size, actual in compared if actual != size]:
        raise ForeignChangeError(table, "changed", edited, RESTORE)


def check_readable(files: Files, table: str, version: int, head: Entry, live: pa.Table) -> None:
    """Check that files of a version can be read, as :func:`check_live` does.

    Args:
        files: The table's files.
        table: The table as the caller named it.
        version: Number of the version.
        head: Entry of the version that was current when *version* was looked up.
        live: File table of the files to be read.

    Raises:
        ForeignChangeError: A file is missing or has another size.
        VersionExpiredError: The folder was published or vacuumed since.
    """
    try:
        check_live(files, table, head, live)
    except ForeignChangeError as error:
        oldest = Log(files, table).head().oldest
        if 0 <= version < oldest:
            raise VersionExpiredError(table, version, oldest) from error
        raise


def check_old(
    log: Log, table: str, head: Entry, listed: Iterable[ListedFile], paths: Iterable[str]
) -> None:
    """Check that visible files are not newer than their log entry.

    Args:
        log: The table's log.
        table: The table as the caller named it.
        head: Entry of the current version.
        listed: All files of the table.
        paths: Visible files that are about to be deleted.

    Raises:
        ForeignChangeError: A file is newer, so another program may have written it.
    """
    modified = {file.path: file.modified for file in listed}
    until = find_recording_time(log, head, modified)
    if newer := sorted(path for path in paths if modified.get(path, 0) > until):
        advice = "delete them if no other program wrote them, as in a copy of the table"
        raise ForeignChangeError(table, "changed", newer, advice)


def find_recording_time(log: Log, head: Entry, modified: Mapping[str, int]) -> int:
    """Return when the visible files were recorded in the log, in microseconds since 1970.

    Args:
        log: The table's log.
        head: Entry of the current version.
        modified: Modification times of files, including log entries, by the store's clock, in
            microseconds since 1970.
    """
    written = modified.get(path_of(head.visible), 0)
    # files are published right before their entry, whose writer's clock may be behind the store's
    return written if head.visible else min(log.entry(0).timestamp * 1_000, written)
