"""The value that ``advise`` returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING

from zadapter.base.printable import abridge
from zadapter.base.quantities import show, show_count
from zadapter.base.secrets import mask_fields
from zadapter.layout.filters import Keys
from zadapter.layout.layout import Request
from zadapter.planning.effect import NOISE
from zadapter.planning.options import UNCHOSEN, Options
from zadapter.planning.relearning import Relearning
from zadapter.report.facts import Facts, Listing, describe_table, html
from zadapter.report.pictures.effects import Effects, effects
from zadapter.report.pictures.pages import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEARNED = "learned from the log"
"""Name of the candidate that is learned from the older part of the log alone. It is not advised:
one template that the log lacks may read several times as much of it as of the plain layout."""
STEADY = "most filtered columns, cuts learned"
"""Name of the candidate that cuts these columns about as often as the plain layout does."""
IN_TURN = "most filtered columns, in turn"
"""Name of the candidate that new queries judge the others by: the plain layout."""
SHOWN_JOINS = 3
"""Maximum number of joins that the facts name; a listing has all."""
SOON = 0.1
"""Days below which only the number of queries is shown."""
FEW = 20
"""Number of entries of a log below which predicted shares are no figures to rely on."""
_FORCED = "the layout of the table is kept, and force=True (--force) fits new cuts to it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A layout, and what the queries that it was not learned from read of it."""

    name: str
    keys: Keys | None
    """What ``optimize`` accepts as ``by``; None: the table as it is."""
    share: float
    """Mean share of the rows in files that these queries cannot skip, weighted."""
    row_group_share: float | None
    """The same in row groups; of the table as it is, estimated from some of its files. None: their
    footers cannot be read."""
    bytes_rewritten: int
    new_share: float | None = None
    """Mean share of the rows in files that queries unlike those of the log are expected to read:
    what each kind of filters reads where the layout is fitted to the other kinds alone. None: the
    log is too thin to tell."""
    new_row_group_share: float | None = None
    """The same in row groups."""

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
class JoinEffect:
    """Queries that filter a column of the table through a table that they join."""

    column: str
    """The column that is joined."""
    through: str
    """The joined table and its filtered columns."""
    queries: int
    """Number of entries of the log."""
    counted: int
    """Number of those that count as a range of the column. The ranges of the others span so many
    rows that no layout spares them any."""
    matching: float
    """Mean share of the joined table's keys that match."""
    share: float | None
    """Mean share of the table's rows between the lowest and the highest of these keys. None: the
    joined table was not read for this."""
    unread: str = ""
    """Why it was not read; empty: it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What a learned layout promised to its filters, and what they read now.

    The filters are stored with the layout. Each restricts one of its columns.
    """

    filters: int
    """Number of these filters."""
    promised: float
    """Mean share of the rows in files that they cannot skip, if the table were clustered for them
    again in the same number of files."""
    held: float
    """The same share of the table as it is."""
    elsewhere: float
    """Share of the newer queries, by weight, that restrict none of the layout's columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What ``by="auto"`` does with the layout that a table has."""

    relearning: Relearning
    """Whether the queries ask for another one."""
    keys: Keys = field(repr=False)
    """The layout that is learned from the newer part of the log if it is due, else the table's."""
    bloom_filters: tuple[str, ...] = ()
    """Columns with Bloom filters: the table's, and others that pay; none: those of the table."""
    _kept: Request | None = field(default=None, repr=False)
    """The layout that the table has and keeps; None: it does not keep it."""

    def apply(self, options: Options) -> Options:
        """Return options with this layout instead of a query log."""
        if self._kept is None:
            found = options.with_advice(self.keys, self.bloom_filters)
        else:
            found = options.with_layout(self._kept).with_bloom_filters(self.bloom_filters)
        if options.force and self._kept is not None:  # force= takes any layout that suits the log
            return replace(found, unchosen=f"{UNCHOSEN}; {_FORCED}")
        return replace(found, relearning=self.relearning)


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
    held_out: bool
    """Whether layouts were learned without the newer part. Otherwise both parts are the whole log,
    since only one of them has filters that can be learned from."""
    unused: Mapping[str, int]
    """Number of entries that have no usable filter, by reason."""
    rows: int
    """Rows of the table."""
    sampled: int
    """Number of sampled rows."""
    files: int
    """Number of files that the best layout is predicted with, or else the table's. Layouts of other
    columns may get another number, as a rewrite would write them."""
    candidates: tuple[Candidate, ...]
    """The table as it is first, then the layouts, best first."""
    best: Keys | None = field(repr=False)
    """The value of ``by`` for ``optimize``: the best layout, fitted to the whole log. None for no
    layout is better than the current one."""
    bloom_filters: Mapping[str, BloomFilterEffect]
    """The value of ``bloom_filters`` for ``optimize``: columns whose equality filters need a Bloom
    filter, with the effect on the newer part of the log."""
    queries: tuple[QueryEffect, ...] = field(repr=False)
    """The filters of the newer part of the log, those that gain most first."""
    joins: tuple[JoinEffect, ...] = ()
    """Columns that queries filter through tables that they join, the most frequent first."""
    newer_columns: tuple[str, ...] = ()
    """Columns that could be keys, and that only queries of the newer part filter."""
    queries_a_day: float | None = None
    """Number of filters that queries of the log apply per day. None: the log has no times."""
    too_thin: str = ""
    """Why the log does not tell what queries unlike its own read; empty if it does."""
    drift: Drift | None = None
    """What the current layout promised. None: it was not learned from a log."""
    again: Again | None = None
    """What ``by="auto"`` does with the current layout. None: the table has none."""

    def __post_init__(self) -> None:
        mask_fields(self)

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def _repr_html_(self) -> str:
        return html(self) + drawing(self.plot)

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
            "table": describe_table(self.table, self.format, self.version),
            "log": f"{show_count(self.entries, 'entries')}, {show_count(self.filters, 'filters')}, "
            f"{show_count(unused, 'entries')} unused",
            "learned from": f"{show_count(self.learned_from, 'filters')}, the "
            f"{'older part of the log' if self.held_out else 'whole log'}",
            "judged by": f"{show_count(self.judged_by, 'filters')}, {self._newer()}",
            "predicted": f"with {show_count(self.files, 'files')}, from "
            f"{show_count(self.sampled, 'sampled rows')}",
        }
        if self.chosen is None:
            reason = "is expected to let all queries" if self._rejected() else "lets these queries"
            facts["advice"] = (
                f"keep the current layout: no layout below {reason} read far fewer rows by file "
                "and no more by row group"
            )
        else:
            chosen = self.chosen
            again = "learn again, " if self.drift is not None and chosen.name == STEADY else ""
            facts["advice"] = f"{again}{chosen.name}: {chosen.keys}"
            facts["a query reads"] = (
                f"{self.today.share:.1%} of the rows -> {chosen.share:.1%}, predicted"
            )
            facts["pays after"] = f"{self._format_payback(chosen)}, in bytes read"
        facts["new queries"] = self._describe_new_queries()
        if self.bloom_filters:
            facts["Bloom filters"] = f"on {abridge(self.bloom_filters)}"
        facts |= _describe_joins(self.joins)
        if self.drift is not None:
            facts["drift"] = _describe_drift(self.drift, self.today.share)
        if self.again is not None:
            facts['by="auto"'] = str(self.again.relearning)
        if self.newer_columns:
            facts["only newer"] = (
                f"queries filter {abridge(self.newer_columns)}, but older ones do not; "
                "candidates= (--candidates) compares layouts by other columns"
            )
        return facts

    def _rejected(self) -> Candidate | None:
        """Return the layout of which queries of the log read least, if others made it a risk."""
        chosen = self.chosen or self.today
        better = [
            each
            for each in self.candidates[1:]
            if each.share < self.today.share * (1 - NOISE)
            and (each.row_group_share or 0.0) < (chosen.row_group_share or 1.0)
        ]
        return min(better, key=lambda each: each.row_group_share or 0.0, default=None)

    def _describe_new_queries(self) -> str:
        """Return what queries unlike those of the log are expected to read, as text."""
        rejected = self._rejected()
        if self.too_thin:
            fitted = f"; so {rejected.name!r} is not advised" if rejected else ""
            return f"unknown: {self.too_thin} to tell what others read{fitted}"
        chosen = self.chosen or self.today
        text = f"expected to read {_format_new(chosen)} by file / by row group"
        if rejected is None or rejected.new_share is None:
            return text
        if rejected.name == LEARNED:
            risk = "one new kind of queries may read several times as much as of columns in turn"
            return f"{text}; {LEARNED!r} is not advised: {_format_new(rejected)}, and {risk}"
        plain = next((each for each in self.candidates if each.name == IN_TURN), chosen)
        return (
            f"{text}; {rejected.name!r} is not advised: {_format_new(rejected)}, "
            f"and {plain.name!r} {_format_new(plain)}"
        )

    def _newer(self) -> str:
        """Describe the part of the log that layouts are judged by."""
        if not self.held_out:
            return "the same: only one part of the log filters possible keys, so expect less"
        few = f", but {self.entries:,} entries are too few to rely on" if self.entries < FEW else ""
        return f"the newer part{few}"

    def pays_after_days(self, each: Candidate) -> float | None:
        """Return after how many days of such queries a rewrite has paid for itself in bytes read.

        None: it saves nothing, or the log has no times.
        """
        queries = each.pays_after(self.today)
        return queries / self.queries_a_day if queries and self.queries_a_day else None

    def plot(self) -> "Figure":
        """Draw what queries read before and after, and what all queries read of each layout.

        Returns:
            A figure of matplotlib.

        Raises:
            MissingBackendError: matplotlib is not installed.
        """
        return effects(
            Effects(
                title=f"{self.table}: {show_count(self.judged_by, 'filters')}",
                after="" if self.chosen is None else self.chosen.name,
                labels=tuple(each.where for each in self.queries),
                weights=tuple(each.weight for each in self.queries),
                shares=tuple((each.before, each.after) for each in self.queries),
                layouts=tuple((each.name, each.share) for each in self.candidates),
            )
        )

    def listings(self) -> Sequence[Listing]:
        """Return candidates, Bloom filters, queries that gain and lose most, and unused entries."""
        return (
            Listing(
                "layouts",
                (
                    *("layout", "columns", "by file", "by row group", "new queries"),
                    *("rewritten", "pays after"),
                ),
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
                "joins",
                ("column", "through", "queries", "counted", "keys that match", "rows in the range"),
                tuple(map(_join_row, self.joins)),
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
        return (
            each.name,
            "" if each.keys is None else str(each.keys),
            f"{each.share:.1%}",
            groups,
            _format_new(each),
            show(each.bytes_rewritten) if each.bytes_rewritten else "",
            self._format_payback(each),
        )

    def _format_payback(self, each: Candidate) -> str:
        """Return after how long a rewrite has paid, as text; empty: never."""
        queries, days = each.pays_after(self.today), self.pays_after_days(each)
        if queries is None:
            return ""
        in_days = "" if days is None or days < SOON else f"{days:,.1f} days, "
        return f"{in_days}{show_count(queries, 'queries')}"

    def _extremes(self) -> tuple[QueryEffect, ...]:
        """Return the queries that gain most, and those that lose most."""
        losing = tuple(each for each in self.queries[10:][-10:] if each.after > each.before)
        return (*self.queries[:10], *losing)


def _format_new(each: Candidate) -> str:
    """Return what new queries are expected to read, by file and by row group; empty if unknown."""
    shares = (each.new_share, each.new_row_group_share)
    return " / ".join(f"{share:.1%}" for share in shares if share is not None)


def _describe_joins(joins: Sequence[JoinEffect]) -> dict[str, str]:
    """Return the joins that count, that no layout helps, and that are unknown, as facts by name."""
    counted = [each for each in joins if each.counted]
    wide = [each for each in joins if not each.counted and each.share is not None]
    facts = {}
    if counted:
        shown = [f"{_show_queries(e.counted)} {e.column} through {e.through}" for e in counted]
        facts["joins"] = (
            f"{_first(shown)}; they count as ranges of keys, by which DuckDB and Trino skip rows, "
            "and Spark does not"
        )
    if wide:
        shown = [f"{e.column} through {e.through} ({e.share:.0%} of the rows)" for e in wide]
        facts["joins of wide ranges"] = (
            f"{_first(shown)}: no layout helps these filters, since keys that match lie among all "
            "others; keys in the order of the filtered column, or a copy of it in this table, would"
        )
    if unread := [f"{e.column} through {e.through} ({e.unread})" for e in joins if e.unread]:
        facts["joins not counted"] = f"{_first(unread)}: the keys that match are not known"
    return facts


def _show_queries(count: int) -> str:
    return f"{show_count(count, 'queries')} {'filters' if count == 1 else 'filter'}"


def _first(shown: Sequence[str]) -> str:
    """Return the first of some texts, and the number of the others."""
    more = len(shown) - SHOWN_JOINS
    return ", ".join([*shown[:SHOWN_JOINS], *([f"{more} more"] if more > 0 else [])])


def _join_row(each: JoinEffect) -> tuple[object, ...]:
    known = each.share is not None
    return (
        *(each.column, each.through, f"{each.queries:,}", f"{each.counted:,}"),
        f"{each.matching:.1%}" if known else "",
        f"{each.share:.1%}" if known else "not read",
    )


def _describe_drift(drift: Drift, share: float) -> str:
    """Return what a layout promised and what queries read, as text."""
    elsewhere = f"; {drift.elsewhere:.0%} filter none of its columns" if drift.elsewhere else ""
    return (
        f"promised {drift.promised:.1%} to the {show_count(drift.filters, 'filters')} that "
        f"it was learned from, which read {drift.held:.1%} now; these queries read "
        f"{share:.1%}{elsewhere}"
    )
