"""Tables that get appends and maintenance, without Spark: their files, and what filters read.

``python -m tests.kit.aging --help`` ages tables of the size that the benchmark's README reports.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count, product

import numpy as np
import pyarrow as pa

from tests.kit.builders import file_table, request
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.trunk import fit_below
from zadapter.planning.maintenance import Limits, maintenance

A_ROW, A_GROUP = 64, 16
"""Bytes of a row, and row groups of a file of the target size."""
SAMPLED = 400
"""Rows that are sampled to fit a layout, for each file to write."""
COLUMNS = 3
DAY = 86_400
_numbers = count()


@dataclass(frozen=True)
class File:
    """Rows of a file, by row group."""

    groups: list[np.ndarray]
    layout: str | None = None

    @property
    def rows(self):
        return np.concatenate(self.groups)


def box(rows):
    return rows.min(axis=0), rows.max(axis=0)


def table_of(files, a_group=0):
    """Return the file table of *files*, each row group of which takes *a_group* bytes by itself."""
    lows, highs = zip(*(box(file.rows) for file in files), strict=True)
    rows, groups = (
        [*map(len, each)] for each in zip(*((f.rows, f.groups) for f in files), strict=True)
    )
    none = pa.array(np.zeros(len(files), np.int64))
    return file_table(
        [str(number) for number in range(len(files))],
        sizes=np.array(rows) * A_ROW + np.array(groups) * a_group,
        rows=rows,
        layouts=[file.layout for file in files],
        stats={
            f"c{column}": (
                pa.array(np.array(lows)[:, column]),
                pa.array(np.array(highs)[:, column]),
                none,
            )
            for column in range(COLUMNS)
        },
    )


@dataclass
class Aging:
    """A table of files of *a_file* rows that gets appends, each followed by maintenance.

    Attributes:
        files: The live files.
        appended: Rows that came in after the first fit.
        written: Rows that maintenance wrote.
        a_group: Bytes that a row group takes by itself.
    """

    a_file: int
    files: list[File] = field(default_factory=list)
    appended: int = 0
    written: int = 0
    a_group: int = 0

    @property
    def request(self):
        return request(COLUMNS, target_file_size=self.a_file * A_ROW, row_groups=A_GROUP)

    @property
    def rows(self):
        return np.concatenate([file.rows for file in self.files])

    @property
    def runs(self):
        """The number of runs."""
        return len({file.layout for file in self.files if file.layout})

    def write(self, rows, cut_into, row_groups, ahead=(), trunk=None):
        """Return files of *rows*, as the product fits and places them."""
        sample, keys = (
            [pa.array(each) for each in drawn(rows, cut_into).T],
            [*map(pa.array, rows.T)],
        )
        here = np.zeros(len(rows), np.int64)
        layout = (
            fit(self.request, sample, [()], here[: len(sample[0])], [cut_into], ahead)
            if trunk is None
            else fit_below(trunk, self.request, sample, (), cut_into)
        )
        parts = cut_into if trunk is None else max(cut_into, trunk.boxes)
        row_groups = max(1, round(row_groups * cut_into / parts))
        run = replace(layout, run=str(next(_numbers))).id
        leaf = assign.leaves(layout, keys, here)
        file_of = assign.files(layout, leaf, np.arange(len(rows)))
        order = np.lexsort((assign.leaf_positions(layout, leaf), file_of))
        edges = np.flatnonzero(np.diff(file_of[order])) + 1
        return [
            File(np.array_split(part, min(row_groups, len(part))), run)
            for part in np.split(rows[order], edges)
        ]

    def anew(self, rows):
        """Return files of *rows* as one rewrite of all rows writes them."""
        return self.write(rows, max(1, round(len(rows) / self.a_file)), A_GROUP)

    def as_fine(self):
        """Return the files of such a rewrite, with as many files and row groups as there are."""
        groups = sum(len(file.groups) for file in self.files)
        return self.write(self.rows, len(self.files), round(groups / len(self.files)))

    def append(self, rows, files=3):
        """Add *rows* in unclustered files."""
        self.appended += len(rows)
        self.files += [File([part]) for part in np.array_split(rows, files)]

    def planned(self, **limits):
        """Return what the product would rewrite."""
        files = table_of(self.files, self.a_group)
        return maintenance(files, self.request, [], Limits(**LIMITS | limits))

    def maintain(self, **limits):
        """Do what the product would, and return it."""
        plan = self.planned(**limits)
        removed, added = set(), []
        fitted = self.fitted_trunk(plan)
        for rewrite in plan.rewrites:
            removed |= set(rewrite.members.tolist())
            rows, trunk = self.rows_of(rewrite), rewrite.trunk
            trunk = trunk if trunk is None or trunk.levels else fitted
            added += self.write(rows, rewrite.cut_into, rewrite.row_groups, rewrite.ahead, trunk)
            self.written += len(rows)
        self.files = [f for n, f in enumerate(self.files) if n not in removed] + added
        return plan

    def rows_of(self, rewrite):
        """Return the rows of the files that are rewritten."""
        return np.concatenate([self.files[member].rows for member in rewrite.members])

    def fitted_trunk(self, plan):
        """Return the trunk of rewrites that have none yet, fitted to a sample of all of them."""
        some = [each for each in plan.rewrites if each.trunk and not each.trunk.levels]
        if not some:
            return None
        sample = np.concatenate([drawn(self.rows_of(each), each.cut_into) for each in some])
        return some[0].trunk.fit(self.request, [*map(pa.array, sample.T)])

    def beside_fresh(self):
        """Return what filters read, by file, by row group and as a cost, x a fresh fit.

        Returns:
            Beside the fit that the product makes, then beside one of as many files and row groups;
            and files, and bytes, x the first of these.
        """
        asked, fits = filters(self.rows), (self.files, self.anew(self.rows), self.as_fine())
        now, fresh, fine = (cost(files, asked, self.a_file) for files in fits)
        sizes = [table_of(files, self.a_group)["size"] for files in fits[:2]]
        files, size = ([of(each) for each in sizes] for of in (len, total))
        return np.concatenate([now / fresh, now / fine, [files[0] / files[1], size[0] / size[1]]])


def total(sizes):
    """Return the sum of a column."""
    return sizes.to_numpy().sum()


def drawn(rows, files):
    """Return a sample of *rows* that are to be cut into so many files."""
    return rows[np.random.default_rng(len(rows)).permutation(len(rows))[: SAMPLED * files]]


LIMITS = {"job_bytes": 1 << 60}


def filters(rows, count=240, seed=1):
    """Return ranges that nothing was fitted to: 1 % of a column, or 10 % of each of two or three.

    Returns:
        Lowest and highest values, both of shape (count, 1, columns).
    """
    random = np.random.default_rng(seed)
    ordered = np.sort(rows, axis=0)
    low = np.full((count, 1, COLUMNS), -(1 << 62))
    high = -low
    for number in range(count):
        width, share = (1, 0.01) if number % 2 else (random.integers(2, COLUMNS + 1), 0.1)
        for column in random.choice(COLUMNS, width, replace=False):
            start = random.integers(0, int(len(rows) * (1 - share)))
            low[number, 0, column] = ordered[start, column]
            high[number, 0, column] = ordered[start + int(len(rows) * share), column]
    return low, high


def cost(files: Sequence[File], asked, a_file):
    """Return the rows in files to open, in row groups to read, and these with a cost of opening."""

    def hits(parts):
        lows, highs = (np.array(each) for each in zip(*map(box, parts), strict=True))
        return ((lows <= asked[1]) & (highs >= asked[0])).all(axis=2)

    opened = hits([file.rows for file in files])
    groups = [group for file in files for group in file.groups]
    by_file = (opened * [len(file.rows) for file in files]).sum()
    by_group = (hits(groups) * [len(group) for group in groups]).sum()
    return np.array([by_file, by_group, by_group + opened.sum() * a_file / 32], float)


def arrivals(kind, random, rows, day, days):
    """Return the rows that come in on a day, counted from 0; the table's own are of day -1."""
    keys = random.integers(0, 1 << 30, (rows, COLUMNS))
    if kind == "time":
        first, last = (day, day + 1) if day >= 0 else (-50, 0)
        keys[:, 0] = np.sort(random.integers(first * DAY, last * DAY, rows))
    if kind == "skewed":
        keys[:, 1] = random.zipf(1.3, rows) % 100_000
        keys[:, 0] = keys[:, 0] // 1_000 + 7 * keys[:, 1]
    if kind == "drifting":
        keys[:, 0] = random.normal((1 << 30) * max(day, 0) / days, 1 << 28, rows)
    return keys


