"""Results of calls that write to a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zadapter.base.printable import abridge
from zadapter.base.secrets import mask_secrets
from zadapter.report.facts import Facts, Listing


def format_versions(versions: Sequence[int | None]) -> str:
    """Return committed versions as text."""
    named = ["unknown" if version is None else str(version) for version in versions]
    return f"version {abridge(named)}" if named else "nothing"


def shown_seconds(seconds: Mapping[str, float]) -> str:
    """Return the seconds of phases as text."""
    return ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult(Facts):
    """Result of a call that writes to a table.

    A dry run and a call with nothing to do commit no version, and add and remove nothing.
    """

    table: str
    """The table as the caller named it."""
    versions: tuple[int | None, ...] = ()
    """Versions that the call committed, oldest first; None for a commit that landed although its
    answer was lost."""
    files_added: int = 0
    files_removed: int = 0
    rows_added: int = 0
    """Rows in the added files."""
    rows_removed: int = 0
    """Rows in the removed files; rows that a rewrite keeps are in the added files again."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds by phase, such as plan, write, verify and commit, and in total."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", mask_secrets(self.table))

    @property
    def version(self) -> int | None:
        """The newest version that the call committed; None if there is none, or it is unknown."""
        return self.versions[-1] if self.versions else None

    @property
    def committed(self) -> bool:
        """Whether the call committed anything."""
        return bool(self.versions)

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Return the fields as JSON values, and the newest version."""
        return Facts.to_dict(self, files=files) | {"version": self.version}

    def facts(self) -> Mapping[str, str]:
        """Return the result as readable facts, by name."""
        return {"table": self.table, **WriteResult.counts(self)}

    def counts(self) -> dict[str, str]:
        """Return the counts, the seconds and the versions as readable facts."""
        return {
            "files": f"{self.files_removed:,} removed, {self.files_added:,} added",
            "rows": f"{self.rows_removed:,} removed, {self.rows_added:,} added",
            "seconds": shown_seconds(self.seconds),
            "committed": format_versions(self.versions),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion(WriteResult):
    """Result of a delete."""

    rows_deleted: int
    """Rows that matched the condition. Other rows of the removed files are in the added files."""

    _repr_pretty_ = Facts._repr_pretty_

    def facts(self) -> Mapping[str, str]:
        """Return the result as readable facts, by name."""
        deleted = f"{self.rows_deleted:,}"
        return {"table": self.table, "rows deleted": deleted, **WriteResult.counts(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup(WriteResult):
    """Result of a vacuum, or of a dry run. The removed files belonged to no live version."""

    paths: tuple[str, ...]
    """Paths of the deleted files, relative to the table; for a dry run, those to delete."""
    dry_run: bool

    _repr_pretty_ = Facts._repr_pretty_

    def facts(self) -> Mapping[str, str]:
        """Return the result as readable facts, by name."""
        would = "that can be deleted" if self.dry_run else "deleted"
        committed = format_versions(self.versions)
        return {"table": self.table, f"files {would}": f"{len(self.paths):,}"} | (
            {} if self.dry_run else {"committed": committed}
        )

    def listings(self) -> Sequence[Listing]:
        """Return the paths."""
        rows = tuple((path,) for path in self.paths)
        return (Listing(title="files", columns=("path",), rows=rows),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication(WriteResult):
    """Result of publishing a folder, or of a dry run.

    The files and rows of the table stay the same: files are moved, and those of older versions are
    deleted.
    """

    shown: int
    """The version that the folder shows; for a dry run, the current version."""
    moved: Mapping[str, str]
    """Visible path of each moved file, by its hidden path. Both are relative to the table."""
    removed: tuple[str, ...]
    """Visible files of older versions, which were deleted."""
    dry_run: bool
    """Whether nothing was changed."""

    _repr_pretty_ = Facts._repr_pretty_

    @property
    def nothing_to_do(self) -> bool:
        """Whether the folder already showed the newest version."""
        return not self.moved and not self.removed

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Return the fields as JSON values, and whether there was nothing to do."""
        document = WriteResult.to_dict(self, files=files)
        return document | {"nothing_to_do": self.nothing_to_do}

    def facts(self) -> Mapping[str, str]:
        """Return the result as readable facts, by name."""
        would = "would be " if self.dry_run else ""
        return {
            "folder": self.table,
            "version": str(self.shown),
            f"files {would}moved": f"{len(self.moved):,}",
            f"files {would}deleted": f"{len(self.removed):,}",
        }
