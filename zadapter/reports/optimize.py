"""Plan and report of an optimize."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zadapter.base.secrets import mask_fields
from zadapter.base.sizes import show
from zadapter.pictures.figures import clusters
from zadapter.reports.facts import Facts, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORTH_NAMING = 0.05
"""Minimum share of the reads that a new fit saves to be named."""
_NOT_CLUSTERED = "the table is not clustered, pass by= (--by) to cluster it"
VERIFICATIONS = ("counts", "checksum")
"""Values of ``verify=``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Facts):
    """Predicted effect of an optimize, from a sample; nothing was written."""

    table: str
    format: str
    version: int | None
    """The version that was read; None: a folder that is not registered as a table."""
    columns: tuple[str, ...]
    """Key columns; none: small files are joined, and no row is sorted."""
    curve: str
    target_file_size: int
    """Target size of a written file, in bytes."""
    groups: int
    """Number of file groups to rewrite."""
    groups_declined: int = 0
    """Number of file groups that are kept, since a rewrite is predicted to bring nothing."""
    files_before: int
    """Number of live files of the table."""
    files_asked: int
    """Number of live files that may hold rows matching ``where``."""
    files_rewritten: int
    """Number of files to be replaced."""
    files_written: int
    """Number of files to write."""
    bytes_rewritten: int
    """Bytes of the files to be replaced."""
    rows: int | None
    """Live rows in the files to be replaced; None: the log has no row counts."""
    share_before: float
    """Mean share of the table's rows, from 0 to 1, in files that a range filter on the key columns
    reads now (see ``zadapter.planning.predict`` for the filters)."""
    share_after: float
    """The predicted share after the rewrite. If all groups are declined, the share that a rewrite
    with ``force`` would bring."""
    row_group_share_before: float | None = None
    """Mean share of the rows of these groups, from 0 to 1, in row groups that such a filter reads
    now, according to some footers; None: unknown."""
    row_group_share_after: float | None = None
    """The predicted share of the rows in row groups after the rewrite; None: unknown."""
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of files to be replaced, by the reason why."""
    sort_order: str = ""
    """Order that the table's definition asks for, which the new files do not have."""
    files_owned: int = 0
    """Number of files that another implementation has clustered, which only ``force`` rewrites."""
    rows_waiting: int = 0
    """Number of new rows that are not worth a rewrite yet."""
    groups_left: int = 0
    """Number of file groups whose rewrite pays, too, but exceeds the limits of the call."""
    bytes_left: int = 0
    """Bytes of their files."""
    bytes_anew: int = 0
    """Bytes of the partitions that hold more than one run, which ``force`` would rewrite."""
    saved_anew: float = 0.0
    """Share of what filters read from these partitions, from 0 to 1, that new fits of whole
    partitions would save, predicted from the bounds of files."""
    tiers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of hot, warm and cold files that may be rewritten by the other arguments; of the warm
    ones, how many are of unknown age. Empty without ``tiers``."""
    tiers_by: str = ""
    """Column of the tiers, and the moments between them."""
    files: pa.Table | None = field(default=None, repr=False, compare=False)
    """All live files of the table, with stats of the key columns, and with their ``tier``."""

    def __post_init__(self) -> None:
        mask_fields(self)

    @property
    def nothing_to_do(self) -> bool:
        """Whether no file needs a rewrite, or none is worth it."""
        return self.groups == 0

    @property
    def nothing_to_gain(self) -> bool:
        """Whether a rewrite is predicted to bring nothing, so that only ``force`` makes one."""
        return self.nothing_to_do and self.groups_declined > 0

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Return the fields as JSON values, and whether there is nothing to do."""
        return Facts.to_dict(self, files=files) | {"nothing_to_do": self.nothing_to_do}

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def facts(self) -> Mapping[str, str]:
        """Return the plan as readable facts, by name."""
        named = titled(self.table, self.format, self.version)
        if self.nothing_to_gain:
            reason = f"{self._shares()}; force=True (--force) rewrites"
            return {"table": named, "nothing to gain": reason}
        if self.nothing_to_do:
            done = "already clustered" if self.columns else f"too few small files; {_NOT_CLUSTERED}"
            reason = done if self.files_asked else "no file matches the condition"
            if self.tiers and self.tiers["hot"] == self.files_asked > 0:
                reason = "all files are hot"
            if self.rows_waiting:
                reason = f"{self.rows_waiting:,} new rows are not worth a rewrite yet"
            reason = reason if self.files_before else "the table has no files"
            return {"table": named, "nothing to do": reason, **self._rest()}
        facts = {
            "table": named,
            "layout": self._layout(),
            "files": f"{self.files_rewritten} of {self.files_before} -> {self.files_written}",
            "why": ", ".join(f"{reason}: {files}" for reason, files in self.reasons.items()),
            "bytes": show(self.bytes_rewritten),
            "rows": "unknown" if self.rows is None else f"{self.rows:,}",
        }
        if self.columns:
            shares = f"{self.share_before:.1%} of the rows -> {self.share_after:.1%}, predicted"
            facts["a filter reads"] = shares
        if self.row_group_share_before is not None:
            shares = (
                f"{self.row_group_share_before:.1%} -> {self.row_group_share_after:.1%}, predicted"
            )
            facts["by row group"] = shares
        if self.groups_declined:
            facts["nothing to gain"] = f"in {self.groups_declined} file groups, which are kept"
        return facts | self._rest()

    def _layout(self) -> str:
        size = f"files of {show(self.target_file_size)}"
        if not self.columns:
            return f"{size}, joined; {_NOT_CLUSTERED}"
        return f"{self.curve} by {', '.join(self.columns)}, {size}"

    def _rest(self) -> dict[str, str]:
        """Return what is left for later calls, and what a new fit would bring."""
        facts = dict[str, str]()
        if self.sort_order and not self.nothing_to_do:
            facts["sort order"] = (
                f"the table's own, {self.sort_order}, is not that of the new files"
            )
        if self.tiers:
            facts["tiers"] = self._tiers()
        if self.files_owned:
            facts["left alone"] = (
                f"{self.files_owned} files that another implementation has clustered; force=True "
                "(--force) rewrites them"
            )
        if self.groups_left:
            facts["left for later"] = f"{self.groups_left} file groups of {show(self.bytes_left)}"
        if self.saved_anew >= WORTH_NAMING:
            facts["a new fit"] = (
                f"filters would read {self.saved_anew:.0%} less, for {show(self.bytes_anew)} "
                "rewritten; force=True (--force)"
            )
        return facts

    def _tiers(self) -> str:
        unknown = f", {self.tiers['unknown']} of them of unknown age" * (self.tiers["unknown"] > 0)
        return (
            f"{self.tiers_by}: {self.tiers['hot']} files are hot and left alone, "
            f"{self.tiers['warm']} warm{unknown}, {self.tiers['cold']} cold"
        )

    def _shares(self) -> str:
        shares = f"{self.share_before:.1%} of the rows -> {self.share_after:.1%}"
        if self.row_group_share_before is not None:
            groups = f"{self.row_group_share_before:.1%} -> {self.row_group_share_after:.1%}"
            shares = f"{shares}, by row group {groups}"
        return f"a filter reads {shares}, predicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Method of comparison between the rows written and the rows read."""

    by: str
    """``"counts"``, or ``"checksum"`` if values were compared too."""
    read_twice: bool = False
    """Whether the checksum required a second read of the replaced files."""
    untested: str | None = None
    """The component of the session that zadapter was not tested with. It makes the rewrite use
    plain DataFrame operations and a checksum. None: no such component."""

    def __str__(self) -> str:
        twice = ", with a second read of the rows" if self.read_twice else ""
        reason = f"; plain Spark operations, untested with {self.untested}" if self.untested else ""
        return self.by + twice + reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Facts):
    """Result of an optimize."""

    plan: Plan
    versions: tuple[int | None, ...]
    """Committed versions; None for a commit that landed although its answer was lost."""
    files_removed: int
    files_added: int
    bytes_removed: int
    bytes_added: int
    rows: int
    """Rows in the committed files."""
    share_after: float
    """Mean share of the table's rows that a range filter reads now, according to the stats."""
    stale: tuple[str, ...]
    """File groups kept because another writer changed their files; one line each."""
    jobs_left: int = 0
    """Number of jobs that were not started in the time of the call."""
    seconds: Mapping[str, float]
    """Seconds by phase: plan, fit (sample, fit and predict), write, verify, commit, and total."""
    verification: Verification
    """Comparison of the rows; if no file needed a rewrite, the requested comparison."""
    files: pa.Table | None = field(default=None, repr=False, compare=False)
    """The files after the rewrite, with stats of the key columns; those before: ``plan.files``."""

    def __post_init__(self) -> None:
        mask_fields(self)

    @property
    def nothing_to_do(self) -> bool:
        """Whether no file needed a rewrite."""
        return self.plan.nothing_to_do

    @property
    def share_before(self) -> float:
        """Mean share of the table's rows that a range filter read before."""
        return self.plan.share_before

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Return the fields as JSON values, and whether there was nothing to do."""
        document = Facts.to_dict(self, files=files)
        document["plan"]["nothing_to_do"] = self.nothing_to_do
        return document

    def plot(self, columns: Sequence[str] | None = None) -> "Figure":
        """Draw the files' boxes in two key columns before and after, and the depth histograms.

        Args:
            columns: One or two key columns; None: the first ones.

        Returns:
            A figure of matplotlib.

        Raises:
            UsageError: No file has bounds of a column.
            MissingBackendError: matplotlib is not installed.
        """
        tables = [("before", self.plan.files), ("after", self.files)]
        drawn = [(title, files) for title, files in tables if files is not None]
        return clusters(drawn, columns or self.plan.columns[:2])

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def facts(self) -> Mapping[str, str]:
        """Return the report as readable facts, by name."""
        facts = dict(self.plan.facts())
        if self.plan.nothing_to_do:
            return facts
        facts["files"] = f"{self.files_removed} of {self.plan.files_before} -> {self.files_added}"
        facts["bytes"] = f"{show(self.bytes_removed)} -> {show(self.bytes_added)}"
        facts["rows"] = f"{self.rows:,}"
        if self.plan.columns:
            shares = f"{self.share_before:.1%} of the rows -> {self.share_after:.1%}"
            facts["a filter reads"] = shares
        facts["verified by"] = str(self.verification)
        facts["seconds"] = ", ".join(f"{name} {value:.1f}" for name, value in self.seconds.items())
        facts["committed"] = f"version {_listed(self.versions)}" if self.versions else "nothing"
        if self.jobs_left:
            facts["not started"] = f"{self.jobs_left} jobs, in the time of this call"
        if self.stale:
            facts["not rewritten"] = "; ".join(self.stale)
        return facts


def _listed(versions: Sequence[int | None]) -> str:
    return ", ".join("unknown" if version is None else str(version) for version in versions)