def aged(kind, *, a_file, files, days, a_day, seed, job=None, a_group=0):
    """Age a table of *files* files by *a_day* files a day, with jobs of at most *job* files.

    A row group takes *a_group* bytes by itself.

    Returns:
        The table; what filters read beside fresh fits, shape (days, 8); the numbers of runs.
    """
    random = np.random.default_rng(seed)
    table = Aging(a_file, a_group=a_group)
    rows = arrivals(kind, random, files * a_file, -1, days)
    limits = {} if job is None else {"job_bytes": int(job * a_file * A_ROW)}
    if job is None:
        table.files = table.anew(rows)
    else:
        table.append(rows, files=files)
        while table.maintain(**limits).rewrites:
            pass
        table.appended = table.written = 0
    shares, runs = [], []
    for day in range(days):
        table.append(arrivals(kind, random, int(a_day * a_file), day, days))
        table.maintain(**limits)
        runs.append(table.runs)
        if day % max(1, days // 16) == 0 or day == days - 1:
            shares.append(table.beside_fresh())
    return table, np.array(shares), runs


KINDS = "stationary", "skewed", "time", "drifting"
SETTINGS = {"16": (38, 16, 1.6), "64": (64, 64, 1.28), "small": (16, 64, 0.32)}
"""Files, days and files a day."""


def main():
    """Print what filters read, mean and worst, of tables that age."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--appends", nargs="+", default=["16", "64"], choices=[*SETTINGS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[3, 4, 5])
    parser.add_argument("--rows", type=int, default=2_000, help="rows of a file")
    parser.add_argument("--group", type=int, default=0, help="bytes of a row group by itself")
    parser.add_argument("--job", type=float, help="maximum files of a job; without it all files")
    asked = parser.parse_args()
    print(
        "appends kind seed | mean: file group cost | worst: file group cost | mean beside as many "
        "files and row groups: file group cost | written | x fresh: files in the end, files, bytes "
        "| runs"
    )
    for appends, kind, seed in product(asked.appends, asked.kinds, asked.seeds):
        files, days, a_day = SETTINGS[appends]
        sizes = {"a_file": asked.rows, "files": files, "days": days, "a_day": a_day}
        table, shares, runs = aged(kind, **sizes, seed=seed, job=asked.job, a_group=asked.group)
        mean, worst = shares.mean(0), shares.max(0)
        figures = [" ".join(f"{x:.2f}" for x in each) for each in (mean[:3], worst[:3], mean[3:6])]
        figures += [f"{table.written / table.appended:.2f}"]
        figures += [" ".join(f"{x:.2f}" for x in (shares[-1, 6], *mean[6:])), str(max(runs))]
        print(appends, kind, seed, "|", " | ".join(figures), flush=True)


if __name__ == "__main__":
    main()
