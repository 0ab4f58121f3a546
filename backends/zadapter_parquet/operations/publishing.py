"""Publishing of the newest version as the folder's visible files, for engines that list folders."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from posixpath import basename

from zadapter.base import outcome
from zadapter.base.commit_attempts import Attempts
from zadapter.errors import ConflictError, CorruptLogError, ForeignChangeError, UnsupportedError
from zadapter.table.snapshot import Published
from zadapter_parquet.format.entries import Entry, LogOperation
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.log import stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.operations import external_changes, moving, other_contents
from zadapter_parquet.operations.moving import Moves
from zadapter_parquet.rows import shared_files
from zadapter_parquet.store import guard_files, hive_names
from zadapter_parquet.store.contract import Files

_PARQUET = ".parquet"
_COPY_LIMIT = 5 << 30
"""Bytes of the largest object that S3 copies in one request (API reference, CopyObject)."""


def publish(files: Files, table: str, *, dry_run: bool) -> Published:
    """Make the visible files those of the newest version.

    Raises:
        ConflictError: Other writers committed first in all attempts.
        ForeignChangeError: Visible files were added, changed or removed outside the log.
        UnknownOutcomeError: The commit may or may not have succeeded.
        UnsupportedError: Another table shares the files, engines would not read some of them, or
            the store cannot copy them.
    """
    shared_files.refuse(files, table)
    log = Log(files, table)
    if dry_run:
        return _plan_publication(log, files, table)
    done, versions = dict[int, Moves](), list[int]()
    for _ in Attempts():
        with suppress(ConflictError):
            head = log.head()
            done[head.version] = moving.pending(files, head)
            before, head = head, moving.finish_moves(log, files, table, head)
            if head.version > before.version:  # also those that another call has begun
                outcome.record_landing()
                versions += range(before.version + 1, head.version + 1)
            if head.moves is not None:  # another table has just come to share the files
                shared_files.refuse(files, table)
                continue
            guards = [f.path for f in files.list_files() if guard_files.stands_for(f.path)]
            moves = _current_moves(log, files, table, head)
            if not moves.visible:
                # earlier guards have no owner, unless there is a newer version
                _check_newest(log, table, head)
                guard_files.remove(files, guards)
                return _publication(table, head, done.values(), versions, dry_run=False)
            renamed = {old: new for new, old in moves.names.items()}
            parts = stats_table.rename_files(files, head.parts, renamed)
            # earlier versions need files that are about to be deleted
            oldest = head.version + 1
            entry = moving.begin(
                log, files, head, LogOperation.PUBLISH, moves, parts=parts, oldest=oldest
            )
            outcome.record_landing()
            done[entry.version] = moves
            versions.append(entry.version)
    raise ConflictError(f"{table}: other writers committed first in all attempts; retry")


def _plan_publication(log: Log, files: Files, table: str) -> Published:
    for _ in Attempts():
        with suppress(ConflictError):
            head = log.head()
            moves = _current_moves(log, files, table, head)
            return _publication(table, head, [moves], (), dry_run=True)
    raise ConflictError(f"{table}: other writers committed first in all attempts; retry")


def _current_moves(log: Log, files: Files, table: str, head: Entry) -> Moves:
    """Return the files to move and to delete.

    Raises:
        ConflictError: Another writer has added a version, and may have deleted files.
        ForeignChangeError: Visible files were added, changed or removed outside the log.
    """
    try:
        return _find_needed_moves(log, files, table, head)
    except (CorruptLogError, ForeignChangeError) as error:
        _check_newest(log, table, head, error)
        raise


def _check_newest(log: Log, table: str, head: Entry, cause: Exception | None = None) -> None:
    if log.head().version > head.version:
        raise ConflictError(f"{table} was changed by another writer; retry") from cause


def _publication(
    table: str, head: Entry, done: Iterable[Moves], versions: Iterable[int], *, dry_run: bool
) -> Published:
    published = [moves for moves in done if moves.visible]
    return Published(
        table=table,
        version=head.version,
        moved={old: new for moves in published for new, old in moves.names.items()},
        removed=tuple(sorted({path for moves in published for path in moves.deletes})),
        dry_run=dry_run,
        versions=tuple(versions),
    )


def _find_needed_moves(log: Log, files: Files, table: str, head: Entry) -> Moves:
    """Return the files to move and to delete.

    Raises:
        ForeignChangeError: Visible files were added, changed or removed outside the log.
    """
    begun = moving.pending(files, head)
    if begun.visible:
        return begun
    listed = list(files.list_files())
    other_contents.refuse_stream(files, listed)
    external_changes.check_visible(files, table, log.entry(head.visible), head)
    live = stats_table.load(files, head.parts, {}, {})
    external_changes.check_live(files, table, head, live)
    sizes = dict(zip(live["path"].to_pylist(), live["size"].to_pylist(), strict=True))
    hidden = [path for path in sizes if path.startswith(f"{HIDDEN}/")]
    _check_not_hidden(table, [visible_path(path) for path in hidden])
    if files.uri.startswith("s3:"):
        _check_copied(table, {path: sizes[path] for path in hidden})
    if hidden:
        _check_level(table, sorted(sizes.keys() - hidden))
    visible = [f for f in hive_names.visible(listed) if not guard_files.stands_for(f.path)]
    deletes = {file.path: file.size for file in visible if file.path not in sizes}
    if hidden:
        _check_seen(files, table, log.entry(head.visible))
    external_changes.check_old(log, table, head, listed, deletes)
    return Moves(
        names={visible_path(path): path for path in hidden},
        sizes={visible_path(path): sizes[path] for path in hidden},
        deletes=deletes,
    )


def _check_not_hidden(table: str, paths: list[str]) -> None:
    """Check that engines do not ignore the visible names.

    Raises:
        UnsupportedError: A name is hidden, for example because of a partition column ``.day``.
    """
    if unseen := next((path for path in paths if hive_names.is_hidden(path)), None):
        raise UnsupportedError(
            f"{table} cannot be published: Spark ignores {unseen!r}, since folders with this name "
            "are hidden; rename the partition column, or change its value"
        )


def _check_copied(table: str, sizes: Mapping[str, int]) -> None:
    """Check that S3 can copy all files, before the first one moves.

    Raises:
        UnsupportedError: A file is too large.
    """
    if large := next((path for path, size in sizes.items() if size > _COPY_LIMIT), None):
        raise UnsupportedError(
            f"{table} cannot be published: S3 copies objects of up to 5 GiB, but {large!r} has "
            f"{sizes[large] / (1 << 30):.1f} GiB; rewrite it, for example with "
            "zadapter.optimize(force=True, target_file_size='1GB')"
        )


def _check_level(table: str, paths: list[str]) -> None:
    """Check that live files are not in subfolders, which Spark silently ignores beside files.

    Raises:
        UnsupportedError: A file is in a folder that is not a partition, or above partitions.
    """
    below = next(
        (path for path in paths if "/" in path and "=" not in path.partition("/")[0]), None
    )
    if below:
        raise UnsupportedError(
            f"{table} cannot be published: {below!r} is in a folder that is not a partition, which "
            "Spark ignores; rewrite all files first with zadapter.optimize(force=True)"
        )


def _check_seen(files: Files, table: str, shown: Entry) -> None:
    """Check that Spark reads all files of the version that the folder shows.

    Older releases took in the files of subfolders, which Spark skips beside other files.

    Raises:
        UnsupportedError: It skips some, so publishing would show their rows for the first time.
    """
    if shown.partition:
        return
    paths = [
        path
        for part in shown.parts
        for path in stats_table.read(files, part, ["path"])["path"].to_pylist()
        if not path.startswith(f"{HIDDEN}/")
    ]
    below = next((path for path in paths if "/" in path), None)
    beside = next((path for path in paths if "/" not in path), None)
    if below and beside:
        raise UnsupportedError(
            f"{table} cannot be published: an older release registered {below!r}, which Spark does "
            f"not read beside {beside!r}, so readers of the folder would see its rows for the "
            "first time; write the rows of zadapter.read() that you want into a new "
            "folder"
        )


def visible_path(path: str) -> str:
    """Return the unique visible path of a hidden file, in its partition folders."""
    folders = path.split("/")[2:-1]
    values = [name for name in folders if "=" in name]
    commit = [name for name in folders if "=" not in name]
    stem = basename(path).rpartition(".")[0]
    return "/".join([*values, "-".join(["part", *commit, stem]) + _PARQUET])
