"""Maintenance of tables whose queries ask unevenly, by rules that know the queries.

``python -m tests.kit.uneven --help`` ages such tables as :mod:`tests.kit.aging` does, without
Spark. Rules but the product's own judge a merge by the files that it really writes:

- ``even`` by ranges all over the table, as the product does;
- ``log`` by the queries of the log;
- ``borders`` also considers new files together with only those that ranges of the log cut while
  other runs are read, too (WAIR, arXiv 2602.23289), most wasted rows first.
"""

import argparse
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from tests.kit.aging import A_ROW, COLUMNS, DAY, Aging, arrivals, box, cost, filters
from zadapter.layout.box_rows import levels_ahead
from zadapter.layout.filters import Filter, Range
from zadapter.planning import merges
from zadapter.planning.reading import grain

KINDS = "uniform", "recent", "hot", "zipf", "tpch"
RULES = "product", "even", "log", "borders"
FILES, A_DAY, A_FILE = 16, 0.32, 400
"""Files before the first append, files of each, and rows of a file."""
ASKED, LEARNED, LOOK = 160, 60, 4
"""Queries that a merge is judged by, and a layout is learned from; appends from look to look."""
END = 1 << 62
"""Ends of ranges that are open."""
COARSE = 1.6
"""Growth in rows from a candidate of parts of runs to the next."""


def arrive(kind, random, rows, day, days):
    """Return the rows that come in on a day."""
    if kind in {"uniform", "hot", "recent"}:
        return arrivals("time" if kind == "recent" else "stationary", random, rows, day, days)
    keys = random.integers(0, 1 << 30, (rows, COLUMNS))
    if kind == "zipf":
        keys[:, 1] = random.zipf(1.3, rows) % 100_000 * 7_919 % 100_003
    else:  # ship date, discount, quantity
        keys = np.stack(
            [random.integers(*ends, rows) for ends in ((0, 2_526), (0, 11), (1, 51))], 1
        )
    return keys


def ask(kind, rows, random, day, count):
    """Return ranges that are asked on a day, a tenth of them as those of uniform tables."""
    low, high = filters(rows, count, int(random.integers(1 << 30)))
    ordered = np.sort(rows, axis=0)
    for number in range(0 if kind == "uniform" else count):
        if random.random() >= 0.1:
            low[number], high[number] = -END, END
            for column, first, last in _ranges(kind, rows, ordered, random, day):
                low[number, 0, column], high[number, 0, column] = first, last
    return low, high


def _ranges(kind, rows, ordered, random, day):
    """Yield the column and the ends of each range of a query."""
    if kind == "tpch":
        yield from _tpch(int(random.integers(7)), 365 * int(random.integers(0, 6)), random)
        return
    column, others = 1, [0, 2]
    if kind == "recent":
        age, width = random.exponential(3.0), random.choice([0.25, 1.0, 3.0])
        end = (day + 1 - age) * DAY
        first, last = int(end - width * DAY), int(end) if random.random() < 1 / 2 else END
        column, others = 0, [1, 2]
    elif kind == "hot":  # a twentieth of the keys
        start = 0.40 + 0.045 * random.random()
        first, last = int(start * (1 << 30)), int((start + 0.005) * (1 << 30))
    else:
        first = last = rows[random.integers(len(rows)), 1]
    yield column, first, last
    if random.random() < 1 / 2:
        other = others[random.integers(2)]
        start = random.integers(0, int(len(rows) * 0.9))
        yield other, ordered[start, other], ordered[start + int(len(rows) * 0.1), other]


def _tpch(number, year, random):
    """Yield the ranges of Q6, Q14, Q15, Q1, Q19, Q7 and of Q12 or Q20, of this number."""
    if number == 0:
        discount = int(random.integers(2, 9))
        yield from ((0, year, year + 364), (1, discount - 1, discount + 1), (2, 1, 23))
    elif number in {1, 2}:
        months = 2 * number - 1
        start = 365 + 30 * int(random.integers(0, 61 - months))
        yield 0, start, start + 30 * months - 1
    elif number == 3:
        yield 0, 0, int(2_450 - random.integers(0, 60))
    elif number == 4:
        start = int(random.integers(1, 31))
        yield 2, start, start + 10
    else:
        yield (0, 3 * 365, 5 * 365) if number == 5 else (0, year, year + 364)


