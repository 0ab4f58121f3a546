"""No condition leaves out what it is true for, whatever Spark makes of it."""

import math
from datetime import date

import pyarrow as pa

from zadapter.arguments.where import condition
from zadapter.filters.pruning import matching
from zadapter.table.file_stats import Bounds, schema
from zadapter.table.spark_schema import arrow_schema


def test_a_row_that_matches_is_never_left_out(spark):
    """Each row is a file with exact stats: what Spark finds by a scan, its bounds keep."""
    values = [-3, -1, 0, 1, 2, 7]
    rows = spark.createDataFrame(
        [
            (i, None if i == 2 else float(i) if i < 7 else math.nan, f"a{i}", date(2024, 1, 8 + i))
            for i in values
        ],
        "i int, d double, s string, day date",
    )
    atoms = [
        *(f"i {op} {v}" for op in ("=", "<", ">=", "<=>") for v in (-1, 1.5, "'2'", "NULL")),
        *(f"d {op} {v}" for op in ("=", "<=", ">") for v in (1, "double('NaN')", "-0.0D")),
        *("s LIKE 'a-%'", "s > 'a1'", "s IN ('a0', 'a7', NULL)", "d IS NULL", "isnan(d)"),
        *("day > '2024-01-08'", "day = timestamp'2024-01-09'", "i IN (0, 7, NULL)", "i % 2 = 1"),
    ]
    pairs = list(zip(atoms, atoms[5:], strict=False))
    texts = [
        *atoms,
        *(f"NOT ({a})" for a in atoms),
        *(f"({a}) {op} NOT ({b})" for op in ("AND", "OR") for a, b in pairs),
    ]
    _compare(rows, texts)


def _compare(rows, texts):
    columns = arrow_schema(rows.schema.jsonValue())
    listed = rows.toArrow().to_pylist()
    stats = {(field.name,): [_stats(row[field.name]) for row in listed] for field in columns}
    files = pa.Table.from_pylist(
        [
            {"path": str(n), "size": 1, "rows": 1, "partition": {},
             "stats": {name: values[n] for (name,), values in stats.items()}}
            for n in range(len(listed))
        ],
        schema=schema({(field.name,): field.type for field in columns}, {}),
    )  # fmt: skip
    found = rows.selectExpr(*(f"coalesce({text}, false) AS c{n}" for n, text in enumerate(texts)))
    excluded = 0
    for text, matches in zip(texts, found.toArrow().columns, strict=True):
        kept = matching(condition(text, rows, columns, later=False).predicate, files)
        wrong = [n for n, match in enumerate(matches.to_pylist()) if match and not kept[n]]
        assert wrong == [], text
        excluded += int((~kept).sum())
    assert excluded > len(texts)


def _stats(value):
    is_nan = isinstance(value, float) and math.isnan(value)
    bound = None if value is None or is_nan else value
    return {
        "min": bound, "max": bound, "nulls": int(value is None), "nans": int(is_nan),
        "bounds": Bounds.EXACT,
    }  # fmt: skip
