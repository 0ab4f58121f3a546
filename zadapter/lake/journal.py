"""A table with a row for each table and run: what was predicted, done and measured.

Concurrent runs append side by side. Rows of a table have no order, and times are those of the
clocks of several machines, so the stored table has one more column, ``NUMBER``.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from statistics import fmean
from types import NoneType
from typing import Final, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from zadapter.api import dml
from zadapter.backend.commit import commit_change
from zadapter.backend.contract import is_migratable, is_versioned
from zadapter.base.commit_attempts import Attempts, Backoff
from zadapter.base.names import quote
from zadapter.base.outcome import sending, stating
from zadapter.base.quantities import show
from zadapter.base.translate_errors import translate_errors
from zadapter.errors import (
    ConflictError,
    UnknownTableError,
    UnsupportedError,
    UsageError,
    ZadapterError,
)
from zadapter.migration.context import build_load
from zadapter.report.facts import Listing
from zadapter.spark import files
from zadapter.spark.caller_rows import fitting
from zadapter.spark.compat.spark_api import from_arrow, to_arrow
from zadapter.spark.opening import OpenTable, open_table
from zadapter.table.snapshot import Snapshot, Source
from zadapter.table.spec import Definition, plain

REWRITTEN: Final = "rewritten"
IN_PART: Final = "rewritten in part"
DUE: Final = "due"
NOTHING_TO_DO: Final = "nothing to do"
WAITS: Final = "waits"
DECLINED: Final = "declined"
FAILED: Final = "failed"
LEFT_OUT: Final = "left out"
VERDICTS: Final = (FAILED, REWRITTEN, IN_PART, DUE, WAITS, DECLINED, NOTHING_TO_DO, LEFT_OUT)
"""The verdicts in the order in which they are listed."""
CLEAN_UP_FAILED: Final = "clean-up failed: "
"""Beginning of the error of a clean-up, which has no verdict of its own."""
CLEAN_UP_LEFT_OUT: Final = "clean-up left out: "
"""Beginning of the remark on a table that itself keeps all of its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one run did with one table."""

    run: str
    """Id of the run."""
    time: datetime
    """When the run began, in UTC."""
    table: str
    format: str | None
    version: int | None = None
    """Version after the run; None: unknown."""
    verdict: str
    """``rewritten``, ``rewritten in part``, ``nothing to do``, ``waits``, ``declined``, ``failed``
    or ``left out``; of a dry run also ``due``, which no journal has."""
    files: int | None = None
    """Live files after the run."""
    bytes_rewritten: int = 0
    share_before: float | None = None
    """Mean share of the rows that a range filter reads before the run, from 0 to 1."""
    share_predicted: float | None = None
    share_after: float | None = None
    """The share after the run, from the log."""
    seconds: float = 0.0
    core_seconds: float | None = None
    money: float | None = None
    waited: int = 0
    """Nights that a due rewrite has waited, this one included."""
    error: str | None = None
    """Why the judgement, the rewrite or the clean-up has failed; None: none of them has."""
    settings: str | None = None
    """Digest of the table's id, of its entry in the file of the lake, and of its own settings."""
    weight: float | None = None
    """How much the table counted in the choice, 1 for one like others; None: nothing was due."""
    remark: str | None = None
    """Why the verdict is what it is, and what a query log has done; None: nothing is to be said."""


_TYPES: Mapping[type, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    datetime: pa.timestamp("us", tz="UTC"),
}


def _arrow_type(hint: type) -> pa.DataType:
    (plain_type,) = (each for each in get_args(hint) or (hint,) if each is not NoneType)
    return _TYPES[plain_type]


SCHEMA: Final = pa.schema({name: _arrow_type(hint) for name, hint in get_type_hints(Line).items()})
"""The columns of a journal, in the order of the fields of :class:`Line`."""
NUMBER: Final = "number"
"""Column that rises with each append; lines of concurrent runs may share numbers."""
STORED: Final = SCHEMA.append(pa.field(NUMBER, pa.int64()))
"""The columns of the stored table."""
_ESSENTIAL = ("run", "time", "table", "verdict")
"""Columns by which a table is recognised as a journal; older releases may lack others."""


_SPARE = ("remark",)
"""Columns for people alone: those of older releases that cannot be added are done without."""


