"""Spark sends every row where the specification over Arrow does."""

import re
from dataclasses import replace
from decimal import getcontext

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from tests.kit.variants import slow, slow_but
from zadapter.base.key_types import texts
from zadapter.base.names import split
from zadapter.base.ranks import rank
from zadapter.layout import assign
from zadapter.layout.build import MAX_LEAVES, fit
from zadapter.layout.filters import Filter, Range
from zadapter.layout.layout import Curve, Layout, Request
from zadapter.layout.levels import Level
from zadapter.planning.file_groups import find_roots, roots_of
from zadapter.spark import layout_expression
from zadapter.spark.layout_expression import CUTS_A_LEVEL, MOST_CUTS, add_keys, find_diagram

MIXED = [
    ["big", "text"],
    ["double", "decimal_38_10", "ntz", "flag"],
    ["binary", "day"],
    ["decimal_9_2", "decimal_18_18", "timestamp", "tiny"],
]
UNORDERED = {"row"}


def request(names, *, curve="adaptive", row_groups=2):
    return Request(
        columns=tuple(map(split, names)),
        weights=(1.0,) * len(names),
        curve=Curve(curve),
        target_file_size=1 << 20,
        row_groups=row_groups,
    )


def layout_of(table, names, *, files=6, **options):
    """A layout fitted to every third row, so that most rows are none of the cuts."""
    sample = [table[name].combine_chunks()[::3] for name in names]
    one_root = np.zeros(len(sample[0]), np.int64)
    return fit(request(names, **options), sample, [()], one_root, [files])


def expected(layout, table, names, root_of=None):
    """Place of each row, and where its leaf's files begin and end."""
    columns = [table[name].combine_chunks() for name in names]
    roots = np.zeros(table.num_rows, np.int64) if root_of is None else root_of
    leaf = assign.leaves(layout, columns, roots)
    first, width = layout.first_file[leaf], layout.width[leaf]
    return assign.leaf_positions(layout, leaf), first, first + width


def sent(placed):
    """Where each row goes, in the order of the table."""
    picked = placed.rows.select("row", *placed.added, placed.file.alias("to"))
    return picked.toArrow().sort_by("row")


def assert_same(found, placed, layout, table, names, root_of=None):
    """Compare what Spark computed, ordered like *table*, with the specification."""
    place, first, beyond = expected(layout, table, names, root_of)
    file = np.argsort(assign.name_numbers(layout))[found["to"].to_numpy()]
    wrong = found[placed.position].to_numpy() != place
    assert not wrong.any(), (names, table.select(names).filter(pa.array(wrong))[:3].to_pylist())
    assert ((first <= file) & (file < beyond)).all()


@pytest.mark.parametrize(
    ("curve", "ansi", "zone"),
    [
        ("adaptive", "true", "America/Los_Angeles"),
        ("hilbert", "true", "Asia/Kathmandu"),
        *slow_but(
            of=[
                ("zorder", "false", "Asia/Kathmandu"),
                ("linear", "false", "America/Los_Angeles"),
            ]
        ),
    ],
)
def test_spark_and_arrow_agree(rows, table, conf, curve, ansi, zone):
    """Every type, every special value, every curve, whatever the session's settings."""
    conf({"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": zone})
    every = [[name] for name in table.column_names if name not in UNORDERED] + MIXED
    layouts = [layout_of(table, names, curve=curve) for names in every]
    results = [add_keys(rows, layout, {}) for layout in layouts]

    for names, layout, placed in zip(every, layouts, results, strict=True):
        assert_same(sent(placed), placed, layout, table, names)


def asking(table, names, count=40):
    """Filters on one value of each of the columns in turn, for each as many."""
    found = []
    for name in names:
        column = table[name].combine_chunks().drop_null()
        some = texts(column.take(pa.array(np.arange(count) * 7 % len(column))))
        found += [Filter(((Range(split(name), text, text),),), 1.0) for text in some]
    return tuple(found)


