"""Nights of a small lake of real tables: ``python -m integration.bench.lake --real``.

Each night files are appended to two copies of every table. ``zadapter.maintain`` keeps one of them
under a budget, with a journal; all rows of the other are fitted anew. What filters read then is
computed from the footers of the files that independent readers list.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import zadapter
from integration.bench.appends.rows import AGEING, Ageing
from integration.bench.appends.tables import FORMATS
from integration.bench.contenders import WHOLE
from integration.bench.session import session
from zadapter import LakeReport
from zadapter.layout.predict import Floats, queries
from zadapter.spark.checksum import compute_totals

KINDS = ("appends", "appends-time", "appends-skew")
SCALE, FILES = 0.02, 24
"""Of the tables: 120 000 rows each, of which the first three fifths are in so many files."""
A_NIGHT = 2
"""Files that come in each night."""
ASKED, SEED = 400, 41
"""Number of filters, and their seed, which is none of zadapter's own."""
NEAR, MOSTLY = 0.05, 0.95
"""Goal: how near predictions are, and for which share of the rewrites."""


@dataclass
class RealTable:
    """A table: a copy that is maintained, one that is fitted anew, and one that is left alone."""

    format: str
    ageing: Ageing
    pieces: Sequence[Path]
    spark: SparkSession
    folder: Path
    clustered: bool
    """Whether it is clustered before the first night."""
    came: int = 0
    """Pieces that have come in, besides the first."""
    ours: str = field(init=False)
    whole: str = field(init=False)

    def __post_init__(self) -> None:
        rows = self.spark.read.parquet(str(self.pieces[0])).repartition(FILES)
        self.made = FORMATS[self.format](
            self.spark,
            rows,
            self.ageing.workload,
            self.folder / self.format / self.ageing.name,
            FILES,
        )
        names = [f"{self.ageing.name} {what}" for what in ("ours", "whole", "left")]
        self.ours, self.whole, left = map(self.made.fresh, names)
        self.left = self.made.live(left)
        if self.clustered:
            self.fit(self.ours)
            self.fit(self.whole)
            self.left = self.made.live(self.made.fresh(names[-1]))

    def fit(self, table: str) -> int:
        """Fit all rows of a copy anew, and return the bytes that it had."""
        self.made.contenders()[WHOLE](table)
        return int(self.made.reports[-1].bytes_removed)

    @property
    def rows(self) -> Sequence[Path]:
        """The rows until now."""
        return self.pieces[: self.came + 1]

    def append(self) -> None:
        """Let the files of a night come in."""
        for piece in self.pieces[self.came + 1 : self.came + 1 + A_NIGHT]:
            for table in (self.ours, self.whole):
                self.made.append(table, piece)
            self.came += 1

    def entry(self) -> Mapping[str, object]:
        """Return the entry of the lake."""
        keys, target = list(self.ageing.workload.keys), self.made.target
        return {
            "match": self.ours, "format": self.format, "by": keys, "target_file_size": target,
        }  # fmt: skip

    def read(self) -> tuple["Read", "Read", "Read"]:
        """Return what filters read of the copies: left alone, ours, and fitted anew."""
        keys = self.ageing.workload.keys
        left = [*self.left, *map(str, self.rows[1:])]
        asked = _draw(pq.ParquetDataset([*map(str, self.rows)]).read(columns=list(keys)))
        first, second, third = (
            _read(paths, keys, asked)
            for paths in (left, self.made.live(self.ours), self.made.live(self.whole))
        )
        return first, second, third

    def check(self) -> None:
        """Compare the rows of the maintained copy with those that came in."""
        came = compute_totals(self.spark.read.parquet(*map(str, self.rows)))
        assert compute_totals(self.made.read(self.ours)) == came, self.ours


@dataclass(frozen=True)
class Read:
    """What filters read of a table on average, by the bounds in footers."""

    share: float
    """Share of the rows in files with a value that is asked for."""
    bytes: float
    """Bytes of the row groups with such values."""


Bounds = tuple[Floats, Floats]
"""Lowest and highest values, shape (filters or parts of files, columns)."""


def _draw(keys: pa.Table) -> Bounds:
    """Return filters that are drawn from rows, as the planner draws them, with another seed."""
    distinct = [np.unique(_numbers(column), return_inverse=True) for column in keys.columns]
    asked = queries(np.stack([ranks + 1 for _, ranks in distinct], axis=1), ASKED, SEED)
    at = [
        np.clip(asked[:, number] - 1, 0, len(each) - 1) for number, (each, _) in enumerate(distinct)
    ]
    low, high = (
        np.stack(
            [each[some[:, side]] for some, (each, _) in zip(at, distinct, strict=True)], axis=1
        )
        for side in (0, 1)
    )
    stated = asked[:, :, 0] >= 0
    return np.where(stated, low, -np.inf), np.where(stated, high, np.inf)


def _numbers(column: pa.ChunkedArray | pa.Array) -> Floats:
    return np.asarray(
        column.cast(pa.int32() if pa.types.is_date32(column.type) else column.type), float
    )


def _read(paths: Sequence[str], keys: Sequence[str], asked: Bounds) -> Read:
    rows, size, share = 0.0, 0.0, 0.0
    for path in paths:
        found = pq.ParquetFile(path)
        low, high, sizes = _bounds(found, keys)
        size += float((_hits((low, high), asked) * sizes).sum(axis=1).mean())
        whole = low.min(axis=0, keepdims=True), high.max(axis=0, keepdims=True)
        share += float(_hits(whole, asked).mean()) * found.metadata.num_rows
        rows += found.metadata.num_rows
    return Read(share=share / rows, bytes=size)


