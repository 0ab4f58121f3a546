"""Plan of an optimize."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zadapter.base.secrets import mask_fields
from zadapter.errors import UsageError
from zadapter.planning.cost import BYTES_A_CORE_SECOND, SHUFFLED, Cost, ObjectStore, Prices
from zadapter.planning.relearning import Relearning
from zadapter.report import plan_text
from zadapter.report.facts import Facts, json_value
from zadapter.report.pictures.figures import clusters, with_bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from zadapter.report.optimize_report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Facts):
    """Predicted effect of ``optimize``, from a sample; nothing was written."""

    table: str
    format: str
    version: int | None
    """The version that was read; None: a folder that is not registered as a table."""
    columns: tuple[str, ...]
    """Key columns. Empty: small files are compacted, and no row is sorted."""
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
    """Number of jobs: file groups that are rewritten in one pass and committed together."""
    groups_declined: int = 0
    """Number of file groups that are kept, since a rewrite is predicted to bring nothing."""
    files_before: int
    """Number of live files of the table."""
    files_asked: int
    """Number of live files that may hold rows matching ``where``."""
    files_young: int = 0
    """Number of further such files that ``min_age`` skips."""
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
    reads now (see ``zadapter.layout.predict`` for the filters)."""
    share_after: float
    """The predicted share after the rewrite. If all groups are declined, the share that a rewrite
    with ``force`` would bring."""
    row_group_share_before: float | None = None
    """Mean share of the rows of these groups, from 0 to 1, in row groups that such a filter reads
    now, according to some footers; None if it is unknown."""
    row_group_share_after: float | None = None
    """The predicted share of the rows in row groups after the rewrite; None if it is unknown."""
    alike: tuple[str, ...] = ()
    """Key columns of which all rows have one value, or null, according to the stats."""
    gain: float = 0.0
    """Share of the data scanned by range filters that the rewrite saves, from 0 to 1: by row group
    if these shares are known and change, else by file."""
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of files to be replaced, by the reason why."""
    sort_order: str = ""
    """Sort order of the table's definition, which the new files do not have."""
    files_owned: int = 0
    """Number of files that another implementation has clustered, which only ``force`` rewrites."""
    rows_waiting: int = 0
    """Number of new rows that are not worth a rewrite yet."""
    groups_left: int = 0
    """Number of file groups whose rewrite also pays, but exceeds the limits of the call."""
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
    relearning: Relearning | None = None
    """Whether a query log has changed the table's layout; None: it was not asked."""
    unchosen: str = ""
    """Why a query log has chosen no layout; empty: it has, or was not asked."""
    files: pa.Table | None = field(default=None, repr=False, compare=False)
    """All live files of the table, with stats of the key columns, and with their ``tier``."""
    _runner: "Callable[[], Report] | None" = field(default=None, repr=False, compare=False)
    """Runs the plan; None: it was not returned by ``plan``."""

    def __post_init__(self) -> None:
        mask_fields(self)

    def run(self) -> "Report":
        """Rewrite what is planned, without planning or sampling again.

        Other writers may have added files since, which stay as they are. The plan may be pickled,
        and run by another process: there, the active session is used.

        Returns: The same report as :func:`zadapter.optimize`.

        Raises:
            StaleRewriteError: A file to rewrite, the table's definition or the layout that its
                files have is no longer as planned. Nothing was written; plan again.
            UsageError: The plan is that of a report, or was made otherwise.

        The other errors are those of :func:`zadapter.optimize`.
        """
        if self._runner is None:
            raise UsageError("only what zadapter.plan returns can be run; call zadapter.plan")
        return self._runner()

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
        """Cost of the rewrite, estimated from the files to be replaced."""
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
        """The sum of the estimated cost; None if no prices are known."""
        return None if self.prices is None else self.prices.sum(self.cost)

    def requests(self, read: int, written: int, size: int, commits: int) -> tuple[int, int]:
        """Estimate the requests to the store: see ``zadapter.planning.cost.ObjectStore``."""
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
        return plan_text.facts(self)

    def summary(self) -> plan_text.Summary:
        """Return the plan as a line beside those of other tables."""
        return plan_text.summary(self)
