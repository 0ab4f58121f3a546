"""The best sequence of merges in hindsight, of rows that are spread evenly over the table.

``python -m tests.kit.hindsight`` prints what no rule can go below: what filters read of the best
sequences, by how dear a written row is.

Merges join the newest runs, up to some older one. So what happens to the rows that came in between
two appends depends on nothing else, and the best sequence is found by dynamic programming over
intervals of appends.
"""

import argparse
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from tests.kit.aging import A_GROUP, A_ROW, COLUMNS, SETTINGS
from tests.kit.builders import request
from zadapter.planning.reading import grain, spread

ROWS = 2_000
"""Rows of a file."""
FREE = np.array([1, 1.25, 1.5, 2, 3, 4, 6, 8])
"""By how many times the files of a run may be smaller than the target, if that is free."""


@dataclass(frozen=True)
class Course:
    """Appends to a table.

    Attributes:
        files: Files before the first append.
        appends: Number of appends.
        each: Files of each append.
        free: Whether the files of each run have the best size, not the product's.
    """

    files: float
    appends: int
    each: float
    free: bool = False

    @property
    def ends(self):
        """Files of all rows after so many appends, from 0."""
        return self.files + self.each * np.arange(self.appends + 1)

    @cached_property
    def kept(self):
        """Sums over the appends so far of 1 / what a fresh fit has: by file, by group, files."""
        fresh = np.array([shares(*self.cuts(end, end)) * end for end in self.ends])[:, :, 0]
        ones = np.column_stack([1 / fresh, 1 / self.ends])
        return np.concatenate([np.zeros((1, 3)), np.cumsum(ones[1:], axis=0)]) / self.appends

    def cuts(self, run, whole):
        """Return the possible numbers of files of a run, and of its row groups."""
        size = run * ROWS * A_ROW
        files, groups = grain(ASKED, size, run * ROWS, int(whole * ROWS * A_ROW))
        if not self.free or run >= whole:
            return np.array([files], float), np.array([files * groups], float)
        every = np.unique(np.maximum(1, np.rint(run * FREE)))
        return every, np.maximum(every, float(files * groups))

    def price(self, run, first, last, a_file):
        """Return what a run costs that is there after the appends from *first* to *last*.

        Returns:
            The cost, what filters read by file and by row group, x a fresh fit, and files x fresh.
        """
        files, groups = self.cuts(run, self.ends[first])
        by_file, by_group = shares(files, groups) * run
        times = self.kept[last] - self.kept[max(first, 1) - 1]
        found = np.stack([by_file * times[0], by_group * times[1], files * times[2]])
        cost = found[:2].mean(axis=0) + a_file * found[2]
        best = np.argmin(cost)
        return np.append(cost[best], found[:, best])

    def best(self, a_row, a_file=0.0):
        """Return the best sequence, if writing each appended row once more costs *a_row*.

        Returns:
            What filters read by file and by row group on average, x a fresh fit of the same rows;
            files x fresh, on average; rows written per row appended.
        """
        count, none = self.appends, np.zeros(5)
        found = {(first, first - 1): none for first in range(1, count + 2)}
        for length in range(count + 1):
            for first in [*range(1, count - length + 2 if length else 0), None]:
                last = length if first is None else first - 1 + length
                ways = []
                for merged in range(0 if first is None else first, last + 1):
                    before = none if merged == 0 else found[first, merged - 1]
                    run = self.ends[merged] - (0 if first is None else self.ends[first - 1])
                    written = 0.0 if merged == 0 else run / (self.each * count)
                    here = self.price(run, merged, last, a_file)
                    here[0] += a_row * written
                    after = found[merged + 1, last] if merged < last else none
                    ways.append(before + np.append(here, written) + after)
                found[first, last] = min(ways, key=lambda way: way[0])
        return found[None, count][1:]


def shares(files, groups):
    """Return what filters read of runs of so many files and row groups, of each row."""
    rows, none = np.ones(len(files)), np.zeros(len(files))
    return np.stack([spread(ASKED, rows, files, each, none) for each in (files, groups)])


ASKED = request(COLUMNS, target_file_size=ROWS * A_ROW, row_groups=A_GROUP)


def main():
    """Print the best sequences of merges."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--appends", nargs="+", default=["small"], choices=[*SETTINGS])
    parser.add_argument("--row", nargs="+", type=float, default=[0.06, 0.15, 0.2])
    parser.add_argument(
        "--file", type=float, help="price of a file; without it the product's sizes"
    )
    asked = parser.parse_args()
    print(
        "appends price | mean x fresh: by file, by row group, files | rows written a row appended"
    )
    for appends, a_row in product(asked.appends, asked.row):
        course = Course(*SETTINGS[appends], free=asked.file is not None)
        *beside, written = course.best(a_row, asked.file or 0.0)
        print(appends, a_row, "|", *(f"{x:.2f}" for x in beside), "|", f"{written:.2f}", flush=True)


if __name__ == "__main__":
    main()
