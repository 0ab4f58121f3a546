"""What a migration will do, and what it did."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from zadapter.base.secrets import mask_fields
from zadapter.base.sizes import show
from zadapter.reports.optimize import aligned
from zadapter.table.spec import Note, Status


class Mode(str, Enum):
    """How rows get into the new table."""

    COPY = "copy"
    """They are read live and written anew; the old table stays as it is."""
    IN_PLACE = "in_place"
    """Files stay where they are, and both tables have them."""
    AUTO = "auto"
    """In place where that is safe, else a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was found equal in both tables, by reading all rows of both."""

    rows: int
    checksum: str
    """Of all columns of all rows, whatever their order, in hexadecimal."""
    columns: int
    """Columns of the same names, types, nullability and comments as were to be made."""
    filters: int
    """Seeded ranges over the key columns: each is true for as many rows in both tables, none of
    them in a file that min and max exclude."""
    share_source: float
    """Mean share of the rows, from 0 to 1, in files that these filters cannot exclude."""
    share_target: float
    """The same in the new table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What a migration did, or what it would do."""

    table: str
    format: str
    version: int
    """The version of the old table that was carried."""
    target: str
    to: str
    """Format of the new table."""
    mode: Mode
    """How; never ``AUTO``."""
    why: str
    """Why in this way, where that was not asked for."""
    items: tuple[Note, ...]
    """What is carried, translated, lost or refused."""
    layout: str
    """What becomes of the layout."""
    files: int
    """Files that the new table has got: for a plan, files of the old one."""
    size: int
    """Their bytes."""
    target_version: int | None = None
    """The version that was made; None: nothing was written."""
    proof: Proof | None = None
    notes: tuple[str, ...] = ()
    """What to know of files that both tables have."""
    seconds: Mapping[str, float]
    """Seconds by phase."""

    def __post_init__(self) -> None:
        mask_fields(self)

    @property
    def refused(self) -> bool:
        """Whether the new table could not be made."""
        return any(item.status is Status.REFUSED for item in self.items)

    def facts(self) -> Mapping[str, str]:
        """Return what there is to say, for people."""
        facts = {
            "from": f"{self.table} ({self.format}, version {self.version})",
            "to": f"{self.target} ({self.to})",
            "mode": f"{self.mode.value}, {self.why}" if self.why else self.mode.value,
        }
        for status in Status:
            said = [
                f"{i.what}: {i.how}" if i.how else i.what for i in self.items if i.status is status
            ]
            if said:
                facts[status.value] = "; ".join(said)
        facts["layout"] = self.layout
        facts["files"] = f"{self.files} of {show(self.size)}"
        if self.notes:
            facts["shared files"] = "; ".join(self.notes)
        if self.proof is not None:
            facts |= _proven(self.proof)
        if self.seconds:
            facts["seconds"] = ", ".join(f"{k} {v:.1f}" for k, v in self.seconds.items())
        made = self.target_version is not None
        facts["committed"] = f"version {self.target_version}" if made else "nothing"
        return facts

    def __str__(self) -> str:
        return aligned(self.facts())


def _proven(proof: Proof) -> dict[str, str]:
    return {
        "rows": f"{proof.rows:,} in both",
        "checksum": f"{proof.checksum} in both",
        "schema": f"{proof.columns} columns as was said",
        "filters": f"{proof.filters} find the same rows; they read {proof.share_source:.1%} of the "
        f"rows before, {proof.share_target:.1%} now",
    }
