"""Plans as text: facts by name, one line beside other tables, and notes on surprising effects."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from zadapter.base.printable import abridge
from zadapter.base.quantities import show, show_count
from zadapter.planning.cost import show_sum
from zadapter.planning.merges import Reason
from zadapter.report.facts import describe_table
from zadapter.table.file_stats import live_rows

if TYPE_CHECKING:
    from zadapter.report.plan import Plan

_NOT_CLUSTERED = "the table is not clustered, pass by= (--by) to cluster it"
_YOUNG = "all files are too young"
_NO_GAIN = "nothing to gain"

WORTH_NAMING = 0.05
"""Minimum share of the reads that a rewrite saves, or adds, to be named."""
_LEAST = 0.001
"""Difference between two shares that counts as none, however small they are."""
_AS_MUCH = "filters read about as much as before"
_HALF = 2
"""A rewrite joins files if it writes at most one for this number of files."""
GROWTH = 1.25
"""How many times larger than the replaced files the written ones may be without a word."""
_GROWN = (
    "small row groups may be why (row_groups=, target_file_size=), or the new order, another codec "
    "or Bloom filters"
)


class Summary(NamedTuple):
    """A plan or a report as a line; texts may be empty."""

    files: str
    read: str
    """Share of the rows that range filters scan."""
    outcome: str


def facts(plan: "Plan") -> Mapping[str, str]:
    """Return a plan as readable facts, by name."""
    named = {
        "table": describe_table(plan.table, plan.format, plan.version),
        **describe_queries(plan),
    }
    if plan.nothing_to_do:
        name, reason = _idle(plan)
        rest = {} if name == _NO_GAIN else _rest(plan)
        return named | {name: reason} | note_effect(plan, plan.share_after) | rest
    found = {
        **named,
        "layout": _layout(plan),
        "files": describe_files(plan, plan.files_rewritten, plan.files_written),
        "why": ", ".join(f"{reason}: {files}" for reason, files in plan.reasons.items()),
        "bytes": show(plan.bytes_rewritten),
        "rows": "unknown" if plan.rows is None else f"{plan.rows:,}",
    }
    if plan.columns:
        found["data scanned"] = f"{describe_file_shares(plan, plan.share_after)}, predicted"
    if groups := describe_row_group_shares(plan):
        found["by row group"] = groups
    found |= note_effect(plan, plan.share_after)
    found["cost"] = f"{plan.cost}, estimated"
    if plan.prices is not None:
        found["price"] = f"{show_sum(plan.price)}, estimated"
    if plan.groups_declined:
        found["nothing to gain"] = f"in {plan.groups_declined} file groups, which are kept"
    return found | _rest(plan)


def describe_queries(plan: "Plan") -> dict[str, str]:
    """Return what a query log has done to the layout as a fact; none: it was not asked."""
    told = plan.unchosen if plan.relearning is None else str(plan.relearning)
    return {"queries": told} if told else {}


def summary(plan: "Plan") -> Summary:
    """Return a plan as a line."""
    if plan.nothing_to_do:
        note = note_effect(plan, plan.share_after).values()
        return Summary("", "", "; ".join([": ".join(_idle(plan)), *note]))
    predicted = f"{describe_file_shares(plan, plan.share_after)}, predicted" if plan.columns else ""
    price = "" if plan.prices is None else f"; price {show_sum(plan.price)}, estimated"
    return Summary(
        files=describe_files(plan, plan.files_rewritten, plan.files_written),
        read=read(plan, predicted, plan.share_after),
        outcome=f"planned{price}",
    )


def describe_files(plan: "Plan", removed: int, added: int) -> str:
    """Return the numbers of replaced files, of all files, and of added files."""
    return f"{removed} of {plan.files_before} -> {added}"


def describe_file_shares(plan: "Plan", share_after: float) -> str:
    """Return the shares of the rows that filters read, by file."""
    return f"{plan.share_before:.1%} of the rows -> {share_after:.1%}"


def describe_row_group_shares(plan: "Plan") -> str:
    """Return the predicted shares by row group; empty if it is unknown."""
    if plan.row_group_share_before is None or plan.row_group_share_after is None:
        return ""
    shares = f"{plan.row_group_share_before:.1%} -> {plan.row_group_share_after:.1%}"
    all_files = plan.files_rewritten == plan.files_before
    return f"{shares}{'' if all_files else ' of the rows of the files to rewrite'}, predicted"


def note_effect(plan: "Plan", share_after: float) -> dict[str, str]:
    """Return a sentence on an effect that may surprise as a fact; none: no effect does.

    Args:
        plan: The plan.
        share_after: Share of the rows in files that filters read afterwards.
    """
    if not plan.columns or (plan.nothing_to_do and _nothing(plan)):
        return {}
    note = _nothing(plan) or describe_constant(plan.alike, plan.columns)
    if not note and not plan.nothing_to_do:
        before, after = plan.row_group_share_before, plan.row_group_share_after
        groups = None if before is None or after is None else (before, after)
        files = plan.files_rewritten, plan.files_written
        recut = Reason.ANEW.value in plan.reasons
        note = describe_effect((plan.share_before, share_after), groups, *files, recut=recut)
    return {"note": note} if note else {}


def read(plan: "Plan", shares: str, share_after: float) -> str:
    """Return the data scanned as one text: by file, by row group, and a note."""
    groups = describe_row_group_shares(plan)
    parts = [shares, groups and f"by row group {groups}", *note_effect(plan, share_after).values()]
    return "; ".join(part for part in parts if part)


def _idle(plan: "Plan") -> tuple[str, str]:
    """Return what a plan without work is: nothing to do or to gain, and why."""
    if plan.nothing_to_gain and not _nothing(plan):
        return _NO_GAIN, f"{_shares(plan)}; force=True (--force) rewrites"
    return "nothing to do", _nothing(plan) or _done(plan)


def _nothing(plan: "Plan") -> str:
    """What the table lacks, so that there is nothing to do; empty: nothing."""
    if not plan.files_before:
        return "the table has no files"
    return "" if plan.files is None or live_rows(plan.files) != 0 else "the table has no rows"


def _done(plan: "Plan") -> str:
    """Why no file is to be rewritten."""
    if plan.rows_waiting:
        return f"not worth a rewrite yet: {show_count(plan.rows_waiting, 'new rows')}"
    if not plan.files_asked:
        return _YOUNG if plan.files_young else "no file matches the condition"
    if plan.tiers and plan.tiers["hot"] == plan.files_asked:
        return "all files are hot"
    return "already clustered" if plan.columns else f"too few small files; {_NOT_CLUSTERED}"


def _layout(plan: "Plan") -> str:
    size = f"files of {show(plan.target_file_size)}"
    if not plan.columns:
        return f"{size}, compacted; {_NOT_CLUSTERED}"
    blooms = f", Bloom filters on {abridge(plan.bloom_filters)}" * bool(plan.bloom_filters)
    learned = f", learned from {show_count(plan.filters, 'filters')}" * bool(plan.filters)
    return f"{plan.curve} by {abridge(plan.columns)}{learned}, {size}{blooms}"


def _rest(plan: "Plan") -> dict[str, str]:
    """Return what is left for later calls, and what a new fit would bring."""
    found = dict[str, str]()
    if plan.sort_order and not plan.nothing_to_do:
        found["sort order"] = f"the table's own, {plan.sort_order}, is not that of the new files"
    if plan.tiers:
        found["tiers"] = _tiers(plan)
    if plan.files_young:
        found["too young"] = f"{show_count(plan.files_young, 'files')}, by min_age= (--min-age)"
    if plan.files_owned:
        found["left alone"] = (
            f"{show_count(plan.files_owned, 'files')}, clustered by another implementation; "
            "force=True (--force) rewrites all files"
        )
    if plan.groups_left:
        found["left for later"] = (
            f"{show_count(plan.groups_left, 'file groups')} of {show(plan.bytes_left)}"
        )
    # beside a rewrite, it would be compared with the files before that rewrite
    if plan.nothing_to_do and plan.saved_anew >= WORTH_NAMING:
        found["a new fit"] = (
            f"filters would read {plan.saved_anew:.0%} less, for {show(plan.bytes_anew)} "
            "rewritten; force=True (--force)"
        )
    return found


def _tiers(plan: "Plan") -> str:
    unknown = f", {plan.tiers['unknown']} of them of unknown age" * (plan.tiers["unknown"] > 0)
    return (
        f"{plan.tiers_by}: {plan.tiers['hot']} files are hot and left alone, "
        f"{plan.tiers['warm']} warm{unknown}, {plan.tiers['cold']} cold"
    )


def _shares(plan: "Plan") -> str:
    shares = f"{plan.share_before:.1%} of the rows -> {plan.share_after:.1%}"
    if plan.row_group_share_before is not None:
        groups = f"{plan.row_group_share_before:.1%} -> {plan.row_group_share_after:.1%}"
        shares = f"{shares}, by row group {groups}"
    return f"range filters scan {shares}, predicted"


def describe_constant(alike: Sequence[str], columns: Sequence[str]) -> str:
    """Explain key columns without different values; empty: all have some.

    Args:
        alike: The key columns of which all rows have one value, or null.
        columns: All key columns.
    """
    if not alike:
        return ""
    names = abridge(alike)
    if len(alike) == len(columns):
        return (
            f"all rows have the same value of {names}, or null, so filters on it skip no file; "
            "choose other key columns"
        )
    return f"all rows have the same value of {names}, or null; leave it out of the key columns"


def describe_growth(before: int, after: int) -> str:
    """Say that a rewrite by keys has made the files larger, and what may be why; empty: it has not.

    >>> describe_growth(8_000_000, 9_000_000)
    ''
    >>> describe_growth(8_000_000, 16_000_000)
    'the rows take 2.0 x the bytes; small row groups may be why (row_groups=, target_file_size=), \
or the new order, another codec or Bloom filters'
    """
    if not before or after <= GROWTH * before:
        return ""
    return f"the rows take {after / before:.1f} x the bytes; {_GROWN}"


def describe_effect(
    by_file: tuple[float, float],
    by_row_group: tuple[float, float] | None,
    files_before: int,
    files_after: int,
    *,
    recut: bool,
) -> str:
    """Explain the shares that filters read before and after; empty: they need no note.

    Args:
        by_file: Shares of the rows in files that filters read.
        by_row_group: Shares of the rows in row groups; None if it is unknown.
        files_before: Number of files to be replaced.
        files_after: Number of files to be written.
        recut: Whether files that are clustered get new cuts.
    """
    files = _compute_change(*by_file)
    groups = None if by_row_group is None else _compute_change(*by_row_group)
    if not files and not groups:
        if _HALF * files_after <= files_before:
            return f"{_AS_MUCH}, from fewer files"
        return f"{_AS_MUCH}: new cuts do not make these files better" if recut else ""
    if files >= 0:
        worse = groups is not None and groups < 0
        return "filters skip more files, but read more row groups of the others" if worse else ""
    number = f"{files_after:,} file{'s' * (files_after != 1)}"
    if groups is None:
        return f"by file, filters read more: the rows are in {number}; row groups are not judged"
    if groups > 0:
        return (
            f"by file, filters read more, since the rows are in {number}; readers skip row groups "
            "within a file, and by row group they read less"
        )
    return "filters read more than before, by file and not less by row group"


def _compute_change(before: float, after: float) -> float:
    """Return what filters read less, negative if more, or 0 if it is not worth a word."""
    return before - after if abs(after - before) > max(WORTH_NAMING * before, _LEAST) else 0.0