def filters_of(low, high):
    """Return ranges as filters of a layout."""
    found = []
    for ends in np.stack([low[:, 0], high[:, 0]], axis=2).tolist():
        asked = (
            Range((f"c{at}",), str(first), None if last == END else str(last))
            for at, (first, last) in enumerate(ends)
            if first > -END
        )
        found.append(Filter((tuple(asked),), 1.0))
    return tuple(found)


@dataclass
class Uneven(Aging):
    """A table whose layout is learned from *learned*; empty: columns are cut in turn."""

    learned: tuple = ()

    @property
    def request(self):
        return replace(super().request, filters=self.learned)

    def merge(self, asked, *, parts):
        """Merge the files that are worth most, if any are worth their price.

        Args:
            asked: The queries that are to read less.
            parts: Whether parts of runs may be merged.
        """
        read, opened = self.reads(self.files, asked)
        now = self.cost(read, opened)
        possible = [self.judge(each, now, 0.0) for each in self.candidates(asked, read, parts)]
        best, chosen, new = 0.0, None, []
        for most, members in sorted(possible, key=lambda each: -each[0]):
            if most <= best:
                break
            written = self.rewritten(members)
            read, opened = self.reads(written, asked)
            after = self.cost(read, opened).sum()
            worth, _ = self.judge(members, now, after)
            if worth > best and now[members].sum() - after > merges.LEAST * now.sum():
                best, chosen, new = worth, set(members), written
        if chosen:
            self.written += sum(len(self.files[each].rows) for each in chosen)
            self.files = [f for at, f in enumerate(self.files) if at not in chosen] + new

    def judge(self, members, now, after):
        """Return what a merge is worth by the product's formula, and its members."""
        rows = {}
        for each in members:
            file = self.files[each]
            rows[file.layout] = rows.get(file.layout, 0) + len(file.rows)
        raw, total = rows.pop(None, 0), sum(rows.values())
        fresh = raw + total - max(rows.values(), default=0)
        saved = (now[members].sum() - after) / now.sum()
        return saved * fresh - merges.PRICE * total, members

    def candidates(self, asked, read, parts):
        """Return lists of files: new ones with more and more runs, or parts of runs."""
        runs = {}
        for at, file in enumerate(self.files):
            runs.setdefault(file.layout, []).append(at)
        raw, rows = runs.pop(None, []), np.array([len(file.rows) for file in self.files])
        ways = [(1.25, sorted(runs.values(), key=lambda run: rows[run].sum()))]
        if parts:
            of_run = {at: read[:, run].sum(axis=1) for run in [*runs.values(), raw] for at in run}
            own = np.stack([of_run[at] for at in range(len(rows))], axis=1)
            beside = 1 - own / np.maximum(read.sum(axis=1), 1)[:, None]
            waste = (np.maximum(read - self.matches(asked), 0) * beside).mean(axis=0) / rows
            order = np.argsort(-waste, kind="stable").tolist()
            ways.append((COARSE, [[at] for at in order if at not in raw and waste[at] > 0]))
        found = [raw] if raw else []
        for step, chunks in ways:
            taken, last = list(raw), rows[raw].sum()
            for number, chunk in enumerate(chunks, 1):
                taken = taken + chunk
                if rows[taken].sum() >= step * last or number == len(chunks):
                    found.append(sorted(taken))
                    last = rows[taken].sum()
        return [[*each] for each in dict.fromkeys(map(tuple, found))]

    def rewritten(self, members):
        """Return the files that replace some."""
        rows = np.concatenate([self.files[each].rows for each in members])
        every = self.rows
        cut_into, row_groups = map(
            int, grain(self.request, len(rows) * A_ROW, len(rows), len(every) * A_ROW)
        )
        some = every[:: max(1, len(every) // 2_000)]
        ahead = levels_ahead(some, rows.min(axis=0), rows.max(axis=0))
        return self.write(rows, cut_into, row_groups, ahead)

    def cost(self, read, opened):
        """Return what queries read of each file on average, with a cost of opening it."""
        return read.mean(axis=0) + opened.mean(axis=0) * self.a_file / 32

    def reads(self, files, asked):
        """Return the rows that each query reads of each file by row group, and which it opens."""
        groups = [group for file in files for group in file.groups]
        rows = np.array([len(group) for group in groups])
        starts = np.cumsum([0, *(len(file.groups) for file in files[:-1])])
        opened = hits([file.rows for file in files], asked)
        return np.add.reduceat(hits(groups, asked) * rows, starts, axis=1), opened

    def matches(self, asked):
        """Return the rows of each file that match each query."""
        inside = [((f.rows >= asked[0]) & (f.rows <= asked[1])).all(axis=2) for f in self.files]
        return np.stack([each.sum(axis=1) for each in inside], axis=1)


def hits(parts, asked):
    """Return which queries hit the boxes of some sets of rows."""
    lows, highs = (np.array(each) for each in zip(*map(box, parts), strict=True))
    return ((lows <= asked[1]) & (highs >= asked[0])).all(axis=2)


def aged(kind, rule, *, price, days, seed, learned=False, stored=False):
    """Age a table of *kind* under a rule with this price of a written row.

    Args:
        kind: Kind of rows and of queries.
        rule: One of :data:`RULES`.
        price: Price of a row that is written once more.
        days: Number of appends.
        seed: Seed of the rows and the queries.
        learned: Whether the layout is learned from the queries of the first day.
        stored: Whether merges are judged by these, too, and not by those of their day.

    Returns:
        What filters read by file, by row group and as a cost, and files, x a fresh fit, on
        average; rows written a row appended.
    """
    random, table = np.random.default_rng(seed), Uneven(A_FILE)
    rows, merges.PRICE = arrive(kind, random, FILES * A_FILE, -1, days), price
    first = ask(kind, rows, np.random.default_rng(seed + 100), -1, LEARNED)
    table.learned = filters_of(*first) if learned else ()
    table.files, found = table.anew(rows), []
    for day in range(days):
        table.append(arrive(kind, random, int(A_DAY * A_FILE), day, days), files=1)
        if rule == "product":
            table.maintain()
        else:
            seeded = np.random.default_rng(1_000 * seed + day)
            today = ask(kind, table.rows, seeded, day, ASKED)
            known = filters(table.rows, ASKED, day) if rule == "even" else today
            asked = first if stored else known
            table.merge(asked, parts=rule == "borders")
        if day % LOOK == LOOK - 1:
            seeded, fresh = np.random.default_rng(7_777 * seed + day), table.anew(table.rows)
            asked = ask(kind, table.rows, seeded, day, 300)
            now, new = (cost(files, asked, A_FILE) for files in (table.files, fresh))
            found.append([*now / new, len(table.files) / len(fresh)])
    return [*np.mean(found, axis=0), table.written / table.appended]


def main():
    """Print what queries read of tables that age, by rule and price."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--rules", nargs="+", default=RULES, choices=RULES)
    parser.add_argument("--prices", nargs="+", type=float, default=[0.06, 0.12, 0.2, 0.3])
    parser.add_argument("--seeds", nargs="+", type=int, default=[4, 5, 6])
    parser.add_argument("--days", type=int, default=48, help="number of appends")
    parser.add_argument("--learned", action="store_true", help="learn layouts from the first log")
    parser.add_argument("--stored", action="store_true", help="judge merges by that log, too")
    asked = parser.parse_args()
    print("kind rule price | mean x fresh: by file, by row group, cost, files | rows written a row")
    for kind, rule, price in product(asked.kinds, asked.rules, asked.prices):
        sizes = {
            "price": price,
            "days": asked.days,
            "learned": asked.learned,
            "stored": asked.stored,
        }
        every = [aged(kind, rule, seed=seed, **sizes) for seed in asked.seeds]
        *beside, written = np.mean(every, axis=0)
        print(
            kind, rule, price, "|", *(f"{x:.2f}" for x in beside), "|", f"{written:.2f}", flush=True
        )


if __name__ == "__main__":
    main()
