"""Ageing of a table: appends with a maintenance call after each, and what filters read then."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from integration.bench.appends.rows import Ageing, share_of_base
from integration.bench.appends.tables import FORMATS
from integration.bench.contenders import OURS
from integration.bench.measures.shares import Filters, Shares, filters, shares
from integration.bench.race import Track
from integration.bench.tables.workloads import ranges
from zadapter.spark.checksum import RowTotals, compute_totals

FILES = 36
"""Files of all rows: 512 KB each at scale 0.1."""
LEAST = 2_000
"""Rows of a file of a small table, which has fewer files."""
LOOKS = 4
"""How often a table is measured, at equal distances."""
SEED = 41
"""Seed of the filters, which is none of zadapter's own."""


@dataclass(frozen=True)
class Look:
    """What filters read after some of the appends.

    Attributes:
        appends: Number of appends so far.
        by_file: Rows in files that are not excluded, relative to a fresh fit of the same rows.
        by_row_group: Rows in row groups that are not excluded, relative to the same.
        files: Number of files.
        fresh_files: Number of files of the fresh fit.
        row_groups: Number of row groups.
        written: Rows written by the maintenance so far, per row appended so far.
    """

    appends: int
    by_file: float
    by_row_group: float
    files: int
    fresh_files: int
    row_groups: int
    written: float


@dataclass
class Aged:
    """Result of one contender on one table.

    Attributes:
        workload: Name of the workload.
        format: Name of the format.
        contender: Name of the contender.
        appends: Number of appends.
        looks: The measurements.
        seconds: Time of each maintenance call.
    """

    workload: str
    format: str
    contender: str
    appends: int
    looks: list[Look] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class _Fresh:
    """Fresh fit of the rows after some appends, and the filters of that moment."""

    asked: Filters
    shares: Shares


@dataclass
class Course:
    """Appends to tables of one format.

    Attributes:
        track: Parameters that all workloads share.
        ageing: Kind of table.
        format: Name of the format.
        appends: Number of appends.
    """

    track: Track
    ageing: Ageing
    format: str
    appends: int

    def __post_init__(self) -> None:
        self.pieces = self.ageing.pieces(self.track.folder, self.track.scale, self.appends)
        self.rows = [pq.read_metadata(path).num_rows for path in self.pieces]
        self.made = FORMATS[self.format](
            self.spark,
            self.spark.read.parquet(str(self.pieces[0])),
            self.ageing.workload,
            self.track.folder / self.format / self.ageing.name,
            max(1, round(min(FILES, sum(self.rows) / LEAST) * share_of_base(self.appends))),
        )
        looks = min(LOOKS, self.appends)
        self.moments = [self.appends * number // looks for number in range(1, looks + 1)]

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.track.spark

    @property
    def contenders(self) -> list[str]:
        """The chosen contenders of the format."""
        only = self.track.only
        return [name for name in self.made.contenders() if not only or name in only]

    def run(self, failed: dict[str, str]) -> Iterator[Aged]:
        """Let each contender maintain its own table.

        Args:
            failed: Receives the reasons of failed peers.

        Raises:
            AssertionError: A contender's table has other rows than were appended.
        """
        for name in self.contenders:
            found = self._tried(name, failed)
            if found is not None:
                yield found

    def _tried(self, name: str, failed: dict[str, str]) -> Aged | None:
        """Return the result of a contender, or record why a peer has failed."""
        try:
            return self._aged(name)
        except Exception as error:
            if name.startswith(OURS) or isinstance(error, AssertionError):
                raise
            failed[f"{self.ageing.name}, {self.format}, {name}"] = str(error).splitlines()[0]
            return None

    def _aged(self, name: str) -> Aged:
        maintain, table = self.made.contenders()[name], self.made.start(name)
        if self.ageing.deleted:
            self.made.mark_deleted(table)
        found = Aged(self.ageing.name, self.format, name, self.appends)
        written = 0
        for append, piece in enumerate(self.pieces[1:], 1):
            self.made.append(table, piece)
            if self.ageing.deleted:
                self.made.delete(table, self.ageing.condition(append))
            before = set(self.made.live(table))
            start = time.perf_counter()
            maintain(table)
            found.seconds.append(round(time.perf_counter() - start, 3))
            live = self.made.live(table)
            written += sum(_rows(path) for path in live if path not in before)
            if append in self.moments:
                appended = sum(self.rows[1 : append + 1])
                found.looks.append(self._look(append, live, written / appended))
        same = compute_totals(self.made.read(table))
        assert same == self.expected, f"{name}: {same}, not {self.expected}"
        return found

    def _look(self, append: int, live: Sequence[str], written: float) -> Look:
        fresh = self.fresh[append]
        now = shares(live, fresh.asked)
        return Look(
            appends=append,
            by_file=_read(now, "in_files") / _read(fresh.shares, "in_files"),
            by_row_group=_read(now, "in_row_groups") / _read(fresh.shares, "in_row_groups"),
            files=now.files,
            fresh_files=fresh.shares.files,
            row_groups=now.row_groups,
            written=written,
        )

    @cached_property
    def fresh(self) -> dict[int, _Fresh]:
        """The fresh fits by number of appends."""
        return {append: self._fitted(self.pieces[: append + 1]) for append in self.moments}

    def _fitted(self, pieces: Sequence[Path]) -> _Fresh:
        rows = self.ageing.alive(self.spark, pieces)
        table = self.made.fitted(rows)
        keys = self.ageing.workload.keys
        asked = filters(self.made.read(table), ranges(pieces, keys, SEED))
        return _Fresh(asked, shares(self.made.live(table), asked))

    @cached_property
    def expected(self) -> RowTotals:
        """Totals of the rows that the tables must have in the end."""
        return compute_totals(self.ageing.alive(self.spark, self.pieces))


def _rows(path: str) -> int:
    return int(pq.read_metadata(path).num_rows)


def _read(found: Shares, what: str) -> float:
    """Return the mean number of rows to read, with rows that a log has deleted."""
    return float(getattr(found, what).mean()) * found.rows
