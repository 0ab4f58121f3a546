"""Evenness of the files of huge tables, and what filters read of them, by the rows sampled a file.

``python -m tests.kit.evenness`` fits the layouts of jobs as the product does, to as many rows a
file, and places other rows of the same kind. It needs no Spark, a few GB and some minutes.
"""

import argparse
from itertools import product

import numpy as np
import pyarrow as pa

from tests.kit.aging import COLUMNS, KINDS, arrivals, filters
from tests.kit.builders import request
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.trunk import Trunk, fit_below
from zadapter.spark.sample import ROWS_A_FILE, sample_size

WELL = 2_000
"""Rows a file that a layout is well fitted to, and rows a file that are placed."""
KEYS = request(COLUMNS)


def layout_of(kind, random, files, boxes, rows_a_file):
    """Return a layout of one job, of so many files, in a table with so many boxes."""
    sample = columns(kind, random, files * rows_a_file)
    if boxes == 1:
        return fit(KEYS, sample, [()], np.zeros(files * rows_a_file, np.int64), [files])
    trunk = Trunk(boxes).fit(KEYS, columns(kind, random, sample_size(boxes)))
    return fit_below(trunk, KEYS, sample, (), files)


def columns(kind, random, rows):
    return [pa.array(each) for each in arrivals(kind, random, rows, -1, 1).T]


def placed(layout, rows):
    """Return the number of rows in each file, and the share of rows that filters read."""
    keys = [pa.array(each) for each in rows.T]
    leaf = assign.leaves(layout, keys, np.zeros(len(rows), np.int64))
    file_of = assign.files(layout, leaf, np.arange(len(rows)))
    counts = np.bincount(file_of, minlength=layout.files)
    order = np.argsort(file_of, kind="stable")
    edges = (np.cumsum(counts) - counts)[counts > 0]
    lows, highs = (of.reduceat(rows[order], edges) for of in (np.minimum, np.maximum))
    low, high = filters(rows[:: len(rows) // 100_000])
    hits = ((lows <= high) & (highs >= low)).all(axis=2)
    return counts, (hits * counts[counts > 0]).sum() / len(rows) / len(low)


def main():
    """Print how even files are, and the share of rows to read beside a well-sampled fit."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kinds", nargs="+", default=KINDS[:3], choices=KINDS)
    parser.add_argument("--files", type=int, default=2_048, help="files a job writes")
    parser.add_argument("--boxes", type=int, nargs="+", default=[1, 8, 128])
    parser.add_argument("--sampled", type=int, nargs="+", default=[ROWS_A_FILE])
    parser.add_argument("--seed", type=int, default=5)
    asked = parser.parse_args()
    print("kind boxes sampled | files p99/mean largest/mean | share to read x well-sampled")
    for kind, boxes in product(asked.kinds, asked.boxes):
        random = np.random.default_rng(asked.seed)
        rows = arrivals(kind, random, asked.files * WELL, -1, 1)
        _, well = placed(layout_of(kind, random, asked.files, boxes, WELL), rows)
        for sampled in asked.sampled:
            counts, share = placed(layout_of(kind, random, asked.files, boxes, sampled), rows)
            mean = counts.mean()
            figures = (
                f"{len(counts)} {np.percentile(counts, 99) / mean:.2f} {counts.max() / mean:.2f}"
            )
            print(kind, boxes, sampled, "|", figures, "|", f"{share / well:.3f}", flush=True)


if __name__ == "__main__":
    main()