def is_journal(columns: Iterable[str]) -> bool:
    """Return whether a table with these columns is the journal of a lake."""
    return {*_ESSENTIAL, NUMBER} <= set(columns)


_ORIGIN = Source(format="zadapter", id="journal", version=None, columns="")
"""States in the journal's log that it is no copy of another table."""
_USEFUL = 3
"""Rewrites that a correction looks back to."""
_LIMITS = (0.25, 4.0)
"""Bounds of the factor of one rewrite."""
_SETTLED = {NOTHING_TO_DO, DECLINED, REWRITTEN}
"""Verdicts that hold until the table changes."""
_COLUMNS = (
    *("time (UTC)", "rewritten", "waiting", "failed", "bytes", "seconds", "money"),
    *("read before", "read after"),
)
"""Columns of a history; the last two are mean shares of the rows that a filter reads."""


def append(spark: SparkSession, journal: str, format: str, lines: Sequence[Line]) -> None:  # noqa: A002
    """Append *lines* to a journal in one commit, and create the journal if there is none.

    Args:
        spark: A session that supports the format.
        journal: Path or identifier of the journal.
        format: ``"delta"``, ``"iceberg"`` or ``"parquet"``.
        lines: What a run did, in order.

    Raises:
        UsageError: The table is not a journal, or has another format.
        UnsupportedError: The journal lacks columns, and its format cannot add them.
        ConflictError: All attempts lost a race to other writers; nothing was committed.
        UnknownOutcomeError: It is unknown whether the commit landed.
    """
    if not lines:
        return
    with _prepared(spark, journal, format) as (found, snapshot):
        stored = found.backend.read(snapshot, found.backend.files(snapshot))
        (first,) = stored.agg(F.coalesce(F.max(NUMBER) + 1, F.lit(0))).first() or (0,)
        numbers = pa.array(range(first, first + len(lines)), pa.int64())
        known = [quote((name,)) for name in STORED.names if name in snapshot.schema.names]
        numbered = to_table(lines).append_column(NUMBER, numbers)
        rows = from_arrow(spark, numbered).select(*known).coalesce(1)
        if not is_versioned(found.backend):
            with stating(), sending(), translate_errors(journal):
                _append(snapshot, fitting(rows, stored))
            return
    dml.append(journal, rows, backend=format, spark=spark)


def prepare(spark: SparkSession, journal: str, format: str) -> None:  # noqa: A002
    """Create a journal if there is none, and add the columns that it lacks.

    A run that calls this first is not refused when it appends its lines at its end.

    Raises:
        UsageError: The table is not a journal, or has another format.
        UnsupportedError: The journal lacks columns, and its format cannot add them.
    """
    with _prepared(spark, journal, format):
        pass


def locate(spark: SparkSession, journal: str, format: str) -> str | None:  # noqa: A002
    """Return the location of a journal; None: there is none.

    Raises:
        UsageError: The table is not a journal, or has another format.
    """
    with translate_errors(journal), open_table(journal, format, spark) as found:
        snapshot = _find(found, format)
        return None if snapshot is None else snapshot.location


def read(spark: SparkSession, journal: str, format: str) -> pa.Table:  # noqa: A002
    """Return all lines of a journal, oldest run first; a journal that does not exist is empty.

    Runs are in the order in which they were appended, whatever the clocks of their machines say:
    one that was ahead would otherwise be the last run for as long as it was ahead. Columns that the
    journal lacks, since an older release has written it, are null.

    Raises:
        UsageError: The table is not a journal, or has another format.
    """
    with (
        translate_errors(journal),
        open_table(journal, format, spark) as found,
    ):
        snapshot = _find(found, format)
        if snapshot is None:
            return SCHEMA.empty_table()
        lacking = _find_lacking(snapshot)
        known = [quote((name,)) for name in STORED.names if name not in lacking]
        rows = found.backend.read(snapshot, found.backend.files(snapshot))
        stored = to_arrow(rows.select(*known))
    columns = [
        pa.nulls(stored.num_rows, field.type)
        if field.name in lacking
        else stored[field.name].cast(field.type)
        for field in STORED
    ]
    # lines without a number are those of an older release
    columns[-1] = columns[-1].fill_null(-1)
    return _sort(pa.table(columns, schema=STORED)).select(SCHEMA.names)


