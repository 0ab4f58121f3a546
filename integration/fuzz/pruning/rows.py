"""Seeded tables of extreme values."""

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tests.kit import extremes
from zadapter.base.ranks import rank

FILES = 6
"""Number of files per writer."""
_SPECIAL = 12
"""Values at either end of a column's list, which are the most error-prone."""
_NESTED = ("double", "text", "day", "decimal_38_10", "timestamp")
"""Columns that are also fields of a struct."""
_LONG = ["x" * 255, "x" * 256, "x" * 257, "é" * 300, "x" * 256 + "\U0010ffff", "x" * 3_000, "z"]


def table(seed, count):
    """Return a table of *count* rows; every column has its own distribution.

    Half of the columns ascend with the row number, so files have distinct ranges.
    """
    dice = random.Random(seed)
    columns = {name: _column(dice, values, count) for name, values in extremes.columns()}
    columns["long"] = _column(dice, pa.array(_LONG), count)
    fields = [columns[name] for name in _NESTED]
    inner = pa.StructArray.from_arrays(fields[:2], list(_NESTED[:2]))
    outer = pa.StructArray.from_arrays([*fields[2:], inner], [*_NESTED[2:], "odd.name"])
    mask = pa.array([dice.random() < 0.05 for _ in range(count)])
    fields = [outer.field(n) for n in range(outer.type.num_fields)]
    nested = pa.StructArray.from_arrays(fields, fields=list(outer.type), mask=mask)
    return pa.table({"row": pa.array(range(count)), **columns, "nested": nested})


def parts(rows):
    """Split the rows into one table per file."""
    size = -(-rows.num_rows // FILES)
    ends = [*range(0, rows.num_rows, size), rows.num_rows]
    # copies: deltalake's writer crashes the process on slices of structs
    return [rows.take(pa.array(range(*each))) for each in pairwise(ends)]


def _column(dice, values, count):
    at = [*range(min(_SPECIAL, len(values))), *range(max(0, len(values) - _SPECIAL), len(values))]
    at += [dice.randrange(len(values)) for _ in range(dice.choice([0, 30]))]
    if pa.types.is_floating(values.type):
        at += 3 * np.flatnonzero(np.isnan(values)).tolist()[:_SPECIAL]
    few = dice.sample(at, dice.choice([1, 2, len(at)]) if len(at) > 2 else len(at))
    drawn = [dice.choice(few) for _ in range(count)]
    if dice.random() < 0.5:
        order = rank(values).ranks
        drawn.sort(key=lambda at: order[at])
    nulls = dice.choice([0, 0.02, 0.5])
    return values.take(pa.array([None if dice.random() < nulls else n for n in drawn], pa.int64()))
