"""Errors of zadapter, grouped by the reaction of the caller.

ZadapterError
├── UsageError (ValueError)          fix the call
│   ├── UnknownColumnError           choose one of the listed names
│   ├── UnknownTableError            fix the path or the identifier
│   └── MissingBackendError          install the missing package
├── SessionError                     fix the Spark session, the jars or Java
├── UnsupportedError                 change the table's features
│   ├── ProtectedFilesError          nothing; or change what the message names
│   └── MissingStatsError            pass collect_stats=True, or choose other key columns
├── ConflictError                    nothing was committed; retry
│   ├── StaleRewriteError            plan again; the input files are gone
│   └── ReplacedTableError           check the table; another one has its name
├── VersionExpiredError              read a newer version
├── ForeignChangeError               check the changes of other programs to the table's files
├── CorruptLogError                  restore the table's log
├── DataFileError                    restore the data file
├── StoreError                       free space, or fix access to the store; retry
├── VerificationError                nothing was committed; staged files are wrong
├── ReportError                      the call is done, as the message states; only its report failed
├── EngineError                      read the message of Spark or the format
│   └── UnsentCommitError            nothing was committed; read the message
└── UnknownOutcomeError              check the table's history before any other action

Each error states two facts for programs, as attributes of the class and, more exactly, of the
error that a public function raises:

- ``retryable``: whether the same call may succeed later, with neither the call nor the table
  changed. It is never true if the outcome of a commit is unknown.
- ``committed``: whether the call has committed a change of the table's files: False, True, or None
  if that is unknown. Files that were staged for a commit that did not land are deleted.

Likely secrets in messages are masked. Characters that standard output cannot encode are escaped.
"""

from collections.abc import Sequence
from difflib import get_close_matches

from zadapter.base.printable import abridge, printable
from zadapter.base.secrets import mask_secrets


class ZadapterError(Exception):
    """Base class of all errors of zadapter.

    Attributes:
        retryable: Whether the same call may succeed later.
        committed: Whether the call has committed a change of files; None if it is unknown. For
            an error that no public function has raised, it follows from the class alone.
    """

    retryable: bool = False
    committed: bool | None = None

    def __init__(self, *args: object) -> None:
        super().__init__(*(mask_secrets(arg) if isinstance(arg, str) else arg for arg in args))

    def __str__(self) -> str:
        return printable(super().__str__())


class UsageError(ZadapterError, ValueError):
    """An argument is invalid; nothing was written."""

    committed: bool | None = False


class UnknownColumnError(UsageError):
    """The table does not have the column.

    Attributes:
        column: The unknown column.
        known: The names that the table has.
    """

    def __init__(self, column: str, known: Sequence[str]) -> None:
        self.column = column
        self.known = tuple(known)
        near = get_close_matches(column.lower(), [name.lower() for name in known], n=1)
        nearest = next((name for name in known if near and name.lower() == near[0]), None)
        hint = f"did you mean {nearest!r}?" if nearest else f"available: {abridge(known)}"
        parts = [part.strip() for part in column.strip("`").split(",")]
        if len(parts) > 1 and {part.lower() for part in parts} <= {n.lower() for n in known}:
            hint = f"several columns are a list: {parts!r}"
        super().__init__(f"the table has no column {column!r}; {hint}")


class UnknownTableError(UsageError):
    """The table does not exist, or has another format.

    Attributes:
        exists: Whether something else has the name, such as a view, so that the message states more
            than that a backend has found nothing.
        unregistered: Format of the files of a folder without a log, which the caller has to name;
            None: there are no such files.
    """

    def __init__(
        self, message: str, *, exists: bool = False, unregistered: str | None = None
    ) -> None:
        self.exists = exists
        self.unregistered = unregistered
        super().__init__(message)


class MissingBackendError(UsageError):
    """The backend, or a package that it needs, is not installed."""


class SessionError(ZadapterError):
    """The Spark session, its jars or Java are not supported."""


class UnsupportedError(ZadapterError):
    """The table uses a feature that zadapter does not support; nothing was written.

    Attributes:
        table_format: Name of the format whose table the folder belongs to; None: of none other.
    """

    committed: bool | None = False

    def __init__(self, message: str, *, table_format: str | None = None) -> None:
        self.table_format = table_format
        super().__init__(message)


class ProtectedFilesError(UnsupportedError):
    """The table itself keeps all of its files, since others may need them; none was deleted."""


