"""What pruning promises for any data, checked against a reading of every single row."""

import math
import random
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from zadapter.predicates.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
    Unknown,
)
from zadapter.predicates.pruning import matching, may
from zadapter.table.file_stats import Bounds, schema

EPOCH = datetime.fromisoformat("1970-01-01")
UTC_EPOCH = EPOCH.replace(tzinfo=timezone.utc)
INTEGERS = [-1, 0, 1, 2, 3, 5, 8]
FLOATS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.5, 1.0, -2.25, float(np.float32(0.1))]
MICROS = [-(10**16), -1, 0, 1, 999, 1000, 1001, 2**53 + 1, 10**17]
POOLS = {
    pa.int8(): [-128, 127, *INTEGERS],
    pa.int16(): [-(2**15), 2**15 - 1, *INTEGERS],
    pa.int32(): [-(2**31), 2**31 - 1, *INTEGERS],
    pa.int64(): [-(2**63), 2**63 - 1, 2**53, 2**53 + 1, *INTEGERS],
    pa.uint64(): [2**64 - 1, 2**63, 2**63 - 1, 2**53 + 1, 0, 1],
    pa.float32(): FLOATS,
    pa.float64(): [*FLOATS, 0.1, 1e300],
    pa.decimal128(38, 0): [
        Decimal(n) for n in (10**38 - 1, 10**38 - 2, 1 - 10**38, 0, 1, 2**53 + 1)
    ],
    pa.decimal128(20, 18): [Decimal(n).scaleb(-18) for n in (0, 1, 2, -1, 10**18, 10**18 + 1)],
    pa.date32(): [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
    pa.timestamp("us"): [EPOCH + timedelta(microseconds=n) for n in MICROS],
    pa.timestamp("us", "UTC"): [UTC_EPOCH + timedelta(microseconds=n) for n in MICROS],
    pa.string(): [
        "",
        "a",
        "ab",
        "abc",
        "b",
        "a\x7f",
        "\ud7ff",
        "\ue000",
        "\uffff",
        "😀",
        "\U0010ffff",
    ],
    pa.binary(): [b"", b"\0", b"a", b"ab", b"\x7f", b"\x80", b"\xff", b"\xff\xff"],
    pa.bool_(): [False, True],
}
OPERATORS = ["=", "<", "<=", ">", ">=", "<=>"]
STATS = ["exact", "widened", "one-sided", "wrong but unknown", "counts only", "nothing", "NaN"]

types = pytest.mark.parametrize("type_", POOLS, ids=str)


def is_nan(value):
    """Tell NaN from all else."""
    return isinstance(value, float) and math.isnan(value)


def order(value):
    """A key that compares as Spark does: NaN above all numbers, strings by their bytes."""
    if isinstance(value, float):
        return (is_nan(value), 0.0 if is_nan(value) else value)
    return value.encode() if isinstance(value, str) else value


def truth(predicate, row):
    """Evaluate *predicate* on one row, by the book: three-valued logic over Spark's order."""
    match predicate:
        case Constant(value):
            return value
        case Unknown(sql):
            return row[sql]
        case Not(part):
            found = truth(part, row)
            return None if found is None else not found
        case And(parts):
            found = [truth(part, row) for part in parts]
            return False if False in found else None if None in found else True
        case Or(parts):
            found = [truth(part, row) for part in parts]
            return True if True in found else None if None in found else False
        case _:
            return leaf_truth(predicate, row[".".join(predicate.column)])


def leaf_truth(predicate, value):
    """Evaluate a predicate on one column's value."""
    match predicate:
        case IsNull():
            return value is None
        case Comparison(_, "<=>", _) if value is None:
            return False
        case _ if value is None:
            return None
        case StartsWith(_, prefix):
            return value.startswith(prefix)
        case In(_, values, has_null):
            found = order(value) in [order(listed.as_py()) for listed in values]
            return found or (None if has_null else False)
        case Comparison(_, op, other):
            left, right = order(value), order(other.as_py())
            less, same = left < right, left == right
            outcomes = {"=": same, "<=>": same, "<": less, "<=": less or same}
            return {**outcomes, ">": not less and not same, ">=": not less}[op]


def stats_of(values, pool, kind, dice):
    """Describe *values* truthfully, by stats of one *kind*."""
    regular = sorted((v for v in values if v is not None and not is_nan(v)), key=order)
    nulls = sum(v is None for v in values)
    exact = {
        "min": regular[0] if regular else None,
        "max": regular[-1] if regular else None,
        "nulls": nulls,
        "nans": len(values) - nulls - len(regular),
        "bounds": Bounds.EXACT,
    }
    if kind == "exact":
        return exact
    if kind == "nothing":
        return None
    if kind == "counts only":
        return {**exact, "min": None, "max": None, "bounds": None}
    if kind == "wrong but unknown":
        return {"min": dice.choice(pool), "max": dice.choice(pool), "bounds": Bounds.UNKNOWN}
    if kind == "NaN" and isinstance(pool[0], float):
        return {**exact, "max": math.nan, "nans": None}
    bounding = [v for v in pool if regular and not is_nan(v)]
    below = [v for v in bounding if order(v) <= order(regular[0])]
    above = [v for v in bounding if order(v) >= order(regular[-1])]
    wide = {"min": dice.choice([*below, None]), "max": dice.choice([*above, None])}
    if kind == "one-sided":
        wide[dice.choice(["min", "max"])] = None
    counts = {name: dice.choice([exact[name], None]) for name in ("nulls", "nans")}
    return {**wide, **counts, "bounds": Bounds.WIDENED}


def some_files(type_, dice, kinds):
    """Cut random rows into files: columns x of *type_*, n, and p, which is the partition's."""
    pool = POOLS[type_]
    files, described = [], []
    for number in range(12):
        few = dice.sample(pool, dice.randint(1, 2))
        held = dice.choice([[None], few, [*few, None], [*few, None], pool])
        part = dice.choice(["", "a", "b", None])
        rows = [
            {"x": dice.choice(held), "n": dice.choice([1, 2, None]), "p": part}
            | {"unknown": dice.choice([True, False, None])}
            for _ in range(dice.choice([0, 1, 2, 3, 5]))
        ]
        kind = dice.choice(kinds)
        stats = {
            "x": stats_of([row["x"] for row in rows], pool, kind, dice),
            "n": stats_of([row["n"] for row in rows], [1, 2], "exact", dice),
            "p": {"min": "zzz", "max": "zzz", "nulls": 0, "bounds": Bounds.EXACT},
        }
        count = None if kind == "nothing" else len(rows)
        described.append(
            {
                "path": str(number),
                "size": 1,
                "rows": count,
                "partition": {"p": part},
                "stats": stats,
            }
        )
        files.append(rows)
    columns = {("x",): type_, ("n",): pa.int32(), ("p",): pa.string()}
    return files, pa.Table.from_pylist(described, schema=schema(columns, {"p": pa.string()}))


def some_leaf(type_, dice):
    """Ask something about one column."""
    column, type_, pool = dice.choice(
        [(("x",), type_, POOLS[type_])] * 4
        + [(("n",), pa.int32(), [0, 1, 2, 3]), (("p",), pa.string(), ["", "a", "c"])]
    )
    values = [pa.scalar(dice.choice(pool), type_) for _ in range(dice.choice([0, 1, 2, 3, 20]))]
    leaves = [
        Comparison(column, dice.choice(OPERATORS), pa.scalar(dice.choice(pool), type_)),
        Comparison(column, dice.choice(OPERATORS), pa.scalar(dice.choice(pool), type_)),
        In(column, tuple(values), has_null=dice.random() < 0.3),
        IsNull(column),
    ]
    if type_ == pa.string():
        leaves += [StartsWith(column, dice.choice(pool)), StartsWith(column, "a")]
    if dice.random() < 0.1:
        leaves = [Constant(dice.choice([True, False, None])), Unknown("unknown")]
    return dice.choice(leaves)


def some_predicate(type_, dice, depth=3):
    """Join questions by AND, OR and NOT."""
    if depth == 0 or dice.random() < 0.4:
        return some_leaf(type_, dice)
    if dice.random() < 0.3:
        return Not(some_predicate(type_, dice, depth - 1))
    parts = [some_predicate(type_, dice, depth - 1) for _ in range(dice.choice([0, 1, 2, 2, 3]))]
    return dice.choice([And, Or])(tuple(parts))


def seen(predicate, files):
    """Return the set of truth values on each file's rows."""
    return [{truth(predicate, row) for row in rows} for rows in files]


def foreseen(predicate, table):
    """Return the set of truth values that pruning holds possible for each file."""
    found = may(predicate, table)
    named = ((True, found.true), (False, found.false), (None, found.null))
    return [{value for value, mask in named if mask[i]} for i in range(table.num_rows)]


@types
@pytest.mark.parametrize("seed", range(4))
def test_every_truth_value_of_every_row_is_foreseen(type_, seed):
    """Stats may be exact, widened, cut, missing or wrong: no row is overlooked (I6)."""
    dice = random.Random(f"{type_} {seed}")
    for _ in range(8):
        files, table = some_files(type_, dice, STATS)
        for _ in range(12):
            predicate = some_predicate(type_, dice)
            pairs = zip(seen(predicate, files), foreseen(predicate, table), strict=True)
            overlooked = [
                (i, was - may_be) for i, (was, may_be) in enumerate(pairs) if was - may_be
            ]
            assert not overlooked, predicate


@types
def test_a_file_without_a_true_row_is_kept_only_for_want_of_stats(type_):
    """On files of one value each, exact stats decide every question exactly."""
    dice = random.Random(str(type_))
    pool = [*POOLS[type_], None]
    rows = [[{"x": value}] * 2 for value in pool]
    described = [
        {"path": "", "size": 1, "rows": 2, "stats": {"x": stats_of([v] * 2, pool, "exact", dice)}}
        for v in pool
    ]
    table = pa.Table.from_pylist(described, schema=schema({("x",): type_}, {}))
    for _ in range(100):
        leaf = some_leaf(type_, dice)
        if isinstance(leaf, Constant | Unknown) or leaf.column != ("x",) or leaf == In(("x",), ()):
            continue
        assert foreseen(leaf, table) == seen(leaf, rows), leaf


@types
@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
def test_comparisons_by_order_are_exact_where_bounds_are(type_, op):
    """The bounds are values of the file: an outcome they allow is one that occurs."""
    dice = random.Random(f"{type_} {op}")
    for _ in range(5):
        files, table = some_files(type_, dice, ["exact"])
        for value in POOLS[type_]:
            predicate = Comparison(("x",), op, pa.scalar(value, type_))
            assert foreseen(predicate, table) == seen(predicate, files), predicate


@types
def test_negation_swaps_true_and_false(type_):
    """NOT has no rules of its own."""
    dice = random.Random(str(type_))
    _, table = some_files(type_, dice, STATS)
    for _ in range(20):
        predicate = some_predicate(type_, dice)
        plain, negated = may(predicate, table), may(Not(predicate), table)

        assert (negated.true == plain.false).all()
        assert (negated.false == plain.true).all()
        assert (negated.null == plain.null).all()
        assert (matching(predicate, table) == plain.true).all()