def _sort(stored: pa.Table) -> pa.Table:
    """Sort lines by run, and runs by their first number; concurrent ones may have the same."""
    runs = stored.group_by("run").aggregate([(NUMBER, "min")])
    at = pc.index_in(stored["run"], value_set=runs["run"].combine_chunks())
    keyed = stored.append_column("first", runs[f"{NUMBER}_min"].take(at))
    return keyed.sort_by([(name, "ascending") for name in ("first", "time", "run", NUMBER)])


def _append(snapshot: Snapshot, rows: DataFrame) -> None:
    if snapshot.identifier is None:
        rows.write.format(snapshot.format).mode("append").save(snapshot.location)
    else:
        rows.writeTo(snapshot.identifier).append()


@contextmanager
def _prepared(
    spark: SparkSession,
    journal: str,
    format: str,  # noqa: A002
) -> Iterator[tuple[OpenTable, Snapshot]]:
    """Open a journal with all columns."""
    with translate_errors(journal), open_table(journal, format, spark, writes=True) as found:
        snapshot = _find(found, format) or _create(found, format)
        if lacking := _find_lacking(snapshot):
            snapshot = _add_columns(found, snapshot, lacking)
        yield found, snapshot


def _find(found: OpenTable, format: str) -> Snapshot | None:  # noqa: A002
    """Return the current version of a journal; None: there is no table of any format.

    Raises:
        UsageError: There is something else.
    """
    snapshot = _look_up(found)
    if snapshot is not None:
        return snapshot
    reason = _detect(found)
    if reason is None:
        return None
    snapshot = _look_up(found)  # another run may have created it meanwhile
    if snapshot is None:
        raise UsageError(
            f"{found.name} is not a journal in {format}: {reason}; set the journal to a path or a "
            "name that is not in use, or pass its own format"
        )
    return snapshot


def _look_up(found: OpenTable) -> Snapshot | None:
    try:
        return found.backend.snapshot(found.name)
    except UnknownTableError as error:
        if error.exists:
            raise
        return None


def _detect(found: OpenTable) -> str | None:
    """Return what has the name of a journal, as part of a message; None: nothing that is known."""
    try:
        with open_table(found.name, None, found.user_session) as other:
            return f"it is a table of {other.backend.format.name}"
    except UnknownTableError as error:
        return "there is another table or view" if error.exists else None
    except UnsupportedError as error:
        return str(error)


def _create(found: OpenTable, format: str) -> Snapshot:  # noqa: A002
    """Create an empty journal, unless another run does.

    Raises:
        UsageError: The folder is not empty, or the format cannot create a table of the name.
    """
    backend, schema = found.backend, from_arrow_schema(STORED)
    if not is_migratable(backend):
        raise UnsupportedError(f"the backend of {format} cannot create a journal; create it first")
    definition = Definition(columns=plain(schema.jsonValue()["fields"]))
    try:
        pending = backend.pending(found.name, backend.accept(definition), _ORIGIN)
        with _claimed(found.spark, pending):
            once = Attempts(Backoff(attempts=1))
            commit_change(backend, build_load(pending, [], _ORIGIN), once)
    except (ConflictError, UsageError):
        created = _find(found, format)
        if created is None:
            raise
        return created
    return backend.snapshot(found.name)


@contextmanager
def _claimed(spark: SparkSession, pending: Snapshot) -> Iterator[None]:
    """Refuse a folder with other files: clean-ups of the journal would delete them."""
    if pending.identifier is not None:
        files.refuse_others(spark, pending.location)
        yield
        return
    files.begin(spark, pending.location, _ORIGIN.id)
    try:
        yield
    finally:
        files.end(spark, pending.location, _ORIGIN.id)


def _find_lacking(snapshot: Snapshot) -> list[str]:
    """Return the columns that a journal lacks.

    Raises:
        UsageError: The table is not a journal.
    """
    types = dict(zip(snapshot.schema.names, snapshot.schema.types, strict=True))
    advice = "set the journal to a path or a name that is not in use"
    if absent := [name for name in _ESSENTIAL if name not in types]:
        raise UsageError(
            f"{snapshot.table} is not a journal: it lacks {', '.join(absent)}; {advice}"
        )
    for field in STORED:
        type_ = types.get(field.name, field.type)
        if type_ != field.type:
            raise UsageError(
                f"{snapshot.table} is not a journal: column {field.name} is {type_} instead of "
                f"{field.type}; {advice}"
            )
    return [name for name in STORED.names if name not in types]