class MissingStatsError(UnsupportedError):
    """The table's log collects no stats for key columns.

    Attributes:
        table: The table as the caller named it.
        columns: The key columns without stats.
    """

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        self.table = table
        self.columns = tuple(columns)
        super().__init__(
            f"{table}: no stats are collected for {abridge(self.columns)}, so clustering by them "
            "would not prune any files; pass collect_stats=True (command line: --collect-stats) to "
            "collect stats for them, or cluster by other columns"
        )


class ConflictError(ZadapterError):
    """Another writer was faster; nothing was committed."""

    retryable = True
    committed: bool | None = False


RETRY = "Retry to use the new version"


class StaleRewriteError(ConflictError):
    """Another writer has changed or removed the files that were to be rewritten.

    Attributes:
        table: The table as the caller named it.
        gone: Paths of the files that were changed or removed.
    """

    def __init__(self, table: str, gone: Sequence[str], *, advice: str = RETRY) -> None:
        self.table = table
        self.gone = tuple(gone)
        super().__init__(
            f"{table} was changed by another writer: {len(gone)} conflicts, first: {gone[0]!r}; "
            f"nothing was committed. {advice}"
        )


class ReplacedTableError(ConflictError):
    """The table was dropped, and another table has its name or its folder.

    Files written for the old table are not deleted, since a copy of that table may reference them.

    Attributes:
        table: The table as the caller named it.
    """

    retryable = False  # the caller may not mean the new table

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"{table} was dropped and created again during the change; nothing was committed to "
            "the new table. Files written for the old one remain until VACUUM or "
            "remove_orphan_files deletes them. Retry to change the new table"
        )


class VersionExpiredError(ZadapterError):
    """The version has expired; its files or metadata may be deleted.

    Attributes:
        table: The table as the caller named it.
        version: The requested version.
        oldest: The oldest version that can still be read.
    """

    committed: bool | None = False

    def __init__(self, table: str, version: int, oldest: int) -> None:
        self.table = table
        self.version = version
        self.oldest = oldest
        super().__init__(
            f"{table}: version {version} has expired; the oldest readable version is {oldest}"
        )


class ForeignChangeError(ZadapterError):
    """A program other than zadapter has added, removed or changed files of the table.

    Attributes:
        table: The table as the caller named it.
        paths: Paths of the files.
    """

    committed: bool | None = False

    def __init__(self, table: str, what: str, paths: Sequence[str], advice: str) -> None:
        self.table = table
        self.paths = tuple(paths)
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        super().__init__(
            f"{table}: another program {what} {paths[0]!r}{more} outside the table's log; {advice}"
        )


class CorruptLogError(ZadapterError):
    """The table's log is not what zadapter has written; nothing was read or changed."""

    committed: bool | None = False


class DataFileError(ZadapterError):
    """A file of the table is missing or damaged.

    Attributes:
        path: Path of the file; None if it is unknown.
    """

    def __init__(self, message: str, path: str | None = None) -> None:
        self.path = path
        super().__init__(message)


class StoreError(ZadapterError):
    """The store is full, denies access or does not answer; nothing was committed."""

    retryable = True
    committed: bool | None = False


class VerificationError(ZadapterError):
    """Staged files differ from the rows read or from their log entries; nothing was committed."""

    committed: bool | None = False


class ReportError(ZadapterError):
    """The call is done, but its report failed; the message states what was done."""

    committed: bool | None = True


class EngineError(ZadapterError):
    """Spark, the format or a library has failed in a way without a more specific error."""


class UnsentCommitError(EngineError):
    """A commit has failed before it was sent; nothing was committed."""

    committed: bool | None = False


class UnknownOutcomeError(ZadapterError):
    """It is unknown whether a commit landed; nothing was deleted.

    Attributes:
        table: The table as the caller named it.
        commit_id: Id of the commit in the table's history.
    """

    def __init__(self, table: str, commit_id: str, reason: str = "") -> None:
        self.table = table
        self.commit_id = commit_id
        super().__init__(
            f"{table}: the outcome of commit {commit_id} is unknown"
            f"{reason and f' ({reason})'}; look for this id in the "
            "table's history. If it is there, the commit succeeded; if not, nothing was "
            "committed, and a clean-up will delete the written files"
        )


NOT_COMMITTED = (
    UsageError,
    UnsupportedError,
    ConflictError,
    ForeignChangeError,
    CorruptLogError,
    StoreError,
    VerificationError,
    UnsentCommitError,
)
"""Errors by which a backend's ``commit`` states that nothing was committed. After any other
exception the outcome is unknown, and no file is deleted."""
