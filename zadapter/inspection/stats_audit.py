"""The value that ``audit`` returns."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.printable import abridge
from zadapter.base.quantities import show_count
from zadapter.base.secrets import mask_fields
from zadapter.inspection.comparison import KINDS, UNSOUND
from zadapter.report.facts import SHOWN, Facts, Listing, describe_table

FOOTERS, VALUES = "footers", "values"
"""What the log is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Facts):
    """File statistics of a log, compared with the footers or the values of the files."""

    table: str
    format: str
    version: int | None
    """The version that was read; None: a folder that is not registered as a table."""
    by: str
    """``"footers"`` or ``"values"``."""
    files_audited: int
    columns: tuple[str, ...]
    """Columns that were compared."""
    unreadable: int
    """Number of files of the log that are missing or damaged; they are not compared."""
    unsound: int
    """Number of findings that can make a query miss rows."""
    missing: int
    """Number of bounds and counts that the log could record but does not."""
    untold: int
    """Number of pairs of bounds that neither the log nor the footers contain."""
    unsure: int
    """Number of differences that only a comparison with the values can decide."""
    repaired: tuple[str, ...]
    """Paths of files whose statistics were replaced."""
    repaired_version: int | None
    """The version with the new statistics. None: nothing was written."""
    left: Mapping[str, str]
    """Files that were not repaired, and why."""
    note: str
    """What could not be compared or repaired, and why."""
    findings: pa.Table = field(repr=False, compare=False)
    """One row for each finding: ``path``, ``column``, ``kind`` (unsound, missing or unsure),
    ``what``, and as text what is ``recorded`` and what was ``found``."""

    def __post_init__(self) -> None:
        mask_fields(self)

    @property
    def files(self) -> pa.Table:
        """The findings, which name the files."""
        return self.findings

    @property
    def sound(self) -> bool:
        """Whether no finding can make a query miss rows or fail."""
        return self.unsound == self.unreadable == 0

    @property
    def sound_now(self) -> bool:
        """Whether the table is sound, perhaps because of the repair."""
        wrong = self.findings.filter(pc.equal(self.findings["kind"], UNSOUND))
        return not self.unreadable and set(wrong["path"].to_pylist()) <= set(self.repaired)

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def facts(self) -> Mapping[str, str]:
        """Return the audit as readable facts, by name."""
        facts = {
            "table": describe_table(self.table, self.format, self.version),
            "compared": f"{show_count(self.files_audited, 'files')} with their {self.by}, in "
            f"{show_count(len(self.columns), 'columns')}",
            **({"unreadable": self._unreadable} if self.unreadable else {}),
            "unsound": f"{self.unsound:,}",
            "missing": f"{self.missing:,}",
        }
        if self.untold:
            facts["not recorded"] = (
                f"{self.untold:,} pairs of bounds are neither in the log nor in the footers; "
                "deep=True (--deep) finds them"
            )
        if self.unsure:
            facts["unsure"] = f"{self.unsure:,}; deep=True (--deep) decides"
        if self.repaired_version is not None:
            done = show_count(len(self.repaired), "files")
            facts["repaired"] = f"{done}, version {self.repaired_version}"
        if self.left:
            left = Counter(self.left.values()).most_common()
            kinds = [f"{show_count(number, 'files')}: {why}" for why, number in left]
            facts["not repaired"] = abridge(kinds, "; ")
        if self.note:
            facts["note"] = self.note
        return facts

    @property
    def _unreadable(self) -> str:
        return (
            f"{self.unreadable:,} files, which are missing or damaged; restore them, or the table "
            "to a version without them"
        )

    def listings(self) -> Sequence[Listing]:
        """Return the findings, the worst first."""
        worst = pc.index_in(self.findings["kind"], pa.array(KINDS))
        keys = pa.table({"kind": worst, "path": self.findings["path"]})
        order = pc.sort_indices(keys, [("kind", "ascending"), ("path", "ascending")])
        ordered = self.findings.take(order)
        columns = tuple(ordered.column_names)
        first = ordered.slice(0, SHOWN).to_pylist()
        rows = tuple(tuple(row[name] for name in columns) for row in first)
        return (Listing("findings", columns, rows, ordered.num_rows),)
