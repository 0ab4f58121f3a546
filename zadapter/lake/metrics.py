"""Metrics of a run over a lake, in the text format of Prometheus.

All of them are gauges: the values of a run replace those of the last one. What is unknown has no
series. The number of series grows with the number of tables, and with nothing else.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from zadapter.base.secrets import mask_secrets
from zadapter.errors import UsageError
from zadapter.lake import journal
from zadapter.lake.journal import Line

if TYPE_CHECKING:
    from zadapter.lake.report import LakeReport

Labels = Mapping[str, str]
_VERDICTS: Final = tuple(each for each in journal.VERDICTS if each != journal.DUE)
"""The verdicts of all runs but dry ones. Of two lines of a table, that of the first one counts."""


def render(report: "LakeReport") -> str:
    """Return the metrics of a run.

    Raises:
        UsageError: It was a dry run.
    """
    if report.dry_run:
        raise UsageError(
            "a dry run measures nothing, so it has no metrics; call maintain without dry_run"
        )
    lake = {"lake": report.lake}
    lines = _by_table(report.lines)
    labels = {table: _labels_of(table, line, lake) for table, line in lines.items()}
    failed = {mask_secrets(table) for table in report.failed}
    verdicts = [({**labels[table], "verdict": lines[table].verdict}, 1) for table in lines]
    text = [
        *_of_run(report, lines.values(), lake),
        *_family("zadapter_table_verdict", "1 for the verdict of the last run.", verdicts),
        *_family(
            "zadapter_table_failed",
            "1 if the rewrite, the judgement or the clean-up of the last run has failed, else 0.",
            [(labels[table], int(table in failed)) for table in lines],
        ),
    ]
    for name, (help_, value) in _OF_TABLES.items():
        series = [(labels[table], value(line)) for table, line in lines.items()]
        text += _family(f"zadapter_table_{name}", help_, series)
    return "".join(f"{line}\n" for line in text)


def _by_table(lines: Sequence[Line]) -> dict[str, Line]:
    """Return a line for each table: collectors refuse files that have the same series twice."""
    found = dict[str, Line]()
    for line in sorted(lines, key=lambda line: _VERDICTS.index(line.verdict)):
        found.setdefault(mask_secrets(line.table), line)
    return found


def _labels_of(table: str, line: Line, lake: Labels) -> Labels:
    known = {} if line.format is None else {"format": line.format}
    return {**lake, "table": table, **known}


def _measured(value: Callable[[Line], float | None]) -> Callable[[Line], float | None]:
    """Return a function that knows nothing of tables of which a run has measured nothing."""
    unknown = {journal.FAILED, journal.LEFT_OUT}
    return lambda line: None if line.verdict in unknown else value(line)


_OF_TABLES: Mapping[str, tuple[str, Callable[[Line], float | None]]] = {
    "rewritten_bytes": (
        "Size of the files that the last run has replaced.",
        _measured(lambda line: line.bytes_rewritten),
    ),
    "files": ("Live files after the last run.", _measured(lambda line: line.files)),
    "scanned_before_ratio": (
        "Mean share of the rows that a range filter reads, before the last run.",
        lambda line: line.share_before,
    ),
    "scanned_predicted_ratio": (
        "The share that was predicted for after the due rewrites.",
        lambda line: line.share_predicted,
    ),
    "scanned_after_ratio": (
        "The share after the last run.",
        _measured(lambda line: line.share_after),
    ),
    "waited_nights": (
        "Nights that a due rewrite has waited; 0 if none waits.",
        _measured(lambda line: line.waited),
    ),
    "rewrite_seconds": (
        "Duration of the last run's rewrite; 0 if there was none.",
        _measured(lambda line: line.seconds),
    ),
    "rewrite_core_seconds": (
        "Seconds that the tasks of the last run's rewrite took, added up.",
        lambda line: line.core_seconds,
    ),
    "rewrite_cost": (
        "Cost of the last run's rewrite, in the currency of the lake's prices.",
        lambda line: line.money,
    ),
}
"""Metrics of tables by the rest of their names, with what they tell and how; None: unknown."""


def _of_run(report: "LakeReport", lines: Iterable[Line], lake: Labels) -> Iterator[str]:
    """Yield the metrics of the run as a whole."""
    began = [line.time for line in report.lines[:1]]  # that of the run, as of all lines
    count = Counter(line.verdict for line in lines)
    yield from _family(
        "zadapter_run_end_timestamp_seconds",
        "When the last run ended, in seconds since 1970.",
        [(lake, time.timestamp() + report.seconds) for time in began],
    )
    yield from _family(
        "zadapter_run_duration_seconds", "Duration of the last run.", [(lake, report.seconds)]
    )
    yield from _family(
        "zadapter_run_rewritten_bytes",
        "Size of the files that the last run has replaced, of all tables.",
        [(lake, report.bytes_rewritten)],
    )
    yield from _family(
        "zadapter_run_tables",
        "Tables of the last run, and what was left out, by verdict.",
        [({**lake, "verdict": verdict}, count[verdict]) for verdict in _VERDICTS],
    )


def _family(name: str, help_: str, series: Sequence[tuple[Labels, float | None]]) -> Iterator[str]:
    """Yield the lines of a metric; it has none if no value is known."""
    known = [(labels, value) for labels, value in series if value is not None]
    if known:
        yield f"# HELP {name} {help_}"
        yield f"# TYPE {name} gauge"
    for labels, value in known:
        shown = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
        yield f"{name}{{{shown}}} {value}"


def _escape(text: str) -> str:
    r"""Return the value of a label as the format writes it.

    >>> _escape('a"b')
    'a\\"b'
    """
    valid = text.encode("utf-8", "backslashreplace").decode()
    return valid.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