@pytest.mark.parametrize("most_cuts", [MOST_CUTS, 0], ids=["diagram", "levels"])
@pytest.mark.parametrize("names", MIXED, ids=" ".join)
def test_a_layout_that_was_learned_is_the_same(rows, table, names, most_cuts, monkeypatch):
    """Its levels compare other columns in other nodes; no digit of a decimal counts as rounded."""
    monkeypatch.setattr(getcontext(), "prec", 5)
    monkeypatch.setattr(layout_expression, "MOST_CUTS", most_cuts)
    sample = [table[name].combine_chunks()[::3] for name in names]
    asked = replace(request(names), filters=asking(table, names))
    layout = fit(asked, sample, [()], np.zeros(len(sample[0]), np.int64), [8])

    placed = add_keys(rows, layout, {})

    assert bool(find_diagram(layout)[0]) == (most_cuts > 0)
    assert_same(sent(placed), placed, layout, table, names)


def test_partitions_of_a_learned_layout_have_trees_of_their_own(rows, table):
    """Their diagram begins with the root of each row."""
    names, values = ["big", "text"], [table["flag"].combine_chunks()]
    roots, root_of = roots_of(values, table.num_rows)
    sample = [table[name].combine_chunks()[::3] for name in names]
    asked = replace(request(names), filters=asking(table, names))
    layout = fit(asked, sample, roots, root_of[::3], [4] * len(roots))

    placed = add_keys(rows, layout, {"flag": pa.bool_()})

    assert find_diagram(layout)[0]
    assert_same(sent(placed), placed, layout, table, names, root_of)


def test_fields_of_structs_are_keys(rows, table):
    """A nested column goes where the same values at the top go."""
    nested = fit(
        request(["a.b.`odd.name`"]),
        [table["big"].combine_chunks()],
        [()],
        np.zeros(table.num_rows, np.int64),
        [5],
    )

    placed = add_keys(rows, nested, {})

    found = (
        placed.rows.select("row", *placed.added, placed.file.alias("to")).toArrow().sort_by("row")
    )
    assert_same(found, placed, nested, table, ["big"])


@pytest.mark.parametrize("partition", [[], ["half${spark.master}"]])
def test_names_that_look_like_variables_are_names(rows, table, partition):
    """Spark replaces them in SQL text, here by the name of another column."""
    names = ["big${spark.master}"]
    odd = {names[0]: F.col("big"), "biglocal[2]": F.col("tiny")}
    odd |= {"half${spark.master}": F.col("flag"), "halflocal[2]": F.lit(None).cast("boolean")}
    values = [table["flag"].combine_chunks() for _ in partition]
    roots, root_of = roots_of(values, table.num_rows)
    sample = [table["big"].combine_chunks()]
    layout = fit(request(["big"]), sample, roots, root_of, [6] * len(roots))
    asked = replace(layout, request=replace(layout.request, columns=((names[0],),)))

    placed = add_keys(rows.withColumns(odd), asked, dict.fromkeys(partition, pa.bool_()))

    assert_same(sent(placed), placed, layout, table, ["big"], root_of)
    assert not [name for name in placed.rows.columns if name.startswith("key-")]


MORE = (["text"], ["timestamp"], ["decimal_38_10", "tiny"])


@pytest.mark.parametrize(
    "partition",
    [["flag"], ["day", "flag"], ["double"], *slow(*MORE)],
)
def test_each_partition_has_its_own_root(rows, table, partition):
    """Partition values of every sort, nulls among them, lead to disjoint files."""
    values = [table[name].combine_chunks() for name in partition]
    roots, root_of = roots_of(values, table.num_rows)
    types = {name: table.schema.field(name).type for name in partition}
    sample = [table["big"].combine_chunks()]
    layout = fit(request(["big"]), sample, roots, root_of, [2] * len(roots))

    placed = add_keys(rows, layout, types)

    found = (
        placed.rows.select("row", *placed.added, placed.file.alias("to")).toArrow().sort_by("row")
    )
    assert (find_roots(roots, values, table.num_rows) == root_of).all()
    assert_same(found, placed, layout, table, ["big"], root_of)


