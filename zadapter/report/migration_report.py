"""Report of a migration, or of its dry run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from zadapter.base.printable import abridge
from zadapter.base.quantities import show
from zadapter.base.secrets import mask_fields
from zadapter.report.facts import Facts
from zadapter.report.write_result import WriteResult, shown_seconds
from zadapter.table.spec import Note, Status


class Mode(str, Enum):
    """Mode of a migration."""

    COPY = "copy"
    """Live rows are written to new files; the old table does not change."""
    IN_PLACE = "in_place"
    """Both tables share the existing files."""
    AUTO = "auto"
    """In place if that is safe, otherwise a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Proof that both tables are equal, from a read of all rows of both."""

    rows: int
    checksum: str
    """Checksum of all columns of all rows, independent of their order, in hexadecimal."""
    columns: int
    """Number of columns with the expected names, types, nullability and comments."""
    filters: int
    """Number of seeded range filters on the key columns. Each matches the same number of rows in
    both tables, and no matching row lies in a file that min and max exclude."""
    share_source: float
    """Mean share of the old table's rows, from 0 to 1, in files that the filters cannot exclude."""
    share_target: float
    """The same share for the new table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration(WriteResult):
    """Result of a migration, or of a dry run.

    ``table`` is the old table; versions, files and rows are those of the new one. If an earlier
    call has created it, this call commits nothing.
    """

    format: str
    """Format of the old table."""
    source_version: int | None
    """The migrated version of the old table; None: a folder that is not registered as a table."""
    target: str
    to: str
    """Format of the new table."""
    mode: Mode
    """Mode that was used; never ``AUTO``."""
    why: str
    """Reason for the mode; empty if it was requested."""
    items: tuple[Note, ...]
    """Parts of the table that are carried, translated, lost or refused."""
    layout: str
    """Description of the new table's layout."""
    file_count: int
    """Number of migrated files in the new table; for a dry run, in the old table."""
    size: int
    """Bytes of these files."""
    target_version: int | None = None
    """The version of the new table that was compared; None: nothing was written."""
    proof: Proof | None = None
    notes: tuple[str, ...] = ()
    """Notes on shared files."""
    files: pa.Table | None = field(default=None, repr=False, compare=False)
    """These files."""

    def __post_init__(self) -> None:
        mask_fields(self)

    @property
    def refused(self) -> bool:
        """Whether the new format cannot represent the table."""
        return any(item.status is Status.REFUSED for item in self.items)

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def facts(self) -> Mapping[str, str]:
        """Return the report as readable facts, by name."""
        source = self.source_version
        version = "no version yet" if source is None else f"version {source}"
        facts = {
            "from": f"{self.table} ({self.format}, {version})",
            "to": f"{self.target} ({self.to})",
            "mode": f"{self.mode.value}, {self.why}" if self.why else self.mode.value,
        }
        for status in Status:
            parts = [
                f"{i.what}: {i.how}" if i.how else i.what for i in self.items if i.status is status
            ]
            if parts:
                facts[status.value] = abridge(parts, "; ")
        facts["layout"] = self.layout
        facts["files"] = f"{self.file_count} of {show(self.size)}"
        if self.notes:
            facts["shared files"] = abridge(self.notes, "; ")
        if self.proof is not None:
            facts |= _describe_proof(self.proof)
        if self.seconds:
            facts["seconds"] = shown_seconds(self.seconds)
        committed = self.target_version is not None
        facts["committed"] = f"version {self.target_version}" if committed else "nothing"
        return facts


def _describe_proof(proof: Proof) -> dict[str, str]:
    return {
        "rows": f"{proof.rows:,} in both",
        "checksum": f"{proof.checksum} in both",
        "schema": f"{proof.columns} columns as defined",
        "filters": f"{proof.filters} match the same rows; they read {proof.share_source:.1%} of "
        f"the rows before, {proof.share_target:.1%} now",
    }
