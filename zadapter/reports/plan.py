"""Plan of an optimize."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zadapter.base.secrets import mask_fields
from zadapter.base.sizes import show
from zadapter.pictures.figures import clusters, with_bounds
from zadapter.reports.cost import BYTES_A_CORE_SECOND, SHUFFLED, Cost, ObjectStore, Prices, show_sum
from zadapter.reports.facts import Facts, json_value, titled
from zadapter.table.file_stats import live_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORTH_NAMING = 0.05
"""Minimum share of the reads that a new fit saves to be named."""
_NOT_CLUSTERED = "the table is not clustered, pass by= (--by) to cluster it"
_YOUNG = "all files are too young"


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
    filters: int = 0
    """Number of filters of a query log that the layout is learned from."""
    bloom_filters: tuple[str, ...] = ()
    """Columns with a Bloom filter in each row group."""
    target_file_size: int
    """Target size of a written file, in bytes."""
    groups: int
    """Number of file groups to rewrite."""
    jobs: int = 0
    """Number of jobs: file groups that are rewritten in one pass, and published by one commit."""
    groups_declined: int = 0
    """Number of file groups that are kept, since a rewrite is predicted to bring nothing."""
    files_before: int
    """Number of live files of the table."""
    files_asked: int
    """Number of live files that may hold rows matching ``where``."""
    files_young: int = 0
    """Number of further such files that ``settle`` leaves to their writers."""
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
    gain: float = 0.0
    """Share of what filters read that the rewrite saves, from 0 to 1: of the rows in row groups
    where these shares are known and change, else of the rows in files."""
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
    object_store: ObjectStore | None = None
    """The store of the table, if it bills requests."""
    prices: Prices | None = None
    """Prices that the caller has passed."""
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

    @property
    def cost(self) -> Cost:
        """What the rewrite needs, estimated by the files to be replaced."""
        size = self.bytes_rewritten
        gets, puts = self.requests(self.files_rewritten, self.files_written, size, self.jobs)
        return Cost(
            bytes_read=size,
            bytes_written=size,
            bytes_shuffled=int(SHUFFLED * size) if self.columns else 0,
            get_requests=gets,
            put_requests=puts,
            core_seconds=size / BYTES_A_CORE_SECOND,
        )

    @property
    def price(self) -> float | None:
        """The sum of the estimated cost; None: no prices are known."""
        return None if self.prices is None else self.prices.sum(self.cost)

    def requests(self, read: int, written: int, size: int, commits: int) -> tuple[int, int]:
        """Estimate the requests to the store: see ``zadapter.reports.cost.ObjectStore``."""
        store = self.object_store
        if store is None:
            return 0, 0
        return store.requests(read=read, written=written, size=size, commits=commits)

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Return the fields as JSON values, what it costs, and whether there is nothing to do."""
        more = {"cost": self.cost, "price": self.price, "nothing_to_do": self.nothing_to_do}
        return Facts.to_dict(self, files=files) | dict(json_value(more))

    def plot(self, columns: Sequence[str] | None = None) -> "Figure":
        """Draw the files' boxes in two key columns as they are, and the depth histogram.

        Args:
            columns: One or two columns; None: the first key columns, or the first with bounds.

        Returns:
            A figure of matplotlib.

        Raises:
            UsageError: No file has bounds of a column.
            MissingBackendError: matplotlib is not installed.
        """
        drawn = [] if self.files is None else [("now", self.files)]
        return clusters(drawn, columns or self.columns[:2] or with_bounds(self.files))

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def facts(self) -> Mapping[str, str]:
        """Return the plan as readable facts, by name."""
        named = titled(self.table, self.format, self.version)
        if self.nothing_to_gain and not self._nothing:
            reason = f"{self._shares()}; force=True (--force) rewrites"
            return {"table": named, "nothing to gain": reason}
        if self.nothing_to_do:
            return {"table": named, "nothing to do": self._nothing or self._done, **self._rest()}
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
            shares = f"{self.row_group_share_before:.1%} -> {self.row_group_share_after:.1%}"
            all_files = self.files_rewritten == self.files_before
            of_these = "" if all_files else " of the rows of the files to rewrite"
            facts["by row group"] = f"{shares}{of_these}, predicted"
        facts["cost"] = f"{self.cost}, estimated"
        if self.prices is not None:
            facts["price"] = f"{show_sum(self.price)}, estimated"
        if self.groups_declined:
            facts["nothing to gain"] = f"in {self.groups_declined} file groups, which are kept"
        return facts | self._rest()

    @property
    def _nothing(self) -> str:
        """What the table lacks, so that there is nothing to do; empty: nothing."""
        if not self.files_before:
            return "the table has no files"
        return "" if self.files is None or live_rows(self.files) != 0 else "the table has no rows"

    @property
    def _done(self) -> str:
        """Why no file is to be rewritten."""
        if self.rows_waiting:
            return f"{self.rows_waiting:,} new rows are not worth a rewrite yet"
        if not self.files_asked:
            return _YOUNG if self.files_young else "no file matches the condition"
        if self.tiers and self.tiers["hot"] == self.files_asked:
            return "all files are hot"
        return "already clustered" if self.columns else f"too few small files; {_NOT_CLUSTERED}"

    def _layout(self) -> str:
        size = f"files of {show(self.target_file_size)}"
        if not self.columns:
            return f"{size}, joined; {_NOT_CLUSTERED}"
        blooms = f", Bloom filters on {', '.join(self.bloom_filters)}" * bool(self.bloom_filters)
        learned = f", learned from {self.filters:,} filters" * bool(self.filters)
        return f"{self.curve} by {', '.join(self.columns)}{learned}, {size}{blooms}"

    def _rest(self) -> dict[str, str]:
        """Return what is left for later calls, and what a new fit would bring."""
        facts = dict[str, str]()
        if self.sort_order and not self.nothing_to_do:
            facts["sort order"] = (
                f"the table's own, {self.sort_order}, is not that of the new files"
            )
        if self.tiers:
            facts["tiers"] = self._tiers()
        if self.files_young:
            facts["too young"] = f"{self.files_young:,} files; settle= (--settle) leaves them alone"
        if self.files_owned:
            facts["left alone"] = (
                f"{self.files_owned} files that another implementation has clustered; force=True "
                "(--force) rewrites them"
            )
        if self.groups_left:
            facts["left for later"] = f"{self.groups_left} file groups of {show(self.bytes_left)}"
        # beside a rewrite, it would be compared with the files before that rewrite
        if self.nothing_to_do and self.saved_anew >= WORTH_NAMING:
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
