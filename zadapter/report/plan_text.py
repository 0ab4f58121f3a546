"""Plans as text: facts by name, and one line beside other tables."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from zadapter.base.printable import listed
from zadapter.base.sizes import show
from zadapter.planning.cost import show_sum
from zadapter.planning.merges import Reason
from zadapter.report.facts import titled
from zadapter.report.hints import WORTH_NAMING, of_alike, of_effect
from zadapter.table.file_stats import live_rows

if TYPE_CHECKING:
    from zadapter.report.plan import Plan

_NOT_CLUSTERED = "the table is not clustered, pass by= (--by) to cluster it"
_YOUNG = "all files are too young"
_NO_GAIN = "nothing to gain"


class Summary(NamedTuple):
    """A plan or a report as a line; texts may be empty."""

    files: str
    read: str
    """Share of the rows that range filters scan."""
    outcome: str


def facts(plan: "Plan") -> Mapping[str, str]:
    """Return a plan as readable facts, by name."""
    named = {"table": titled(plan.table, plan.format, plan.version)}
    if plan.nothing_to_do:
        name, reason = _idle(plan)
        rest = {} if name == _NO_GAIN else _rest(plan)
        return named | {name: reason} | noted(plan, plan.share_after) | rest
    found = {
        **named,
        "layout": _layout(plan),
        "files": counted(plan, plan.files_rewritten, plan.files_written),
        "why": ", ".join(f"{reason}: {files}" for reason, files in plan.reasons.items()),
        "bytes": show(plan.bytes_rewritten),
        "rows": "unknown" if plan.rows is None else f"{plan.rows:,}",
    }
    if plan.columns:
        found["data scanned"] = f"{by_file(plan, plan.share_after)}, predicted"
    if groups := by_row_group(plan):
        found["by row group"] = groups
    found |= noted(plan, plan.share_after)
    found["cost"] = f"{plan.cost}, estimated"
    if plan.prices is not None:
        found["price"] = f"{show_sum(plan.price)}, estimated"
    if plan.groups_declined:
        found["nothing to gain"] = f"in {plan.groups_declined} file groups, which are kept"
    return found | _rest(plan)


def summary(plan: "Plan") -> Summary:
    """Return a plan as a line."""
    if plan.nothing_to_do:
        note = noted(plan, plan.share_after).values()
        return Summary("", "", "; ".join([": ".join(_idle(plan)), *note]))
    predicted = f"{by_file(plan, plan.share_after)}, predicted" if plan.columns else ""
    price = "" if plan.prices is None else f"; price {show_sum(plan.price)}, estimated"
    return Summary(
        files=counted(plan, plan.files_rewritten, plan.files_written),
        read=read(plan, predicted, plan.share_after),
        outcome=f"planned{price}",
    )


def counted(plan: "Plan", removed: int, added: int) -> str:
    """Return the numbers of replaced files, of all files, and of added files."""
    return f"{removed} of {plan.files_before} -> {added}"


def by_file(plan: "Plan", share_after: float) -> str:
    """Return the shares of the rows that filters read, by file."""
    return f"{plan.share_before:.1%} of the rows -> {share_after:.1%}"


def by_row_group(plan: "Plan") -> str:
    """Return the predicted shares by row group; empty: unknown."""
    if plan.row_group_share_before is None or plan.row_group_share_after is None:
        return ""
    shares = f"{plan.row_group_share_before:.1%} -> {plan.row_group_share_after:.1%}"
    all_files = plan.files_rewritten == plan.files_before
    return f"{shares}{'' if all_files else ' of the rows of the files to rewrite'}, predicted"


def noted(plan: "Plan", share_after: float) -> dict[str, str]:
    """Return a sentence on an effect that may surprise as a fact; none: no effect does.

    Args:
        plan: The plan.
        share_after: Share of the rows in files that filters read afterwards.
    """
    if not plan.columns or (plan.nothing_to_do and _nothing(plan)):
        return {}
    note = _nothing(plan) or of_alike(plan.alike, plan.columns)
    if not note and not plan.nothing_to_do:
        before, after = plan.row_group_share_before, plan.row_group_share_after
        groups = None if before is None or after is None else (before, after)
        files = plan.files_rewritten, plan.files_written
        anew = Reason.ANEW.value in plan.reasons
        note = of_effect((plan.share_before, share_after), groups, *files, anew=anew)
    return {"note": note} if note else {}


def read(plan: "Plan", shares: str, share_after: float) -> str:
    """Return the data scanned as one text: by file, by row group, and a note."""
    groups = by_row_group(plan)
    parts = [shares, groups and f"by row group {groups}", *noted(plan, share_after).values()]
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
        return f"{plan.rows_waiting:,} new rows are not worth a rewrite yet"
    if not plan.files_asked:
        return _YOUNG if plan.files_young else "no file matches the condition"
    if plan.tiers and plan.tiers["hot"] == plan.files_asked:
        return "all files are hot"
    return "already clustered" if plan.columns else f"too few small files; {_NOT_CLUSTERED}"


def _layout(plan: "Plan") -> str:
    size = f"files of {show(plan.target_file_size)}"
    if not plan.columns:
        return f"{size}, compacted; {_NOT_CLUSTERED}"
    blooms = f", Bloom filters on {listed(plan.bloom_filters)}" * bool(plan.bloom_filters)
    learned = f", learned from {plan.filters:,} filters" * bool(plan.filters)
    return f"{plan.curve} by {listed(plan.columns)}{learned}, {size}{blooms}"


def _rest(plan: "Plan") -> dict[str, str]:
    """Return what is left for later calls, and what a new fit would bring."""
    found = dict[str, str]()
    if plan.sort_order and not plan.nothing_to_do:
        found["sort order"] = f"the table's own, {plan.sort_order}, is not that of the new files"
    if plan.tiers:
        found["tiers"] = _tiers(plan)
    if plan.files_young:
        found["too young"] = f"{plan.files_young:,} files; min_age= (--min-age) leaves them alone"
    if plan.files_owned:
        found["left alone"] = (
            f"{plan.files_owned} files that another implementation has clustered; force=True "
            "(--force) rewrites them"
        )
    if plan.groups_left:
        found["left for later"] = f"{plan.groups_left} file groups of {show(plan.bytes_left)}"
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
