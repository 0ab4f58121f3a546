"""What one run has done with the tables of a lake."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from zadapter.base.printable import abridge, shared_folder
from zadapter.base.quantities import show
from zadapter.lake import journal, metrics
from zadapter.lake.cleaning import Cleaned
from zadapter.lake.journal import Line
from zadapter.lake.page import render, show_fall
from zadapter.planning.cost import show_sum
from zadapter.report.facts import Facts, Listing

CLEANED = tuple[Cleaned, ...]
_COLUMNS = ("table", "format", "verdict", "rewritten", "data scanned", "weight", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeReport(Facts):
    """Result of :func:`zadapter.maintain`."""

    lake: str
    """The file of the lake."""
    run: str
    """Id of the run in the journal."""
    dry_run: bool
    lines: tuple[Line, ...]
    """A line for each table, and for what was left out."""
    cleaned: Mapping[str, CLEANED] = field(default_factory=dict[str, CLEANED])
    """The steps of the clean-up, by table; a dry run has what they would do."""
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """What tables themselves state instead of the file of the lake, by table."""
    seconds: float
    """Duration of the run."""
    history: pa.Table | None = field(default=None, repr=False)
    """The lines of the last runs in the journal before this one, for a trend; None: there is no
    journal."""

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    @property
    def failed(self) -> tuple[str, ...]:
        """The tables whose rewrite or clean-up has failed."""
        rewrites = [line.table for line in self.lines if line.verdict == journal.FAILED]
        cleanups = [table for table, steps in self.cleaned.items() if steps[-1].error is not None]
        return tuple(dict.fromkeys([*rewrites, *cleanups]))

    @property
    def bytes_rewritten(self) -> int:
        """Bytes of the replaced files, of all tables; of a dry run those that would be."""
        return sum(line.bytes_rewritten for line in self.lines)

    @property
    def money(self) -> float | None:
        """The cost of the rewrites; None: it is unknown."""
        return journal.total_money(self.lines)

    def facts(self) -> Mapping[str, str]:
        """Return the report as readable facts, by name."""
        count = Counter(line.verdict for line in self.lines)
        verdicts = ", ".join(f"{count[each]:,} {each}" for each in journal.VERDICTS if count[each])
        facts = {"lake": self.lake, "run": self.run, "tables": verdicts or "none"}
        would = "would be rewritten" if self.dry_run else "rewritten"
        facts[would] = show(self.bytes_rewritten)
        if self.money is not None:
            facts["cost"] = show_sum(self.money)
        facts["seconds"] = f"{self.seconds:,.1f}"
        if self.failed:
            facts["failed"] = abridge(self.failed)
        return facts

    def listings(self) -> Sequence[Listing]:
        """Return the tables, those that failed first, then those that were rewritten; remarks."""
        rank = {verdict: number for number, verdict in enumerate(journal.VERDICTS)}
        lines = sorted(self.lines, key=lambda line: (rank[line.verdict], -line.bytes_rewritten))
        folder = shared_folder(line.table for line in lines)
        names = {line.table: line.table.removeprefix(folder) for line in lines}
        remarks = [(names[line.table], why) for line in lines if (why := _why(line))]
        remarks += [(names.get(table, table), "; ".join(own)) for table, own in self.own.items()]
        steps = [
            (names.get(table, table), step.step, _counts(step), step.error or step.note)
            for table, done in self.cleaned.items()
            for step in done
            if self.dry_run or step.error or any(step.counts.values())
        ]
        weighed = any(line.weight not in {None, 1.0} for line in lines)
        left_out = {*(["seconds"] if self.dry_run else []), *([] if weighed else ["weight"])}
        columns = tuple(name for name in _COLUMNS if name not in left_out)
        cells = [{"table": names[line.table]} | _row(line) for line in lines]
        rows = tuple(tuple(row[name] for name in columns) for row in cells)
        title = "what clean-ups would delete" if self.dry_run else "clean-ups"
        return (
            Listing("tables", columns, rows, total=len(lines)),
            Listing("remarks", ("table", "remark"), tuple(remarks), total=len(remarks)),
            Listing(title, ("table", "step", "files", "remark"), tuple(steps), total=len(steps)),
        )

    @property
    def has_tables(self) -> bool:
        """Whether any table is maintained."""
        return any(line.format is not None for line in self.lines)

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Return the fields as JSON values, and the sums, but not the history."""
        sums = {"bytes_rewritten": self.bytes_rewritten, "money": self.money}
        document = Facts.to_dict(self, files=files) | sums | {"failed": list(self.failed)}
        document.pop("history", None)
        return document

    def to_html(self) -> str:
        """Return a page of all tables, worst first, with the trend of each from the journal."""
        return render(
            self.lake,
            self.lines,
            None if self.history is None else journal.split_runs(self.history),
            dry_run=self.dry_run,
            seconds=self.seconds,
            cleanups=self.listings()[-1],
        )

    def to_prometheus(self) -> str:
        """Return the metrics of the run in Prometheus' text format.

        Raises:
            UsageError: It was a dry run.
        """
        return metrics.render(self)


def _row(line: Line) -> dict[str, object]:
    return {
        "format": line.format,
        "verdict": line.verdict,
        "rewritten": show(line.bytes_rewritten) if line.bytes_rewritten else None,
        "data scanned": _shares(line),
        "weight": None if line.weight is None else f"{line.weight:,.3g}",
        "seconds": line.seconds or None,
    }


def _why(line: Line) -> str:
    nights = "night" if line.waited == 1 else "nights"
    waits = f"{line.waited} {nights}" if line.verdict == journal.WAITS else None
    return ": ".join(filter(None, (waits, journal.note_of(line))))


def _shares(line: Line) -> str | None:
    """Return the share of data that filters scan: before, and after or as predicted."""
    if line.share_before is None:
        return None
    rewritten = line.verdict in {journal.REWRITTEN, journal.IN_PART}
    after = line.share_after if rewritten else line.share_predicted
    return show_fall((line.share_before, line.share_before if after is None else after))


def _counts(step: Cleaned) -> str:
    counts = [(name, count) for name, count in step.counts.items() if count]
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts) or "nothing"
