"""Nights of a lake under one budget, without Spark: ``python -m integration.bench.lake``.

Tables are file tables whose files have boxes. What is due, and where rewritten rows go, is decided
by the planner and by the fit of layouts; what filters read is computed from the boxes, with a cost
of opening files. Each night rows come in, tables are rewritten, and then they are read.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import count

import numpy as np
import pyarrow as pa

from integration.bench import real_lake
from tests.kit.builders import file_table
from zadapter.base.ranks import Ints
from zadapter.lake.choice import Candidate, Step, choose
from zadapter.lake.judging import judge, steps
from zadapter.lake.settings import Budget
from zadapter.layout.box_rows import A_CELL, Cells, draw_positions, predict_cells, reads
from zadapter.layout.layout import Request
from zadapter.layout.predict import queries
from zadapter.planning.maintenance import Limits
from zadapter.planning.merges import Rewrite
from zadapter.planning.reading import OPENING, Mask
from zadapter.table.overlap.extents import Space, extent, space

MIB = 1 << 20
TARGET, A_ROW, A_GROUP = 128 * MIB, 128, 16
"""Bytes of a file and of a row, and row groups of a file."""
COLUMNS, TOP, DAY = 3, 1 << 30, 1 << 20
BEFORE = 30
"""Nights whose rows the tables have in the beginning."""
DRAWN, ASKED = 2_048, 120
JOB = 1 << 60
REQUEST = Request(
    columns=tuple((f"c{number}",) for number in range(COLUMNS)),
    weights=(1.0,) * COLUMNS,
    target_file_size=TARGET,
    row_groups=A_GROUP,
)
SAVED, WRITTEN, BESIDE = 0.9, 0.2, 1.5
"""Goals: share of what rewriting everything saves, at most at which share of its bytes, and what is
saved relative to the better rival."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How a table grows and is read."""

    files: int
    """Files of the target size in the beginning."""
    a_night: float
    """The same of the rows of a night of arrivals."""
    every: int
    """Nights from one arrival to the next."""
    parts: int
    """Files of an arrival."""
    weight: float
    by_time: bool
    """Whether the first column grows with the nights."""
    by_day: bool
    """Whether each night is a partition."""
    clustered: bool
    """Whether the table is clustered in the beginning."""
    max_wait: int | None


def kinds(random: np.random.Generator, tables: int) -> list[Kind]:
    """Return tables of many sizes: a fifth is never read, and most queries read few of them."""
    weights = np.where(np.arange(tables) % 5 == 4, 0.0, 20 / (1.0 + random.permutation(tables)))
    sizes = np.clip(random.lognormal(2.3, 1.1, tables), 1, 120).astype(int).tolist()
    return [
        Kind(
            files=files,
            a_night=files * float(random.choice([0.002, 0.01, 0.03])),
            every=int(random.choice([1, 1, 2, 7])),
            parts=int(random.choice([1, 4, 16])),
            weight=float(weight),
            by_time=bool(random.random() < 0.4),
            by_day=bool(files >= 10 and random.random() < 0.3),
            clustered=bool(random.random() < 0.5),
            max_wait=10 if random.random() < 0.1 else None,
        )
        for files, weight in zip(sizes, weights.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class Files:
    """Boxes of files; arrays have one entry, or row, a file."""

    low: Ints
    high: Ints
    rows: Ints
    run: Ints
    """Number of the layout; -1: raw."""
    groups: Ints
    day: Ints

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return int(self.rows.sum()) * A_ROW

    def take(self, at: Ints | Mask) -> "Files":
        """Return some of the files."""
        return Files(*(getattr(self, each.name)[at] for each in fields(self)))


def joined(parts: Sequence[Files]) -> Files:
    """Return files of several sets."""
    return Files(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Files)))


