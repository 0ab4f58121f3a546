"""One page of HTML of all tables of a lake: what a run has found, and the trend up to it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from zadapter.base.printable import shared_folder
from zadapter.base.quantities import show, show_count
from zadapter.lake import journal
from zadapter.lake.journal import Line
from zadapter.planning.cost import show_sum
from zadapter.report.facts import Listing, format_cell
from zadapter.report.pictures.pages import page
from zadapter.report.pictures.sparklines import STYLE, Shares, sparkline

RUNS = 30
"""Number of runs of a trend."""
_GROUPS: Mapping[str, frozenset[str]] = {
    "failed": frozenset({journal.FAILED}),
    "due": frozenset({journal.DUE}),
    "with rewrites left": frozenset({journal.WAITS, journal.IN_PART}),
    "declined": frozenset({journal.DECLINED}),
    "done": frozenset({journal.REWRITTEN, journal.NOTHING_TO_DO}),
    "left out": frozenset({journal.LEFT_OUT}),
}
"""Verdicts by groups of tables, worst first."""
_COLOURS = {"failed": "bad", "due": "soon", "with rewrites left": "soon", "done": "good"}
"""Classes of groups."""
_ORDER = (
    "Worst first: by group, and in a group by the share of data that filters scan after the run, "
    "then by nights waited and bytes."
)
_SCANNED = (
    "Data scanned is the mean share of a table's rows in files that a range filter on its keys "
    "cannot skip, from the log: before the run and after it. Predicted shares are marked."
)
_TREND = (
    "A trend shows data scanned as a line from 0 to 100%, which falls where a rewrite has helped "
    "and rises with what was written since, and the bytes rewritten as bars. The newest run is on "
    "the right."
)
_NO_JOURNAL = "There is no trend: add a [journal] to the file of the lake, which keeps all runs."
_NO_RUN = "There is no trend: the journal has no run yet."
_BOX = '<div class="box" role="region" aria-label="table" tabindex="0">'
"""Begins a box in which a wide table scrolls, also by keys."""
_CSS = """
:root { --bad: #b3261e; --soon: #8a5300; --good: #1b6e3c; --soft: #5f6368; --band: #f2f3f5; }
@media screen and (prefers-color-scheme: dark) {
  :root { --bad: #ff8a80; --soon: #ffb74d; --good: #81c995; --soft: #a0a4aa; --band: #24262b; }
}
h1 { margin-bottom: 0; font-size: clamp(1.4em, 5vw, 2em); }
h2 { margin: 1.6em 0 0.2em; font-size: 1.25em; }
small, .note { color: var(--soft); }
.note { max-width: 100ch; margin: 0.4em 0; font-size: 0.93em; }
.verdict { font-size: 1.15em; font-weight: 600; padding: 0.5em 0.8em; margin: 1em 0;
  border-left: 0.3em solid; background: var(--band); }
.bad { color: var(--bad); } .soon { color: var(--soon); } .good { color: var(--good); }
.facts { display: flex; flex-wrap: wrap; gap: 0.8em 2.4em; margin: 1em 0; }
.facts dt { color: var(--soft); font-size: 0.9em; }
.facts dd { margin: 0; font-size: 1.25em; }
.box { overflow-x: auto; }
.box table { width: 100%; }
.tables { min-width: 62em; }
.tables .trend { width: 120px; height: 32px; }
.tables th[scope=row] { font-weight: 600; width: 26%; }
.tables td:nth-child(2) { white-space: nowrap; }
.tables td:last-child { width: 26%; white-space: pre-line; }
thead th, .runs td { overflow-wrap: normal; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody th[scope=rowgroup] { background: var(--band); padding-top: 0.5em; }
.lake { position: relative; border-top: 1px dotted var(--rule); }
.lake .trend { width: 100%; height: 9em; }
.lake .scale { position: absolute; top: 0; left: 0; font-size: 0.8em; color: var(--soft); }
@media screen and (min-width: 75em) {
  .box:has(.tables) { overflow: visible; }
  .tables thead th { position: sticky; top: 0; background: var(--ground); }
}
figure { margin: 1em 0; } summary { cursor: pointer; padding: 0.3em 0; }
@media print {
  body { font-size: 10px; margin: 0; max-width: none; } .box { overflow: visible; }
  .tables { min-width: 0; } .tables .trend { width: 90px; } tr, figure { break-inside: avoid; }
  .verdict, tbody th[scope=rowgroup] { print-color-adjust: exact; }
}
"""


def render(
    lake: str,
    lines: Sequence[Line],
    earlier: Sequence[Sequence[Line]] | None,
    *,
    dry_run: bool = False,
    seconds: float | None = None,
    cleanups: Listing | None = None,
) -> str:
    """Return the page of a run.

    Args:
        lake: The file of the lake.
        lines: A line for each table.
        earlier: The lines of earlier runs, oldest run first; None: there is no journal.
        dry_run: Whether the run only reports: it is no part of the trend.
        seconds: Duration of the run; None: unknown.
        cleanups: The steps of the clean-up.
    """
    every = (*(earlier or ()), *(() if dry_run else (lines,)))
    runs = [run for run in every if run][-RUNS:]  # a run over no table has no line
    has_trend = earlier is not None and bool(runs)
    missing = _NO_JOURNAL if earlier is None else _NO_RUN
    body = [
        _head(lines, dry_run=dry_run, seconds=seconds),
        _lake_trend(runs) if has_trend else f'<p class="note">{_escape(missing)}</p>',
        _tables(lines, runs if has_trend else [], dry_run=dry_run),
        _listing(cleanups) if cleanups is not None and cleanups.rows else "",
    ]
    return page(f"Maintenance of {_plain(lake)}", "".join(body), style=STYLE + _CSS)


def _head(lines: Sequence[Line], *, dry_run: bool, seconds: float | None) -> str:
    """Return when the run was, its verdict and its sums."""
    kind = "Dry run" if dry_run else "Run"
    when = f"{kind} of {lines[0].time:%Y-%m-%d %H:%M} UTC, id {lines[0].run}" if lines else kind
    shares, money = journal.mean_shares(lines), journal.total_money(lines)
    facts = {
        "would be rewritten" if dry_run else "rewritten": show(_bytes(lines)),
        "data scanned, mean of the tables": show_fall(shares) if shares else None,
        "cost": None if money is None else show_sum(money),
        "seconds": None if seconds is None else f"{seconds:,.0f}",
    }
    shown = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items() if value
    )
    colour, verdict = _verdict(lines)
    return (
        f'<p class="note">{_escape(when)}</p><p class="verdict {colour}">{verdict}</p>'
        f'<dl class="facts">{shown}</dl>'
    )


def _verdict(lines: Sequence[Line]) -> tuple[str, str]:
    """Return the colour of the worst group of tables, and the run in one sentence."""
    count = Counter(map(_group, lines))
    worst = next((group for group in _GROUPS if count[group]), "done")
    parts = [f"{count[group]:,} {group}" for group in _GROUPS if count[group]]
    longest = max((line.waited or 0 for line in lines), default=0)
    wait = f" The longest wait is {longest:,} night{'s'[: longest > 1]}." if longest else ""
    return _COLOURS.get(worst, "good"), f"Tables: {', '.join(parts) or 'none'}.{wait}"


def _lake_trend(runs: Sequence[Sequence[Line]]) -> str:
    """Return the trend of the lake as a picture, and its figures."""
    first, last = (f"{runs[at][0].time:%Y-%m-%d}" for at in (0, -1))
    return (
        f'<h2>Trend</h2><figure class="lake"><span class="scale">100%</span>'
        f'{_trend(runs)}<figcaption class="note">'
        f"Mean data scanned of all tables (line, 0 to 100%) and bytes rewritten (bars, at most "
        f"{show(max(map(_bytes, runs)))}) in {show_count(len(runs), 'runs')} from {first} to "
        f"{last}.</figcaption>"
        f"</figure><details><summary>Figures of these runs</summary>"
        f"{_table(journal.describe(reversed(runs)))}</details>"
    )


def _tables(lines: Sequence[Line], runs: Sequence[Sequence[Line]], *, dry_run: bool) -> str:
    """Return all tables, worst first; without runs there is no column of trends."""
    folder, trends = shared_folder(line.table for line in lines), _trends(runs)
    columns = {
        "table": "",
        "verdict": "",
        "data scanned": "number",
        **({"trend": ""} if runs else {}),
        "would be rewritten" if dry_run else "rewritten": "number",
        "nights waited": "number",
        "remark": "",
    }
    head = "".join(f'<th scope="col" class="{kind}">{name}</th>' for name, kind in columns.items())
    groups: dict[str, list[str]] = {group: [] for group in _GROUPS}
    for line in sorted(lines, key=_badness):
        trend = trends.get(_key(line), "") if runs else None
        groups[_group(line)].append(_row(line, folder, trend))
    bodies = "".join(
        f'<tbody><tr><th scope="rowgroup" colspan="{len(columns)}" '
        f'class="{_COLOURS.get(group, "")}">{group}: {len(rows):,}</th></tr>{"".join(rows)}</tbody>'
        for group, rows in groups.items()
        if rows
    )
    paths, trend = f"Paths begin in {folder}." if folder else "", _TREND if runs else ""
    known = [note for note in (_ORDER, paths, _SCANNED, trend) if note]
    notes = "".join(f'<p class="note">{_escape(note)}</p>' for note in known)
    return (
        f'<h2>Tables</h2>{notes}{_BOX}<table class="tables"><thead><tr>{head}</tr>'
        f"</thead>{bodies}</table></div>"
    )


def _row(line: Line, folder: str, trend: str | None) -> str:
    """Return the row of a table; a trend of None has no cell."""
    group, size = _group(line), line.bytes_rewritten
    only_cleanup = group == "failed" and line.verdict != journal.FAILED
    verdict = "clean-up failed" if only_cleanup else line.verdict
    return (
        f'<tr><th scope="row">{_escape(line.table.removeprefix(folder))} '
        f"<small>{_escape(line.format or '')}</small></th>"
        f'<td class="{_COLOURS.get(group, "")}">{_escape(verdict)}</td>'
        f'<td class="number">{_scanned(line)}</td>'
        + ("" if trend is None else f"<td>{trend}</td>")
        + f'<td class="number">{show(size) if size else ""}</td>'
        f'<td class="number">{line.waited or ""}</td><td>{_escape(journal.note_of(line))}</td></tr>'
    )


def _scanned(line: Line) -> str:
    """Return the data scanned before and after the run; a prediction states that it is one."""
    if line.share_before is None:
        return ""
    if line.verdict in {journal.REWRITTEN, journal.IN_PART} and line.share_after is not None:
        return show_fall((line.share_before, line.share_after))
    shown = f"{line.share_before:.1%}"
    if line.verdict in {journal.DUE, journal.WAITS} and line.share_predicted is not None:
        shown += f"<br><small>predicted {line.share_predicted:.1%}</small>"
    return shown


def _group(line: Line) -> str:
    """Return the group of a table; one whose clean-up has failed is among those that failed."""
    if journal.has_failed(line):
        return "failed"
    return next((name for name, verdicts in _GROUPS.items() if line.verdict in verdicts), "done")


def _badness(line: Line) -> tuple[float, int, int, str]:
    """Return what tables of a group are sorted by."""
    share = line.share_before if line.share_after is None else line.share_after
    known = -1.0 if share is None else share
    return -known, -(line.waited or 0), -(line.bytes_rewritten or 0), line.table


def _trends(runs: Sequence[Sequence[Line]]) -> Mapping[tuple[str, str | None], str]:
    """Return the trend of each table; a run that has not opened it leaves a gap."""
    found: dict[tuple[str, str | None], list[list[Line]]] = {}
    for number, lines in enumerate(runs):
        for line in lines:
            found.setdefault(_key(line), [[] for _ in runs])[number].append(line)
    return {key: _trend(own) for key, own in found.items()}


def _trend(runs: Sequence[Sequence[Line]]) -> str:
    """Return the trend of a table, or of a lake, as a picture; empty: nothing is known."""
    shares, amounts = list(map(journal.mean_shares, runs)), list(map(_bytes, runs))
    known, done = [each for each in shares if each], [each for each in amounts if each]
    if not known and not done:
        return ""
    scanned = "unknown"
    if known:
        (first, _), (_, last) = known[0], known[-1]
        scanned = f"{first:.1%} to {last:.1%}, at most {max(map(max, known)):.1%}"
    rewritten = f"{show(sum(done))} rewritten in {len(done)} of {show_count(len(runs), 'runs')}"
    return sparkline(f"data scanned {scanned}; {rewritten}", shares, amounts)


def _key(line: Line) -> tuple[str, str | None]:
    """Return what tells a table apart from those of other runs: a name may change its format."""
    return line.table, line.format


def _listing(listing: Listing) -> str:
    title = listing.title[0].upper() + listing.title[1:]
    return f"<h2>{_escape(title)}</h2>{_table(listing)}"


def _table(listing: Listing) -> str:
    """Return all rows of a listing as a table."""
    head = "".join(f'<th scope="col">{_escape(name)}</th>' for name in listing.columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{_escape(format_cell(cell))}</td>' for cell in row)}</tr>"
        for row in listing.rows
    )
    return (
        f'{_BOX}<table class="runs"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _bytes(lines: Iterable[Line]) -> int:
    return sum(line.bytes_rewritten or 0 for line in lines)


def show_fall(shares: Shares) -> str:
    """Return shares before and after as a text, or one of them if they are as good as equal."""
    before, after = (f"{share:.1%}" for share in shares)
    return before if before == after else f"{before} to {after}"


def _escape(text: str) -> str:
    return escape(_plain(text))


def _plain(text: str) -> str:
    """Return a text with escapes of characters that are not seen, or change the order of others."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )
