"""Columns that tell the rows of a table apart."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zadapter.table.identifying_columns import find_identifying_columns

ROWS = 20_000


def columns_of(tmp_path, **columns):
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "a.parquet")
    footer = pq.read_metadata(tmp_path / "a.parquet")
    return table, find_identifying_columns(footer, table.schema, {}, ROWS)


def test_a_few_narrow_columns_with_many_values_are_chosen(tmp_path):
    """Flags and long texts are left out where numbers tell the rows apart."""
    draw = np.random.default_rng(1)
    table, found = columns_of(
        tmp_path,
        flag=draw.integers(0, 2, ROWS),
        name=[f"{n:064x}" for n in draw.integers(0, 1 << 62, ROWS)],
        amount=draw.random(ROWS),
        part=draw.integers(0, 1 << 40, ROWS),
        day=draw.integers(0, 300, ROWS).astype("datetime64[D]"),
    )

    assert set(found) <= {"amount", "part"}
    chosen = table.select(list(found)).to_pylist()
    assert len({tuple(row.values()) for row in chosen}) == ROWS


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1] * ROWS, "b": [0.5] * ROWS, "c": ["x"] * ROWS},
        {"a": range(ROWS)},
        {"s": [{"x": n} for n in range(ROWS)], "b": [1] * ROWS},
    ],
)
def test_no_columns_are_chosen_if_few_cannot_do(tmp_path, columns):
    """Rows with few values, a single column, and nested columns are compared as a whole."""
    _, found = columns_of(tmp_path, **columns)

    assert found == ()