def _add_columns(found: OpenTable, snapshot: Snapshot, lacking: Sequence[str]) -> Snapshot:
    """Add columns to a journal of an older release; those for people alone if it is possible.

    Raises:
        UnsupportedError: The format cannot add columns.
    """
    if is_versioned(found.backend):
        needed = [name for name in lacking if name not in _SPARE]
        if not needed:
            return snapshot
        raise UnsupportedError(
            f"{found.name} was written by an older release and lacks {', '.join(needed)}, and no "
            f"column can be added to a table of {snapshot.format}; set the journal to a new path. "
            "The old one remains readable"
        )
    for _ in Attempts():
        added = [f for f in from_arrow_schema(STORED) if f.name in lacking]
        columns = ", ".join(f"{quote((f.name,))} {f.dataType.simpleString()}" for f in added)
        failure: ZadapterError | None = None
        try:
            with translate_errors(found.name):
                found.user_session.sql(f"ALTER TABLE {_sql_name(snapshot)} ADD COLUMNS ({columns})")
        except ZadapterError as error:
            failure = error
        snapshot = found.backend.snapshot(found.name)
        remaining = _find_lacking(snapshot)
        if not remaining:
            return snapshot
        if remaining == lacking:  # no other run has added any of them meanwhile
            break
        lacking = remaining
    raise failure or ConflictError(f"{found.name} lacks {', '.join(lacking)}; retry")


def _sql_name(snapshot: Snapshot) -> str:
    return snapshot.identifier or f"{snapshot.format}.{quote((snapshot.location,))}"


def to_table(lines: Iterable[Line]) -> pa.Table:
    """Return lines as a table, in their order; times without a zone are in UTC."""
    values = [{name: getattr(line, name) for name in SCHEMA.names} for line in lines]
    return pa.Table.from_pylist(values, schema=SCHEMA)


def to_lines(lines: pa.Table) -> list[Line]:
    """Return the lines of a table, in their order."""
    names = [field.name for field in fields(Line)]
    return [Line(**{name: row[name] for name in names}) for row in lines.to_pylist()]


def latest(lines: pa.Table) -> dict[str, Line]:
    """Return the last line of each table."""
    numbered = pa.table({"table": lines["table"], "at": np.arange(lines.num_rows)})
    last = numbered.group_by("table").aggregate([("at", "max")])
    return {line.table: line for line in to_lines(lines.take(last["at_max"]))}


def unchanged(
    latest: Mapping[str, Line],
    table: str,
    version: int | None,
    *,
    format: str | None = None,  # noqa: A002
) -> bool:
    """Return whether a table needs no judgement: it is as the last run has left it.

    Args:
        latest: The result of :func:`latest`.
        table: The table.
        version: Its current version; None: unknown.
        format: Its format, since a name may move to another; None: it is not compared.
    """
    line = latest.get(table)
    if line is None or version is None or line.verdict not in _SETTLED:
        return False
    return line.version == version and format in (None, line.format)


def waited(lines: pa.Table) -> dict[str, int]:
    """Return how many nights a due rewrite of each table has waited: its last lines, if they wait.

    If a name has tables of two formats, the longest wait counts.
    """
    waits = pc.equal(lines["verdict"], WAITS).to_pylist()
    return {
        table: max(_count_waits(waits, history) for history in histories)
        for table, histories in _histories(lines).items()
    }


def _count_waits(waits: Sequence[bool], history: Sequence[int]) -> int:
    return next((n for n, at in enumerate(reversed(history)) if not waits[at]), len(history))


def correction(lines: pa.Table) -> dict[str, float]:
    """Return by which factor the savings that are predicted for each table must be multiplied.

    It is the geometric mean of the last three rewrites, each within 0.25 and 4; 1.0 without any.
    If a name has tables of two formats, those of the last line count.
    """
    factors = _measure(lines)
    return {
        table: _correct(factors, histories[-1]) for table, histories in _histories(lines).items()
    }


def _correct(factors: Sequence[float], history: Sequence[int]) -> float:
    found = [factors[at] for at in history if not math.isnan(factors[at])][-_USEFUL:]
    return math.exp(fmean(map(math.log, found))) if found else 1.0


