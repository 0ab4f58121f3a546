"""Everything zadapter raises on purpose, grouped by what the caller does next.

ZadapterError
├── UsageError (ValueError)          fix the call
│   ├── UnknownColumnError           pick one of the names it lists
│   ├── UnknownTableError            fix the path or the identifier
│   └── MissingBackendError          install something
├── SessionError                     fix the Spark session, the jars or Java
├── UnsupportedError                 change the table, or leave it alone
│   └── MissingStatsError            let zadapter widen the table's stats
├── ConflictError                    nothing was committed; try again
│   ├── StaleRewriteError            plan again; the inputs are gone
│   └── ReplacedTableError           look at the table, which is another one now
├── VersionExpiredError              read a newer version
├── ForeignChangeError               look at what other programs did to the table's files
├── CorruptLogError                  restore the table's log
├── DataFileError                    restore the data file
├── StoreError                       make room, or get the right to use the store; try again
├── VerificationError                nothing was committed; what was staged is wrong
├── EngineError                      read what Spark or the format says
└── UnknownOutcomeError              look before you touch anything

Messages hold no secrets: what looks like one is masked.
"""

from collections.abc import Sequence
from difflib import get_close_matches

from zadapter.base.secrets import masked


class ZadapterError(Exception):
    """Base of every error zadapter raises on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(masked(each) if isinstance(each, str) else each for each in args))


class UsageError(ZadapterError, ValueError):
    """The call is wrong; nothing was read or written."""


class UnknownColumnError(UsageError):
    """A column that the table does not have."""

    def __init__(self, column: str, known: Sequence[str]) -> None:
        self.column = column
        self.known = tuple(known)
        near = get_close_matches(column.lower(), [name.lower() for name in known], n=1)
        nearest = next((name for name in known if near and name.lower() == near[0]), None)
        hint = f"did you mean {nearest!r}?" if nearest else f"it has: {', '.join(known)}"
        super().__init__(f"the table has no column {column!r}; {hint}")


class UnknownTableError(UsageError):
    """A table that does not exist, or is of another format."""


class MissingBackendError(UsageError):
    """A backend that is not installed."""


class SessionError(ZadapterError):
    """The Spark session, its jars, or Java do not fit."""


class UnsupportedError(ZadapterError):
    """The table uses a feature that zadapter cannot keep; nothing was written."""


class MissingStatsError(UnsupportedError):
    """Key columns for which the table's log collects no stats.

    Attributes:
        columns: The key columns in question.
    """

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        self.table = table
        self.columns = tuple(columns)
        super().__init__(
            f"{table}: no stats are collected for {', '.join(columns)}, so clustering by them "
            "would exclude no file; pass widen_stats=True (command line: --widen-stats) to add "
            "them to the columns the table collects stats for, or cluster by other columns"
        )


class ConflictError(ZadapterError):
    """Another writer was faster; nothing was committed."""


class StaleRewriteError(ConflictError):
    """Files that were to be rewritten have been changed or removed by another writer.

    Attributes:
        table: The table as the caller named it.
        gone: Paths that are no longer live as they were planned.
    """

    def __init__(self, table: str, gone: Sequence[str]) -> None:
        self.table = table
        self.gone = tuple(gone)
        super().__init__(
            f"{table}: {len(gone)} of the files being rewritten changed meanwhile, "
            f"{gone[0]!r} among them; run optimize() again to take up the new state"
        )


class ReplacedTableError(ConflictError):
    """The table was dropped, and another one has its name or its folder.

    What was written for the old table is not deleted: a copy of that table may need it.
    """

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"{table} was dropped and made again while it was being changed; nothing was committed "
            "to the new table. Files written for the old one stay until VACUUM or "
            "remove_orphan_files takes them. Run the command again to change the new table"
        )


class VersionExpiredError(ZadapterError):
    """A version whose files vacuum may have removed.

    Attributes:
        oldest: The oldest version that can still be read.
    """

    def __init__(self, table: str, version: int, oldest: int) -> None:
        self.table = table
        self.version = version
        self.oldest = oldest
        super().__init__(
            f"{table}: version {version} has expired; the oldest that can be read is {oldest}"
        )


class ForeignChangeError(ZadapterError):
    """Files of the table were added, removed or changed by a program other than zadapter.

    Attributes:
        paths: The files in question.
    """

    def __init__(self, table: str, what: str, paths: Sequence[str], advice: str) -> None:
        self.table = table
        self.paths = tuple(paths)
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        super().__init__(f"{table}: {paths[0]!r}{more} {what} behind the table's log; {advice}")


class CorruptLogError(ZadapterError):
    """The table's log does not say what zadapter has written; nothing was read or changed."""


class DataFileError(ZadapterError):
    """A file of the table is missing or damaged.

    Attributes:
        path: The file, where it is known.
    """

    def __init__(self, message: str, path: str | None = None) -> None:
        self.path = path
        super().__init__(message)


class StoreError(ZadapterError):
    """The store refuses to read, write or delete, or does not answer; nothing was committed."""


class VerificationError(ZadapterError):
    """Staged files do not hold what they should; nothing was committed."""


class EngineError(ZadapterError):
    """Spark, the format or a library has failed in a way that has no error of its own here."""


class UnknownOutcomeError(ZadapterError):
    """A commit may or may not have landed; nothing was deleted.

    Attributes:
        commit_id: What to look for in the table's history.
    """

    def __init__(self, table: str, commit_id: str) -> None:
        self.table = table
        self.commit_id = commit_id
        super().__init__(
            f"{table}: it is not known whether commit {commit_id} landed; look for this id in the "
            "table's history. If it is there, all is well; if not, what was written waits for "
            "vacuum"
        )
