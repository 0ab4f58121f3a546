"""No condition leaves out what it is true for, whatever Spark makes of it."""

import math
from datetime import date

from tests.kit.file_tables import bounds, table_of
from zadapter.predicates.pruning import matching
from zadapter.spark.where import condition
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
    stats = [{name: _exact(value) for name, value in row.items()} for row in listed]
    files = table_of(*stats, rows=1, **{field.name: field.type for field in columns})
    found = rows.selectExpr(*(f"coalesce({text}, false) AS c{n}" for n, text in enumerate(texts)))
    excluded = 0
    for text, matches in zip(texts, found.toArrow().columns, strict=True):
        kept = matching(condition(text, rows, columns, later=False).predicate, files)
        wrong = [n for n, match in enumerate(matches.to_pylist()) if match and not kept[n]]
        assert wrong == [], text
        excluded += int((~kept).sum())
    assert excluded > len(texts)


def _exact(value):
    is_nan = isinstance(value, float) and math.isnan(value)
    bound = None if is_nan else value
    return bounds(bound, bound, nulls=int(value is None), nans=int(is_nan))