def _measure(lines: pa.Table) -> list[float]:
    """Return the saving of each rewrite per predicted saving; NaN: nothing is known of it."""
    before, predicted, after = (
        lines[f"share_{when}"].to_numpy() for when in ("before", "predicted", "after")
    )
    rewritten = pc.is_in(lines["verdict"], value_set=pa.array([REWRITTEN, IN_PART])).to_numpy()
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        known = rewritten & np.isfinite(before + predicted + after) & (before > predicted)
        factors = np.where(known, (before - after) / (before - predicted), np.nan)
    return list(np.clip(factors, *_LIMITS))


def _histories(lines: pa.Table) -> dict[str, list[list[int]]]:
    """Return the lines of each name, apart by format, that of the last line at the end.

    A line without a format, since the table could not be opened, belongs to each table of its name.
    """
    found: dict[str, dict[str | None, list[int]]] = {}
    tables, written_in = lines["table"].to_pylist(), lines["format"].to_pylist()
    for at in _last_of_runs(lines):
        formats, own = found.setdefault(tables[at], {}), written_in[at]
        if own is not None:
            formats[own] = formats.pop(own, formats.pop(None, []))
        elif not formats:
            formats[None] = []
        for history in formats.values() if own is None else [formats[own]]:
            history.append(at)
    return {table: list(formats.values()) for table, formats in found.items()}


def _last_of_runs(lines: pa.Table) -> list[int]:
    """Return the last line of each run and table; a line without a format may be of any format."""
    found: list[int] = []
    formats: dict[tuple[str, str], set[str | None]] = {}
    columns = [lines[name].to_pylist()[::-1] for name in ("run", "table", "format")]
    for at, (run, table, own) in enumerate(zip(*columns, strict=True), 1):
        later = formats.setdefault((run, table), set())
        replaced = bool(later) if own is None else not later.isdisjoint({own, None})
        if not replaced:
            found.append(lines.num_rows - at)
        later.add(own)
    return found[::-1]


def split_runs(lines: pa.Table) -> list[list[Line]]:
    """Return the last line of each table in each run, oldest run first."""
    by_run: dict[str, list[Line]] = {}
    for line in to_lines(lines.take(pa.array(_last_of_runs(lines), pa.int64()))):
        by_run.setdefault(line.run, []).append(line)
    return list(by_run.values())


def keep_last_runs(lines: pa.Table, count: int) -> pa.Table:
    """Return the lines of the last *count* runs of a journal, in their order."""
    runs = lines["run"].unique()  # in the order in which they were appended
    return lines.filter(pc.is_in(lines["run"], value_set=runs[-count:]))


def describe(nights: Iterable[Sequence[Line]]) -> Listing:
    """Return a row for each run."""
    return Listing("runs", _COLUMNS, tuple(map(_describe, nights)))


def has_failed(line: Line) -> bool:
    """Return whether the judgement, the rewrite or the clean-up of a table has failed."""
    # lines of older releases have remarks as errors
    return line.verdict == FAILED or CLEAN_UP_FAILED in (line.error or "")


def note_of(line: Line) -> str:
    """Return the error of a line and its remark as one text; empty: it has none."""
    return "; ".join(filter(None, (line.error, line.remark)))


def mean_shares(lines: Iterable[Line]) -> tuple[float, float] | None:
    """Return the mean share that filters read before and after a run; None: of no table."""
    known = [
        (line.share_before, line.share_after)
        for line in lines
        if line.share_before is not None and line.share_after is not None
    ]
    if not known:
        return None
    before, after = zip(*known, strict=True)
    return fmean(before), fmean(after)


def total_money(lines: Iterable[Line]) -> float | None:
    """Return the cost of the rewrites of a run; None: it is unknown."""
    known = [line.money for line in lines if line.money is not None]
    return sum(known) if known else None


def _describe(lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the cells of a run."""
    verdicts = Counter(line.verdict for line in lines)
    money, shares = total_money(lines), mean_shares(lines)
    return (
        f"{lines[0].time:%Y-%m-%d %H:%M:%S}",
        f"{verdicts[REWRITTEN] + verdicts[IN_PART]:,}",
        *(f"{verdicts[verdict]:,}" for verdict in (WAITS, FAILED)),
        show(sum(line.bytes_rewritten or 0 for line in lines)),
        f"{sum(line.seconds or 0 for line in lines):,.0f}",
        "" if money is None else f"{money:,.2f}",
        *([f"{share:.1%}" for share in shares] if shares else ["", ""]),
    )