def test_rows_of_a_heavy_value_are_dealt_out_evenly(spark):
    """One value fills several files, and no file is left empty or overfull."""
    ones = pa.array(np.ones(500, np.int64))
    layout = fit(request(["id"]), [ones], [()], np.zeros(500, np.int64), [4])
    rows = spark.range(0, 10_000, 1, 2).select(F.lit(1).cast("long").alias("id"))

    placed = add_keys(rows, layout, {})

    counts = [count for _, count in placed.rows.groupBy(placed.file).count().collect()]
    assert sorted(counts) == [2_500] * 4


def test_generated_methods_stay_small_enough_for_the_jit(rows, capsys):
    """The JIT leaves methods of more than 8 000 bytecodes to the interpreter, ten times slower."""
    random = np.random.default_rng(1)
    sample = [pa.array(random.integers(0, 1 << 40, 500_000)) for _ in range(3)]
    sample[2] = sample[2].cast(pa.timestamp("us"))
    one_root = np.zeros(len(sample[0]), np.int64)
    deepest = fit(request(["big", "id2", "ntz"], row_groups=8), sample, [()], one_root, [16_384])
    assert len(deepest.first_file) == MAX_LEAVES

    add_keys(rows.withColumn("id2", F.col("big") + 1), deepest, {}).rows.explain("codegen")

    sizes = re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)
    assert sizes
    assert max(map(int, sizes)) < 8000


@pytest.mark.parametrize("below", [1, 5, 10])
def test_methods_of_the_largest_diagram_stay_small_too(rows, table, below, capsys):
    """Of columns whose values take most bytecodes to compare, and with levels below."""
    names = ["text", "decimal_38_10", "binary", "double"]
    known = [rank(table[name]).distinct for name in names]
    cuts = [iter(each.take(pa.array(np.arange(32) * len(each) // 32))) for each in known]
    levels, left = [], MOST_CUTS - CUTS_A_LEVEL * below
    while left > 0:
        node = np.arange(1 << len(levels))
        column = np.where(node < left, node % 4, 4)
        left -= int((column < 4).sum())
        level = [
            Level(at, pa.array([next(cuts[at]) if c == at else None for c in column], each.type))
            for at, each in enumerate(known)
            if (column == at).any()
        ]
        levels.append(Level.of(level))
    levels += [Level(0, pa.nulls(len(node) << more, pa.string())) for more in range(1, below + 1)]
    ones = np.ones(1 << len(levels), np.int32)
    layout = Layout(
        request=request(names), roots=((),), levels=tuple(levels), first_file=ones - 1, width=ones
    )
    assert find_diagram(layout)[0] == len(levels) - below

    add_keys(rows, layout, {}).rows.explain("codegen")

    sizes = re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)
    assert sizes
    assert max(map(int, sizes)) < 8000


def test_methods_of_learned_layouts_stay_small_too(rows, capsys):
    """Four columns in each of twelve levels."""
    random = np.random.default_rng(1)
    sample = [pa.array(random.integers(0, 1 << 40, 40_000)) for _ in range(4)]
    names = ["big", "id2", "id3", "id4"]
    drawn = random.integers(0, 40_000, (4, 100))
    filters = [
        Filter(((Range((name,), text, text),),), 1.0)
        for name, column, some in zip(names, sample, drawn, strict=True)
        for text in texts(column.take(pa.array(some)))
    ]
    asked = replace(request(names, row_groups=8), filters=tuple(filters))
    layout = fit(asked, sample, [()], np.zeros(40_000, np.int64), [1_024])
    assert max(len(level.by_column) for level in layout.levels) == 4

    more = {f"id{number}": F.col("big") + number for number in (2, 3, 4)}
    add_keys(rows.withColumns(more), layout, {}).rows.explain("codegen")

    sizes = re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)
    assert sizes
    assert max(map(int, sizes)) < 8000
