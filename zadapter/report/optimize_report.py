"""Report of an optimize."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zadapter.base.printable import abridge
from zadapter.base.quantities import show, show_count
from zadapter.base.secrets import mask_fields
from zadapter.planning.cost import Cost, show_sum
from zadapter.report import plan_text
from zadapter.report.facts import Facts
from zadapter.report.pictures.figures import clusters, with_bounds
from zadapter.report.plan import Plan
from zadapter.report.plan_text import Summary
from zadapter.report.write_result import WriteResult, format_versions, shown_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Method of comparison between the rows written and the rows read."""

    by: str
    """``"counts"``, or ``"checksum"`` if values were compared too."""
    read_twice: bool = False
    """Whether the checksum required a second read of the replaced files."""
    untested: str | None = None
    """The component of the session that zadapter was not tested with. It makes the rewrite use
    plain DataFrame operations and a checksum. None for no such component."""

    def __str__(self) -> str:
        twice = ", with a second read of the rows" if self.read_twice else ""
        reason = f"; plain Spark operations, untested with {self.untested}" if self.untested else ""
        return self.by + twice + reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """Rows that other writers deleted or updated while a rewrite moved them."""

    rows: int
    files: int
    """Written files that these rows were in."""
    seconds: float

    @staticmethod
    def add(one: "Rebased | None", other: "Rebased | None") -> "Rebased | None":
        """Return the sum of what two jobs have left out."""
        if one is None or other is None:
            return one or other
        return Rebased(
            rows=one.rows + other.rows,
            files=one.files + other.files,
            seconds=one.seconds + other.seconds,
        )

    def __str__(self) -> str:
        changed = f"{show_count(self.rows, 'rows')} that others deleted or updated"
        return f"{changed}, in {show_count(self.files, 'new files')}, {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(WriteResult):
    """Result of ``optimize``."""

    plan: Plan
    bytes_removed: int
    bytes_added: int
    share_after: float
    """Mean share of the table's rows that a range filter reads now, according to the stats."""
    stale: tuple[str, ...]
    """File groups kept because another writer changed their files; one line each."""
    rebased: Rebased | None = None
    """Rows that other writers deleted or updated during the call; None if there are none."""
    jobs_left: int = 0
    """Number of jobs that ``max_seconds`` left out."""
    cost: Cost
    """Cost of the call. Requests are estimated from the committed files."""
    run: str = ""
    """Id of the call. It is the group of its Spark jobs, unless the caller has set a group."""
    earlier_runs: tuple[str, ...] = ()
    """One line for each earlier call that did not end: its committed jobs, and what happened to its
    staged files."""
    verification: Verification
    """Comparison of the rows; if no file needed a rewrite, the requested comparison."""
    files: pa.Table | None = field(default=None, repr=False, compare=False)
    """The files after the rewrite, with statistics of the key columns. ``plan.files`` has the files
    before."""

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

    @property
    def price(self) -> float | None:
        """The sum of the cost; None if no prices are known, or a figure that has a price is not."""
        return None if self.plan.prices is None else self.plan.prices.sum(self.cost)

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Return the fields as JSON values, and the sum of the cost."""
        document = WriteResult.to_dict(self, files=files)
        return document | {"plan": self.plan.to_dict(files=files), "price": self.price}

    def plot(self, columns: Sequence[str] | None = None) -> "Figure":
        """Draw the files' boxes in two key columns before and after, and the depth histograms.

        Args:
            columns: One or two columns; None: the first key columns, or the first with bounds.

        Returns:
            A figure of matplotlib.

        Raises:
            UsageError: No file has bounds of a column.
            MissingBackendError: matplotlib is not installed.
        """
        tables = [("before", self.plan.files), ("after", self.files)]
        drawn = [(title, files) for title, files in tables if files is not None]
        return clusters(drawn, columns or self.plan.columns[:2] or with_bounds(self.plan.files))

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def facts(self) -> Mapping[str, str]:
        """Return the report as readable facts, by name."""
        facts = dict(self.plan.facts())
        if self.earlier_runs:
            facts["earlier runs"] = abridge(self.earlier_runs, "; ")
        if self.plan.nothing_to_do:
            return facts
        facts["files"] = plan_text.describe_files(self.plan, self.files_removed, self.files_added)
        sizes = f"{show(self.bytes_removed)} -> {show(self.bytes_added)}"
        facts["bytes"] = "; ".join(filter(None, (sizes, self._growth)))
        facts["rows"] = f"{self.rows_added:,}"
        facts.pop("note", None)
        if self.plan.columns:
            facts["data scanned"] = plan_text.describe_file_shares(self.plan, self.share_after)
            facts |= plan_text.note_effect(self.plan, self.share_after)
        facts["verified by"] = str(self.verification)
        facts["seconds"] = shown_seconds(self.seconds)
        facts["cost"] = str(self.cost)
        if self.plan.prices is not None:
            facts["price"] = show_sum(self.price)
        facts["committed"] = format_versions(self.versions)
        if self.rebased is not None:
            facts["rebased"] = str(self.rebased)
        if self.jobs_left:
            facts["not started"] = self._not_started
        if self.stale:
            facts["not rewritten"] = abridge(self.stale, "; ")
        return facts

    @property
    def _growth(self) -> str:
        if not self.plan.columns:
            return ""
        return plan_text.describe_growth(self.bytes_removed, self.bytes_added)

    @property
    def _not_started(self) -> str:
        return f"{self.jobs_left} jobs, in the time of this call"

    def summary(self) -> Summary:
        """Return the report as a line beside those of other tables."""
        plan = self.plan
        if plan.nothing_to_do:
            return plan.summary()
        outcome = [f"committed {format_versions(self.versions)}"]
        outcome += [] if self.rebased is None else [f"rebased: {self.rebased}"]
        outcome += [f"not started: {self._not_started}"] if self.jobs_left else []
        outcome += [f"not rewritten: {abridge(self.stale, '; ')}"] if self.stale else []
        outcome += [] if plan.prices is None else [f"price {show_sum(self.price)}"]
        outcome += [self._growth] if self._growth else []
        read = plan_text.describe_file_shares(plan, self.share_after) if plan.columns else ""
        return Summary(
            files=plan_text.describe_files(plan, self.files_removed, self.files_added),
            read=plan_text.read(plan, read, self.share_after),
            outcome="; ".join(outcome),
        )