def arrivals(kind: Kind, random: np.random.Generator, rows: float, parts: int, day: int) -> Files:
    """Return raw files of rows that come in on a day, of which the first is day 0."""
    low = random.integers(0, TOP // 50, (parts, COLUMNS))
    high = random.integers(TOP - TOP // 50, TOP, (parts, COLUMNS))
    if kind.by_time:
        low[:, 0], high[:, 0] = day * DAY, day * DAY + DAY - 1
    count = np.full(parts, max(1, int(rows / parts)))
    raw, ones = np.full(parts, -1), np.ones(parts, np.int64)
    return Files(low, high, count, raw, ones, np.full(parts, day if kind.by_day else 0))


def written(files: Files, ahead: Sequence[int], cut_into: int, row_groups: int) -> Files:
    """Return the files that a rewrite of *files* writes, as a fit cuts rows drawn inside them."""
    count = max(1, cut_into)
    inside = draw_positions(files.low, files.high, files.rows, A_CELL * count)
    cells = predict_cells(REQUEST, inside, ahead, int(files.rows.sum()), count, row_groups)
    parts = np.rint(cells.files).astype(np.int64)
    share = np.repeat(cells.rows / parts, parts)
    many = len(share)
    return Files(
        np.repeat(cells.low, parts, axis=0),
        np.repeat(cells.high, parts, axis=0),
        np.maximum(1, share.astype(np.int64)),
        np.full(many, next(_runs)),
        np.full(many, row_groups),
        np.full(many, files.day[0]),
    )


_runs = count()


def anew(files: Files) -> Files:
    """Return the files after a rewrite of all of them; single runs come out as they are."""
    found = list[Files]()
    for day in np.unique(files.day).tolist():
        some = files.take(files.day == day)
        if some.run.min() < 0 or some.run.min() != some.run.max():
            many = max(1, round(some.bytes / TARGET))
            some = written(some, (0,) * COLUMNS, many, A_GROUP)
        found.append(some)
    return joined(found)


def read(kind: Kind, files: Files, asked: tuple[Ints, Ints]) -> float:
    """Return the bytes that a filter reads, with a cost of opening files, by a table's weight."""
    ones = np.ones(len(files.rows))
    cells = Cells(files.low, files.high, files.rows.astype(float), ones, files.groups.astype(float))
    cost = reads(REQUEST, cells, *asked, OPENING * TARGET / A_ROW)
    return float(cost.sum()) * A_ROW * kind.weight


def filters(files: Files) -> tuple[Ints, Ints]:
    """Return rows of a table, and filters on them that no planner has seen."""
    rows_at = draw_positions(files.low, files.high, files.rows, DRAWN)
    return rows_at, queries(rows_at, ASKED, seed=7)


def file_table_of(files: Files) -> tuple[pa.Table, Space]:
    """Return a file table, as a log would say, and the boxes in it."""
    none = pa.array(np.zeros(len(files.rows), np.int64))
    table = file_table(
        [f"{number:06}" for number in range(len(files.rows))],
        sizes=files.rows * A_ROW,
        rows=files.rows,
        layouts=[None if run < 0 else f"{REQUEST.id}{run:08}" for run in files.run.tolist()],
        partition={"day": pa.array(files.day)},
        stats={
            f"c{at}": (pa.array(files.low[:, at]), pa.array(files.high[:, at]), none)
            for at in range(COLUMNS)
        },
    )
    extents = [extent(table, column) for column in REQUEST.columns]
    return table, space(extents, files.rows)


def judged(files: Files, budget: int) -> tuple[Step, ...]:
    """Return what the planner would rewrite."""
    table, boxes = file_table_of(files)
    return steps(table, REQUEST, ["day"], Limits(job_bytes=JOB, bytes=budget), boxes)


def maintained(files: Files, most: int) -> tuple[Files, int]:
    """Return the files after a call that rewrites at most so many bytes, and how many it does."""
    table, boxes = file_table_of(files)
    due, size = list[Rewrite](), 0
    for rewrite, _ in judge(table, REQUEST, ["day"], Limits(job_bytes=JOB, bytes=most), boxes):
        if size + rewrite.bytes <= most:
            due.append(rewrite)
            size += rewrite.bytes
    if not due:
        return files, 0
    keep = np.ones(len(files.rows), np.bool_)
    keep[np.concatenate([each.members for each in due])] = False
    new = [written(files.take(e.members), e.ahead, e.cut_into, e.row_groups) for e in due]
    return joined([files.take(keep), *new]), size


@dataclass
class Lake:
    """The tables as one way of maintenance has left them."""

    kinds: Sequence[Kind]
    files: list[Files]
    spent: int = 0
    """Bytes rewritten."""
    read: float = 0.0
    """Bytes read in all nights."""
    changed: set[int] = field(default_factory=set[int])
    """Tables that changed since they were read."""
    last: dict[int, float] = field(default_factory=dict[int, float])
    """What filters read of each table when they were last asked."""

    def put(self, number: int, files: Files, size: int) -> None:
        """Exchange the files of a table, after a rewrite of so many bytes."""
        self.files[number], self.spent = files, self.spent + size
        self.changed.add(number)

    def ask(self, asked: Sequence[tuple[Ints, Ints]]) -> None:
        """Read all tables."""
        for number in self.changed:
            self.last[number] = read(self.kinds[number], self.files[number], asked[number])
        self.changed.clear()
        self.read += sum(self.last.values())


@dataclass
class Chosen(Lake):
    """Maintained by what rewrites save."""

    due: dict[int, tuple[Step, ...]] = field(default_factory=dict[int, tuple[Step, ...]])
    waited: dict[int, int] = field(default_factory=dict[int, int])
    rewritten: set[int] = field(default_factory=set[int])
    """Tables that were rewritten the last night."""
    longest: int = 0
    """Nights that a table waited beyond those it may."""

    def maintain(self, budget: int) -> None:
        """Judge the tables that changed, choose, and rewrite."""
        for number in self.changed | self.rewritten:
            self.due[number] = judged(self.files[number], budget)
        found = choose(
            [
                Candidate(
                    table=str(number),
                    steps=self.due[number],
                    weight=kind.weight,
                    waited=self.waited.get(number, 0),
                    max_wait=kind.max_wait,
                )
                for number, kind in enumerate(self.kinds)
            ],
            Budget(bytes=budget),
            1,
        )
        self.rewritten = {int(name) for name in found.order}
        for name, part in found.taken.items():
            number = int(name)
            if part.steps:
                self.put(number, *maintained(self.files[number], part.bytes))
            waits = bool(self.due[number]) and not part.steps
            self.waited[number] = self.waited.get(number, 0) + 1 if waits else 0
            most = self.kinds[number].max_wait
            if most is not None:
                self.longest = max(self.longest, self.waited[number] - most)


class BySmallFiles(Lake):
    """Maintained by the same rewrites, those of tables with most small files first."""

    rewrite = staticmethod(maintained)

    def maintain(self, budget: int) -> None:
        """Rewrite tables until the budget is spent."""
        small = [int((each.rows * A_ROW < TARGET // 2).sum()) for each in self.files]
        for number in sorted(range(len(small)), key=lambda number: -small[number]):
            if small[number] > 1 and budget > TARGET // 8:
                files, size = self.rewrite(self.files[number], budget)
                if size:
                    self.put(number, files, size)
                    budget -= size


def compacted(files: Files, most: int) -> tuple[Files, int]:
    """Return the files after small ones of a partition are joined, of at most so many bytes."""
    small = np.flatnonzero(files.rows * A_ROW < TARGET // 2)
    small = small[np.argsort(files.day[small], kind="stable")]
    small = small[np.cumsum(files.rows[small]) * A_ROW <= most]
    _, bin_of = np.unique(
        np.stack([files.day[small], np.cumsum(files.rows[small]) * A_ROW // TARGET]),
        axis=1,
        return_inverse=True,
    )
    bins = [small[bin_of == number] for number in range(bin_of.max(initial=-1) + 1)]
    bins = [each for each in bins if len(each) > 1]
    if not bins:
        return files, 0
    keep = np.ones(len(files.rows), np.bool_)
    keep[np.concatenate(bins)] = False
    new = Files(
        np.stack([files.low[each].min(axis=0) for each in bins]),
        np.stack([files.high[each].max(axis=0) for each in bins]),
        np.array([files.rows[each].sum() for each in bins]),
        np.full(len(bins), -1),
        np.ones(len(bins), np.int64),
        np.array([files.day[each[0]] for each in bins]),
    )
    return joined([files.take(keep), new]), new.bytes


class Compacted(BySmallFiles):
    """Small files are joined, without an order of rows, in tables with most of them first."""

    rewrite = staticmethod(compacted)


@dataclass
class InTurn(Lake):
    """Rewritten whole, one table after the other; what a night leaves, the next one may spend."""

    next: int = 0
    credit: int = 0

    def maintain(self, budget: int) -> None:
        """Rewrite the next tables until the budget is spent."""
        self.credit += budget
        for _ in self.kinds:
            files = self.files[self.next]
            if files.bytes > self.credit:
                return
            self.credit -= files.bytes
            self.put(self.next, anew(files), files.bytes)
            self.next = (self.next + 1) % len(self.kinds)


class Whole(Lake):
    """Rewritten whole each night."""

    def maintain(self, budget: int) -> None:
        """Rewrite all tables, whatever the budget."""
        for number in sorted(self.changed):
            self.put(number, anew(self.files[number]), 0)
        self.spent += sum(each.bytes for each in self.files)


class Unmaintained(Lake):
    """Left as rows come in."""

    def maintain(self, budget: int) -> None:
        """Rewrite nothing."""


def first(kind: Kind, random: np.random.Generator) -> Files:
    """Return the files of a table in the beginning."""
    days = BEFORE if kind.by_time or kind.by_day else 1
    a_day = kind.files * TARGET / A_ROW / days
    parts = max(1, 2 * kind.files // days)
    files = joined([arrivals(kind, random, a_day, parts, day) for day in range(days)])
    return anew(files) if kind.clustered else files


def arrive(
    every: Sequence[Kind], random: np.random.Generator, night: int
) -> Iterator[tuple[int, Files]]:
    """Return the tables that get rows in a night, and the files of these."""
    for number, kind in enumerate(every):
        if (night + number) % kind.every == 0:
            rows = kind.a_night * kind.every * TARGET / A_ROW
            yield number, arrivals(kind, random, rows, kind.parts, BEFORE + night)


WAYS = {
    "zadapter": Chosen,
    "small files first": BySmallFiles,
    "small files first, joined": Compacted,
    "z-order in turn": InTurn,
    "everything": Whole,
}


def nights(tables: int, count: int, share: float, seed: int) -> None:
    """Replay nights, and print what each way of maintenance has saved until then."""
    random = np.random.default_rng(seed)
    every = kinds(random, tables)
    start = [first(kind, random) for kind in every]
    none, *rest = lakes = [
        way(every, start.copy(), changed=set(range(tables)))
        for way in (Unmaintained, *WAYS.values())
    ]
    asked = [filters(files) for files in start]
    for night in range(count):
        for number, new in arrive(every, random, night):
            for lake in lakes:
                lake.put(number, joined([lake.files[number], new]), 0)
            asked[number] = filters(none.files[number])
        budget = int(share * sum(files.bytes for files in none.files))
        for lake in lakes:
            lake.maintain(budget)
            lake.ask(asked)
        show(night, none, rest)
    goals(none, rest)


def savings(none: Lake, lakes: Sequence[Lake]) -> list[float]:
    """Return what each way saves, relative to rewriting everything, which is the last one."""
    return [(none.read - each.read) / (none.read - lakes[-1].read) for each in lakes]


def show(night: int, none: Lake, lakes: Sequence[Lake]) -> None:
    """Print what was saved until now."""
    shown = zip(
        WAYS, savings(none, lakes), (each.spent / lakes[-1].spent for each in lakes), strict=True
    )
    print(
        f"{night + 1:3}",
        "; ".join(f"{who} {saved:.1%} {size:.2%}" for who, saved, size in shown),
        flush=True,
    )


def goals(none: Lake, lakes: Sequence[Lake]) -> None:
    """Print whether the goals are reached."""
    ours, ranked, *rivals, _ = savings(none, lakes)
    size = lakes[0].spent / lakes[-1].spent
    beyond = max(getattr(each, "longest", 0) for each in lakes)
    beside = ours / max(rivals)
    print(f"beside the same rewrites of tables with most small files first: {ours / ranked:.2f} x")
    for what, asked, found, reached in (
        (
            "share of the savings of rewriting everything",
            f">= {SAVED:.0%}",
            f"{ours:.1%}",
            ours >= SAVED,
        ),
        ("share of its bytes", f"<= {WRITTEN:.0%}", f"{size:.1%}", size <= WRITTEN),
        (
            "savings beside the better of joining small files and a z-order in turn",
            f">= {BESIDE} x",
            f"{beside:.2f} x",
            beside >= BESIDE,
        ),
        ("nights that a table waited beyond its own limit", "0", f"{beyond}", beyond <= 0),
    ):
        print(f"{'reached' if reached else 'missed'}: {what}: {found} (asked: {asked})")


def main() -> None:
    """Parse the arguments, and replay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--nights", type=int, help="30, or 5 of real tables")
    parser.add_argument(
        "--budget",
        type=float,
        help="share of the lake's bytes a night: 0.05, or 0.2 of real tables",
    )
    parser.add_argument("--real", action="store_true", help="nine real tables of three formats")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.real:
        real_lake.replay(asked.nights or 5, asked.budget or 0.2)
    else:
        nights(asked.tables, asked.nights or 30, asked.budget or 0.05, asked.seed)


if __name__ == "__main__":
    main()
