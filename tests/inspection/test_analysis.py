"""An analysis says what the bounds of files say, and what it could not tell."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import MIB, file_table, request, snapshot
from zadapter.inspection.analyzer import Subject, analysis
from zadapter.inspection.reads import query
from zadapter.planning.maintenance import Limits
from zadapter.predicates.predicate import And, Comparison, IsNull, Not, Unknown
from zadapter.predicates.pruning import matching
from zadapter.report.pictures.figures import BOXES

GIB = 1 << 30
CAST, UPPER = Unknown("cast(c0 AS INT) = 1", "a cast"), Unknown("upper(c1) = 'A'")


def table(lows, highs, *, other=None, **options):
    """Return files with bounds of c0 and c1, whose ranges are the same unless *other* is given."""
    nulls = pa.array([0] * len(lows), pa.int64())
    ranges = {"c0": (lows, highs), "c1": other or (lows, highs)}
    stats = {
        name: (pa.array(low, pa.int64()), pa.array(high, pa.int64()), nulls)
        for name, (low, high) in ranges.items()
    }
    names = [f"{number:04}" for number in range(len(lows))]
    return file_table(names, stats=stats, **options)


def analyzed(files, *, by=2, queries=(), note="", partition=(), rewrite=None):
    """Analyze files by the first columns."""
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.int64())])
    subject = Subject(
        snapshot=snapshot(schema, partition),
        files=files,
        columns=(("c0",), ("c1",)),
        request=request(by) if by else None,
        table_files=files.num_rows,
        limits=Limits(job_bytes=256 * GIB),
        target_file_size=MIB,
        left_out={},
        note=note,
    )
    return analysis(
        subject,
        where=None,
        queries=queries,
        row_groups=None,
        rewrite=rewrite or subject.find_pending(),
    )


def test_a_table_in_order_of_arrival_is_due():
    """All files overlap in both columns, so filters scan everything; a rewrite saves most."""
    found = analyzed(table([0] * 64, [1_000] * 64))

    assert found.due
    assert found.share == 1
    assert found.depth.average == found.depth.largest == 64
    assert found.rewrite.files == 64
    assert found.rewrite.gain > 0.5
    assert "reduce the data scanned by range filters from 100.0% of the rows to" in found.verdict
    assert found.runs[0].totals.files == 64


def test_a_grid_is_not_due():
    """Files of the requested layout that do not overlap are left alone."""
    x, y = (at.ravel().tolist() for at in np.meshgrid(np.arange(8) * 10, np.arange(8) * 10))
    ends = [[at + 9 for at in side] for side in (x, y)]
    layouts = [request(2).id + "0" * 8] * 64
    found = analyzed(table(x, ends[0], other=(y, ends[1]), layouts=layouts))

    assert not found.due
    assert found.depth.largest == 1
    assert found.share < 0.3
    assert [column.depth.largest for column in found.columns] == [8, 8]
    assert found.runs[1].columns == ("c0", "c1")
    assert "no rewrite is due" in found.verdict


def test_a_plan_without_a_rewrite_has_the_share_of_the_table():
    """It has drawn no filters, and says 0 %."""
    files = table([0] * 64, [1_000] * 64)
    nothing = replace(analyzed(files).rewrite, due=False, planned=True, share_before=0.0)

    found = analyzed(files, rewrite=nothing)

    assert found.verdict == "no rewrite is due: range filters scan 100.0% of the rows"
    assert found.rewrite.share_before == found.rewrite.share_after == found.share == 1


def test_files_in_order_of_one_column_gain_by_the_other():
    """Sorted by c0 alone, a filter on c1 reads everything."""
    lows = list(range(0, 6_400, 100))
    found = analyzed(table(lows, [low + 99 for low in lows], other=([0] * 64, [1_000] * 64)))

    by_name = {column.column: column for column in found.columns}
    assert by_name["c0"].share < 0.2
    assert by_name["c1"].share == 1


@pytest.mark.parametrize(
    ("low", "high", "reason"),
    [
        (None, None, "the log has no bounds"),
        (7, None, "only one of the bounds is known"),
        (7, 3, "the bounds contradict each other"),
    ],
)
def test_files_without_bounds_are_counted_with_the_reason(low, high, reason):
    """They may hold any value: the share to read includes them."""
    found = analyzed(table([0, low], [0, high]))

    assert found.columns[0].unbounded == {reason: 1}
    assert found.columns[0].constant == 1
    assert found.columns[0].share >= 0.5


def test_partitions_do_not_overlap_and_the_worst_come_first():
    """Depth is counted within a partition; files of mixed partitions are one of their own."""
    days = pa.array([1] * 3 + [2] * 5 + [3])
    files = table([0] * 9, [10] * 9, partition={"day": days})
    found = analyzed(files, partition={"day": pa.int64()})

    assert found.partitions == 3
    assert [(each.partition, each.depth) for each in found.worst] == [
        ("day=2", 5.0), ("day=1", 3.0), ("day=3", 1.0)
    ]  # fmt: skip
    assert found.columns[0].depth.largest == 5


@pytest.mark.parametrize("count", [0, 1])
def test_few_files_are_no_error(count):
    """No files, or one: there is nothing to skip, and the analysis says so."""
    found = analyzed(table([1] * count, [5] * count))

    assert found.totals.files == count
    assert found.verdict == "the table has no files" if not count else not found.due
    assert str(found)
    json.dumps(found.to_dict())


def test_a_condition_that_excludes_all_files_leaves_the_table_its_files():
    """That is no table without files."""
    found = replace(analyzed(table([], [])), table_files=3, where="c0 < 0")

    assert found.verdict == "no file may hold rows that match the condition"


def test_columns_without_any_bounds_are_no_error():
    """A filter on them reads everything; the other column is analyzed all the same."""
    found = analyzed(table([None, None], [None, None], other=([0, 10], [9, 19])))

    assert found.columns[0].depth is None
    assert found.columns[0].share == 1
    assert found.columns[1].depth.largest == 1
    assert found.share < 1


def test_without_key_columns_the_rest_is_told():
    """What cannot be told is named; columns are analyzed all the same."""
    found = analyzed(table([0, 5], [4, 9]), by=0, note="no file is clustered; pass by=")

    assert found.rewrite is None
    assert "pass by=" in found.verdict
    assert found.columns[0].depth.average == 1


def test_a_query_names_the_parts_that_exclude_nothing():
    """A cast and an unknown function exclude no file; IS NOT NULL that Spark adds is left out."""
    files = table([0, 5], [4, 9])
    five = Comparison(("c0",), ">=", pa.scalar(5))
    predicate = And((Not(IsNull(("c0",))), five, CAST, UPPER))
    found = query("…", predicate, files, matching(predicate, files))

    assert found.read.files == 1
    assert found.share == 0.5
    assert len(found.unused) == 2
    assert found.unused == (
        "cast(c0 AS INT) = 1: a cast",
        "upper(c1) = 'A': upper(c1) = 'A', which is evaluated with the rows",
    )


def test_every_form_has_the_same_facts():
    """Text, HTML and JSON; texts of a table are escaped."""
    files, five = table([0], [9]), Comparison(("c0",), "<", pa.scalar(5))
    found = analyzed(table([0] * 4, [9] * 4), queries=[
        query("c0 < 5 AND '<b>' = '<b>'", five, files, matching(five, files))
    ])  # fmt: skip

    assert found.verdict in str(found)
    assert found.verdict in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    document = json.loads(json.dumps(found.to_dict()))
    assert document["totals"]["files"] == 4
    assert "files" not in document
    assert len(found.to_dict(files=True)["files"]) == 4
    assert found.files["depth"].to_pylist() == [{"c0": 4.0, "c1": 4.0}] * 4


@pytest.mark.parametrize(
    ("files", "drawn"),
    [
        (table([0, 5], [4, 9]), True),
        (table([0] * (BOXES + 1), [9] * (BOXES + 1)), False),
        (table([None], [None]), False),
        (table([], []), False),
    ],
    ids=["boxes", "too many for a notebook", "no bounds", "no files"],
)
def test_a_notebook_shows_the_picture_of_a_few_files(files, drawn):
    """As SVG within the page; without matplotlib, or bounds, the facts stand alone."""
    page = analyzed(files)._repr_html_()

    assert page.startswith("<table>")
    assert page.count("<svg") == page.count("</svg>") == int(drawn)


def test_deletes_and_small_files_are_counted():
    """Files with row-level deletes, and those below half of the target."""
    files = table([0] * 4, [9] * 4, sizes=[MIB, MIB // 2, MIB // 2 - 1, 1],
                  deletes=["dv", None, None, None])  # fmt: skip
    found = analyzed(files)

    assert found.small_files == 2
    assert found.deletes == 1


def test_columns_that_are_left_out_are_listed_by_reason():
    """A line names ten of a table with hundreds; JSON has all of them."""
    files = table([0] * 4, [9] * 4)
    why = {f"c{number}": "the log has no stats" for number in range(300)} | {"d": "no bounds"}
    found = replace(analyzed(files), left_out=why)

    assert found.facts()["not analyzed"] == (
        "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 290 more: the log has no stats; d: no bounds"
    )
    assert len(found.to_dict()["left_out"]) == 301


def test_keys_without_different_values_are_named():
    """Files cannot be told apart by them, so no rewrite helps."""
    found = analyzed(table([7] * 4, [7] * 4))

    assert found.alike == ("c0", "c1")
    assert "all rows have the same value of c0, c1, or null" in str(found)
    assert "all rows have the same value of c0, c1, or null" in found._repr_html_()
    assert "hint" not in analyzed(table([7] * 4, [8] * 4)).facts()


def test_a_rewrite_that_helps_by_row_group_alone_does_not_frighten():
    """Small files become one, whose row groups are skipped."""
    found = analyzed(table([0] * 64, [1_000] * 64))
    due = replace(found.rewrite, share_before=0.5, share_after=1.0, gain=0.4)

    assert replace(found, rewrite=due).verdict.endswith(
        "would reduce the data scanned by 40% by row group; by file it would go from 50.0% of the "
        "rows to 100.0%"
    )