def _bounds(found: pq.ParquetFile, keys: Sequence[str]) -> tuple[Floats, Floats, Floats]:
    """Return the bounds of the row groups of a file, and their bytes."""
    groups = [found.metadata.row_group(number) for number in range(found.num_row_groups)]
    chunks = [[group.column(at) for at in range(group.num_columns)] for group in groups]
    sides = []
    for side in ("min", "max"):
        stated = [
            [
                getattr(chunk.statistics, side)
                for row in chunks
                for chunk in row
                if chunk.path_in_schema == key
            ]
            for key in keys
        ]
        types = [found.schema_arrow.field(key).type for key in keys]
        sides.append(
            np.stack(
                [_numbers(pa.array(*each)) for each in zip(stated, types, strict=True)], axis=1
            )
        )
    sizes = [sum(chunk.total_compressed_size for chunk in row) for row in chunks]
    return sides[0], sides[1], np.array(sizes, float)


def _hits(bounds: Bounds, asked: Bounds) -> np.ndarray:
    """Return whether each filter asks for values of each part, shape (filters, parts)."""
    (low, high), (least, most) = bounds, asked
    return ((low[None] <= most[:, None]) & (high[None] >= least[:, None])).all(axis=2)


@dataclass(frozen=True)
class Prediction:
    """A rewrite: what was predicted that filters read, and what they do, as shares of the rows."""

    table: str
    judged: float
    """Predicted from the log, for filters on all rows, as tables are chosen."""
    planned: float
    """Predicted by the plan, for filters on all rows, of which some are sampled, as the journal
    has it."""
    logged: float
    """What the same filters read by the log afterwards, as the journal has it."""
    measured: float
    """What filters on all rows read by the footers, of another seed."""


@dataclass
class Sums:
    """Bytes of all nights: rewritten by each way, and read by filters of each copy."""

    rewritten: list[int] = field(default_factory=lambda: [0, 0])
    read: list[float] = field(default_factory=lambda: [0.0] * 3)
    predictions: list[Prediction] = field(default_factory=list)

    def add(self, tables: Sequence[RealTable], due: LakeReport, done: LakeReport) -> None:
        """Add a night: what was due, and what was done."""
        judged = {line.table: line.share_predicted for line in due.lines}
        lines = {line.table: line for line in done.lines}
        for table in tables:
            found = table.read()
            for at, each in enumerate(found):
                self.read[at] += each.bytes
            line = lines[table.ours]
            shares = judged[table.ours], line.share_predicted, line.share_after
            if line.bytes_rewritten and None not in shares:
                self.predictions.append(Prediction(table.ours, *shares, found[1].share))

    def show(self) -> str:
        """Return the savings and bytes so far, relative to fitting everything anew."""
        left, ours, whole = self.read
        bytes_ = self.rewritten[0] / self.rewritten[1]
        return f"savings {(left - ours) / (left - whole):.1%}, bytes {bytes_:.1%}"


def replay(nights: int, share: float) -> None:
    """Replay nights, and print what was saved at which cost, and how predictions were.

    Args:
        nights: Number of nights.
        share: What a night may rewrite, as a share of the lake's bytes.
    """
    with TemporaryDirectory(prefix="zadapter-lake-") as folder:
        spark = session(Path(folder))
        tables = list(_make(spark, Path(folder), nights))
        sums = Sums()
        for night in range(nights):
            for table in tables:
                table.append()
            lake = _lake(tables, Path(folder), share)
            due = zadapter.maintain(lake, dry_run=True, spark=spark)
            report = zadapter.maintain(lake, spark=spark)
            assert not report.failed, report
            sums.rewritten[0] += report.bytes_rewritten
            sums.rewritten[1] += sum(table.fit(table.whole) for table in tables)
            sums.add(tables, due, report)
            verdicts = [line.verdict for line in report.lines]
            counts = {each: verdicts.count(each) for each in dict.fromkeys(verdicts)}
            print(f"{night + 1:3} {sums.show()}; {counts}", flush=True)
        for table in tables:
            table.check()
        _judge(sums)
        spark.stop()


def _make(spark: SparkSession, folder: Path, nights: int) -> Iterator[RealTable]:
    for number, (format_, kind) in enumerate((f, k) for f in FORMATS for k in KINDS):
        ageing = AGEING[kind]
        pieces = ageing.pieces(folder, SCALE, nights * A_NIGHT)
        yield RealTable(format_, ageing, pieces, spark, folder, clustered=number % 2 == 0)


def _lake(tables: Sequence[RealTable], folder: Path, share: float) -> dict[str, object]:
    size = sum(_bytes(table.made.live(table.ours)) for table in tables)
    return {
        "budget": {"bytes": int(share * size)},
        "journal": {"table": f"{folder}/journal", "format": "parquet"},
        "tables": [table.entry() for table in tables],
    }


def _bytes(paths: Sequence[str]) -> int:
    return sum(Path(path).stat().st_size for path in paths)


def _judge(sums: Sums) -> None:
    for each in sums.predictions:
        print(
            f"{each.judged:.3f} judged, {each.planned:.3f} planned, {each.logged:.3f} in the log, "
            f"{each.measured:.3f} by footers: {Path(each.table).name}"
        )
    for said, found in (("planned", "logged"), ("judged", "measured"), ("planned", "measured")):
        off = np.array([abs(getattr(e, said) - getattr(e, found)) for e in sums.predictions])
        near = float((off <= NEAR).mean())
        reached = "reached" if near >= MOSTLY else "missed"
        print(
            f"{reached}: {said} within {NEAR} of what was {found}: {near:.0%} of {len(off)} "
            f"rewrites (asked: {MOSTLY:.0%}), at most {off.max():.3f}"
        )
    print(f"beside fitting everything anew each night: {sums.show()}")
