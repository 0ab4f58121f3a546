"""The value that ``advise`` returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from zadapter.base.secrets import mask_fields
from zadapter.base.sizes import show
from zadapter.layout.filters import Keys
from zadapter.reports.facts import Facts, Listing, titled


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A layout, and what the queries that it was not learned from read of it."""

    name: str
    keys: Keys | None
    """What ``optimize`` accepts as ``by``; None: the table as it is."""
    share: float
    """Mean share of the rows in files that these queries cannot skip, weighted."""
    row_group_share: float | None
    """The same in row groups; None: their bounds were not read."""
    share_learned: float
    """Mean share by file of the queries that it was learned from."""
    bytes_rewritten: int

    def pays_after(self, today: "Candidate") -> int | None:
        """Return after how many queries a rewrite has saved as many bytes as it reads and writes.

        None: it saves nothing.
        """
        saved = today.share - self.share
        return ceil(2 / saved) if saved > 0 and self.bytes_rewritten else None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEffect:
    """A filter of the log, and the shares of the rows in files that it cannot skip."""

    where: str
    weight: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomFilterEffect:
    """What the queries that look for values of a column read, with Bloom filters and without."""

    weight: float
    """Share of these queries in the log."""
    row_group_share: float
    """Mean share of the rows in row groups that they cannot skip by bounds."""
    row_group_share_filtered: float
    """The same with Bloom filters."""
    bytes: int
    """Size of the filters, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice(Facts):
    """Layouts for the queries of a log, each judged by queries that it was not learned from."""

    table: str
    format: str
    version: int | None
    entries: int
    """Entries of the log."""
    filters: int
    """Distinct filters of these entries."""
    learned_from: int
    """Number of filters in the older part of the log."""
    judged_by: int
    """Number of filters in the newer part."""
    unused: Mapping[str, int]
    """Number of entries that have no usable filter, by reason."""
    rows: int
    """Rows of the table."""
    sampled: int
    """Number of sampled rows."""
    files: int
    """Number of files that the layouts are predicted with."""
    candidates: tuple[Candidate, ...]
    """Today's table first, then the layouts, best first."""
    best: Keys | None = field(repr=False)
    """What ``optimize`` accepts as ``by``: the best layout, fitted to the whole log; None: no
    layout is better than today's files."""
    bloom_filters: Mapping[str, BloomFilterEffect]
    """What ``optimize`` accepts as ``bloom_filters``: columns whose equality filters no cut serves,
    with the effect on the newer part of the log."""
    queries: tuple[QueryEffect, ...] = field(repr=False)
    """The filters of the newer part of the log, those that gain most first."""

    def __post_init__(self) -> None:
        mask_fields(self)

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    @property
    def today(self) -> Candidate:
        """The table as it is."""
        return self.candidates[0]

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that is best; None: the table as it is."""
        return None if self.best is None else self.candidates[1]

    def facts(self) -> Mapping[str, str]:
        """Return the advice as readable facts, by name."""
        unused = sum(self.unused.values())
        facts = {
            "table": titled(self.table, self.format, self.version),
            "log": f"{self.entries:,} entries, {self.filters:,} filters, {unused:,} entries unused",
            "learned from": f"{self.learned_from:,} filters, the older part of the log",
            "judged by": f"{self.judged_by:,} filters, the newer part",
            "predicted": f"with {self.files:,} files, from {self.sampled:,} sampled rows",
        }
        if self.chosen is None:
            facts["advice"] = "leave it as it is: no layout lets these queries read less"
        else:
            chosen = self.chosen
            facts["advice"] = f"{chosen.name}: {chosen.keys}"
            facts["a query reads"] = (
                f"{self.today.share:.1%} of the rows -> {chosen.share:.1%}, predicted"
            )
            facts["pays after"] = f"{chosen.pays_after(self.today):,} queries, in bytes read"
        if self.bloom_filters:
            facts["Bloom filters"] = f"on {', '.join(self.bloom_filters)}"
        return facts

    def listings(self) -> Sequence[Listing]:
        """Return candidates, Bloom filters, queries that gain and lose most, and unused entries."""
        return (
            Listing(
                "layouts",
                ("layout", "columns", "by file", "by row group", "rewritten", "pays after"),
                tuple(self._row(each) for each in self.candidates),
            ),
            Listing(
                "Bloom filters",
                ("column", "queries", "row groups read", "then", "bytes"),
                tuple(
                    (
                        column,
                        f"{each.weight:.1%}",
                        f"{each.row_group_share:.1%}",
                        f"{each.row_group_share_filtered:.1%}",
                        show(each.bytes),
                    )
                    for column, each in self.bloom_filters.items()
                ),
            ),
            Listing(
                "queries",
                ("filter", "weight", "reads now", "then"),
                tuple(
                    (each.where, f"{each.weight:g}", f"{each.before:.1%}", f"{each.after:.1%}")
                    for each in self._extremes()
                ),
                len(self.queries),
            ),
            Listing("unused entries", ("reason", "entries"), tuple(self.unused.items())),
        )

    def _row(self, each: Candidate) -> tuple[object, ...]:
        groups = "" if each.row_group_share is None else f"{each.row_group_share:.1%}"
        queries = each.pays_after(self.today)
        return (
            each.name,
            "" if each.keys is None else str(each.keys),
            f"{each.share:.1%}",
            groups,
            show(each.bytes_rewritten) if each.bytes_rewritten else "",
            "" if queries is None else f"{queries:,} queries",
        )

    def _extremes(self) -> tuple[QueryEffect, ...]:
        """Return the queries that gain most, and those that lose most."""
        losing = tuple(each for each in self.queries[10:][-10:] if each.after > each.before)
        return (*self.queries[:10], *losing)
