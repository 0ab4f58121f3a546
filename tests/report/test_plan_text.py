"""What is said of a rewrite that does not help, or seems not to, and lists of many things."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.kit.builders import file_table
from tests.report.test_optimize_report import PLAN, REPORT
from zadapter.base.printable import abridge
from zadapter.errors import UnknownColumnError, UnsupportedError
from zadapter.planning.merges import Reason
from zadapter.planning.relearning import Relearning
from zadapter.report.migration_report import Migration, Mode
from zadapter.table.file_stats import find_constant
from zadapter.table.spec import Note, Status, check

WHOLE = replace(PLAN, files_rewritten=950)
GOOD = "by file, filters read more, since the rows are in 1 file; readers skip row groups within"
CASES = {
    "by file worse, by row group better": ((0.5, 1.0), (1.0, 0.1), (8, 1), GOOD),
    "nothing gained": ((0.3, 0.3), (0.1, 0.1), (8, 8), "new cuts do not make these files better"),
    "next to nothing gained": (
        (0.37, 0.37),
        (0.081, 0.079),
        (3, 3),
        "about as much as before: new",
    ),
    "nothing gained, joined": ((1.0, 1.0), None, (90, 1), "as much as before, from fewer files"),
    "row groups worse": ((0.9, 0.3), (0.1, 0.3), (8, 8), "but read more row groups of the others"),
    "both worse": ((0.1, 0.3), (0.1, 0.3), (8, 8), "more than before, by file and not less by row"),
    "by file worse, row groups unknown": ((0.1, 0.3), None, (8, 3), "row groups are not judged"),
    "better": ((0.9, 0.3), (0.9, 0.1), (8, 8), None),
    "better by file": ((0.9, 0.3), None, (8, 8), None),
    "better by row group": ((0.9, 0.9), (0.9, 0.1), (8, 8), None),
}


def plan(by_file, by_row_group, files, **more):
    """Return a plan with these shares and numbers of files."""
    before, after = by_row_group or (None, None)
    return replace(
        PLAN,
        share_before=by_file[0],
        share_after=by_file[1],
        row_group_share_before=before,
        row_group_share_after=after,
        files_before=files[0],
        files_rewritten=files[0],
        files_written=files[1],
        reasons={Reason.ANEW.value: files[0]},
        **more,
    )


@pytest.mark.parametrize("case", CASES)
def test_an_effect_that_may_surprise_is_a_sentence_everywhere(case):
    """In a plan, a report, a notebook, and in the line of a report of several tables."""
    by_file, by_row_group, files, says = CASES[case]
    planned = plan(by_file, by_row_group, files)
    report = replace(REPORT, plan=planned, share_after=by_file[1])

    for found in (planned, report):
        note = found.facts().get("note", "")
        assert (says or "") in note
        assert bool(note) == bool(says)
        assert note in str(found)
        assert note in found._repr_html_()
        assert note in found.summary().read


def test_a_merge_of_new_files_into_a_large_table_is_no_surprise():
    """What it saves is little beside the whole table; new cuts were not asked for."""
    found = plan((0.01, 0.0099), None, (8, 6))

    assert "note" in found.facts()
    assert "note" not in replace(found, reasons={"new files": 8}).facts()


def test_a_table_without_rows_says_so():
    """Its files may be rewritten by force."""
    empty = file_table(["a"], rows=0, stats={})

    assert replace(WHOLE, files=empty).facts()["note"] == "the table has no rows"


def test_one_thing_is_counted_in_the_singular():
    """What is left, of a table to which one row or one file was added."""
    one = replace(PLAN, files_young=1, files_owned=1, groups_left=1, filters=1)
    facts = one.facts()

    assert facts["too young"].startswith("1 file, ")
    assert facts["left alone"].startswith("1 file, ")
    assert facts["left for later"].startswith("1 file group of ")
    assert "learned from 1 filter," in facts["layout"]
    assert replace(PLAN, groups=0, rows_waiting=1).facts()["nothing to do"].endswith("1 new row")


def test_a_report_judges_by_what_was_written():
    """The plan's prediction by file may have been wrong."""
    planned = plan((0.5, 0.1), (0.5, 0.1), (8, 8))

    assert "note" not in planned.facts()
    assert "note" in replace(REPORT, plan=planned, share_after=0.6).facts()


@pytest.mark.parametrize("groups", [0, 3])
def test_keys_without_different_values_are_named(groups):
    """Whether files are rewritten by force or kept."""
    one = replace(PLAN, groups=groups, alike=("ts",))
    both = replace(one, alike=("ts", "user.id"))

    assert one.facts()["note"].endswith("value of ts, or null; leave it out of the key columns")
    assert both.facts()["note"] == (
        "all rows have the same value of ts, user.id, or null, so filters on it skip no file; "
        "choose other key columns"
    )
    assert both.facts()["note"] in " ".join(both.summary())
    assert "note" not in replace(both, columns=()).facts()


INTS, FLOATS = pa.int64(), pa.float64()


@pytest.mark.parametrize(
    ("low", "high", "nulls", "nans", "rows", "is_alike"),
    [
        ([7, 7], [7, 7], [0, 0], None, 10, True),
        ([7, 7], [7, 8], [0, 0], None, 10, False),
        ([7, 8], [7, 8], [0, 0], None, 10, False),
        ([7, 7], [7, 7], [0, 1], None, 10, False),
        ([7, 7], [7, 7], [0, None], None, 10, False),
        ([7, None], [7, 7], [0, 0], None, 10, False),
        ([None, None], [None, None], [10, 10], None, 10, True),
        ([None, 7], [None, 7], [10, 0], None, 10, False),
        ([None, None], [None, None], [0, 0], None, 0, False),
        ([7.0, 7.0], [7.0, 7.0], [0, 0], [0, 0], 10, True),
        ([7.0, 7.0], [7.0, 7.0], [0, 0], [0, 1], 10, False),
        ([7.0, 7.0], [7.0, 7.0], [0, 0], [0, None], 10, False),
        ([-0.0, -0.0], [0.0, 0.0], [0, 0], [0, 0], 10, False),
    ],
)
def test_columns_are_alike_only_if_the_stats_say_so_for_certain(
    low, high, nulls, nans, rows, is_alike
):
    """One value, or only nulls; what is unknown may differ."""
    type_ = FLOATS if any(isinstance(each, float) for each in low) else INTS
    stats = (pa.array(low, type_), pa.array(high, type_), pa.array(nulls, pa.int64()))
    more = () if nans is None else (pa.array(nans, pa.int64()),)
    files = file_table(["a", "b"], rows=rows, stats={"k": (*stats, *more)})

    assert find_constant(files, [("k",), ("no stats",)]) == ((("k",),) if is_alike else ())


def test_a_table_without_files_has_no_alike_columns():
    """Nor has one whose rows are not counted."""
    files = file_table(["a"], rows=1, stats={"k": (pa.array([1]), pa.array([1]), pa.array([0]))})

    assert find_constant(files, [("k",)]) == (("k",),)
    assert find_constant(files.slice(0, 0), [("k",)]) == ()


MANY = [f"column_{number}" for number in range(300)]
NOTES = tuple(Note(name, Status.LOST, "no such type") for name in MANY)


@pytest.mark.parametrize(
    "text",
    [
        abridge(MANY),
        str(UnknownColumnError("zzz", MANY)),
        str(replace(REPORT, stale=tuple(MANY))),
        str(replace(REPORT, versions=tuple(range(300)))),
        str(replace(REPORT, earlier_runs=tuple(MANY))),
        str(replace(PLAN, alike=tuple(MANY), columns=tuple(MANY))),
        " ".join(replace(REPORT, stale=tuple(MANY)).summary()),
        str(
            Migration(
                table="t", format="delta", source_version=1, target="u", to="iceberg",
                mode=Mode.COPY, why="", items=NOTES, layout="", file_count=1, size=1,
                notes=tuple(MANY), seconds={},
            )
        ),
    ],
)  # fmt: skip
def test_no_line_lists_hundreds_of_things(text):
    """The first ones, and how many there are besides."""
    assert "290 more" in text
    assert max(map(len, text.splitlines())) < 700


def test_a_refusal_of_many_columns_is_a_line():
    """Those that a dry run lists one by one."""

    class Definition:
        refused = NOTES

    with pytest.raises(UnsupportedError, match=r"column_9: no such type and 290 more$"):
        check(Definition, "t", "iceberg")


def test_what_a_query_log_has_done_is_said_with_work_and_without():
    """So whoever wonders why keys stay as they are finds the reason beside them."""
    kept = Relearning(regret=1.0, bytes=1 << 30)
    working = replace(plan((0.9, 0.3), None, (8, 3)), relearning=kept)
    idle = replace(working, groups=0)

    for found in (working, idle, replace(REPORT, plan=idle)):
        assert found.facts()["queries"] == str(kept)
        assert "1 GB more than another one" in str(found)
    assert "queries" not in plan((0.9, 0.3), None, (8, 3)).facts()
    none = replace(idle, relearning=None, unchosen="no layout suits the log")
    assert none.facts()["queries"] == "no layout suits the log"
    assert working.to_dict()["relearning"] == {"regret": 1.0, "bytes": 1 << 30}
