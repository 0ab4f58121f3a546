"""What filters read of a table as it is, by row group."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import MIB, file_table, request, snapshot
from zadapter.inspection.advise.judging import FileCounts, SampledRowGroups, SampledTable
from zadapter.layout.filters import Filter, Keys, Range
from zadapter.layout.layout import Layout
from zadapter.layout.store import LAST
from zadapter.planning.maintenance import maintenance
from zadapter.planning.merges import Renewal
from zadapter.planning.options import Options
from zadapter.planning.request import request_of
from zadapter.table.file_stats import spread

ROWS, FILES, GROUPS = 12_000, 12, 10
A = ("a",)
VALUES = np.random.default_rng(5).integers(0, 1_000, ROWS)
FILTERS = [Filter(((Range(A, str(low), str(low + 20)),),), 1.0) for low in range(0, 980, 35)]


def parts(part_of, count):
    """A file table of rows in parts."""
    held = [VALUES[part_of == at] for at in range(count)]
    stats = {
        "a": (
            pa.array([int(values.min()) for values in held], pa.int64()),
            pa.array([int(values.max()) for values in held], pa.int64()),
            pa.array([0] * count, pa.int64()),
        )
    }
    rows = [len(values) for values in held]
    return file_table([str(at) for at in range(count)], rows=rows, stats=stats)


@pytest.fixture
def in_groups():
    """Number of each row's group: files of rows in no order, each sorted by itself."""
    file_of = np.arange(ROWS) % FILES
    place = np.empty(ROWS, np.int64)
    place[np.lexsort((VALUES, file_of))] = np.arange(ROWS)
    return place * FILES * GROUPS // ROWS


@pytest.fixture
def table(in_groups):
    """The table without its row groups."""
    return SampledTable(
        columns=(A,),
        values=(pa.array(VALUES),),
        files=parts(in_groups // GROUPS, FILES),
        roots=((),),
        root_of=np.zeros(ROWS, np.int64),
        budget=np.array([FILES]),
        target_file_size=1 << 20,
        partition=frozenset(),
    )


def read(in_groups):
    """The mean share of the rows in the groups that the filters meet, row by row."""
    found = []
    for low in range(0, 980, 35):
        groups = [VALUES[in_groups == at] for at in range(FILES * GROUPS)]
        met = [len(g) for g in groups if g.min() <= low + 20 and g.max() >= low]
        found.append(sum(met) / ROWS)
    return float(np.mean(found))


def test_sorted_files_are_read_by_row_group(table, in_groups):
    """Of files that no filter can skip, only the row groups with the range count."""
    every = SampledRowGroups(table.files, parts(in_groups, FILES * GROUPS))

    share = replace(table, row_groups=every).row_group_share(FILTERS)

    assert share == pytest.approx(read(in_groups))
    assert 0.05 < share < 0.2
    assert table.row_group_share(FILTERS) is None


def test_some_files_stand_for_all(table, in_groups):
    """Footers of a few files are read; what filters skip of them is likely for the others."""
    few = spread(table.files, 3)
    of_few = parts(in_groups, FILES * GROUPS).take(
        pa.array(
            [int(path) * GROUPS + at for path in few["path"].to_pylist() for at in range(GROUPS)]
        )
    )

    share = replace(table, row_groups=SampledRowGroups(few, of_few)).row_group_share(FILTERS)

    assert share == pytest.approx(read(in_groups), rel=0.1)


def test_some_files_say_nothing_of_files_that_are_skipped(table):
    """The share by file is that of all files: here half of them hold other values."""
    far = table.files.set_column(
        table.files.schema.get_field_index("stats"),
        "stats",
        pa.StructArray.from_arrays(
            [shifted(table.files["stats"].combine_chunks().field("a"))], ["a"]
        ),
    )
    other = pa.concat_tables([table.files, far])
    known = replace(table, files=other, row_groups=SampledRowGroups(table.files, table.files))

    assert known.row_group_share(FILTERS) == pytest.approx(0.5)


def shifted(stats):
    """The stats of files that no filter meets."""
    low, high, *others = stats.flatten()
    above = pa.scalar(10_000, pa.int64())
    bounds = [pa.compute.add(low, above), pa.compute.add(high, above)]
    return pa.StructArray.from_arrays([*bounds, *others], fields=list(stats.type))


OLD = Layout.uncut(request(1, target_file_size=MIB // 4, row_groups=16))
PRESENT = replace(
    snapshot(pa.schema([("c0", pa.int64()), ("c1", pa.int64())])),
    layouts={OLD.request.id: OLD, LAST: OLD},
)


@pytest.mark.parametrize("by", ["c0", "c1"], ids=["its keys", "others"])
@pytest.mark.parametrize("stated", [{}, {"target_file_size": "512KB"}], ids=["auto", "stated"])
@pytest.mark.parametrize("size", [MIB // 5, MIB // 3], ids=["as asked", "larger"])
def test_a_layout_is_judged_with_as_many_files_as_a_rewrite_writes(by, stated, size):
    """The table was clustered into small files; by other keys, the default is another one."""
    names = [str(number) for number in range(40)]
    files = file_table(names, sizes=size, layouts=[OLD.request.id + "0" * 16] * 40)
    log = Options(table="t", by="auto", queries=["c0 = 1"], **stated)

    counts = FileCounts.of(files, PRESENT, log, OLD.request)

    rewrite = replace(log, by=[by], queries=None, force=True)
    wanted = request_of(rewrite, PRESENT, files)
    is_sized = rewrite.file_bytes is not None
    renewal = Renewal.of(files, PRESENT.layouts, wanted, every=True, is_sized=is_sized)
    (written,) = maintenance(files, wanted, [], rewrite.limits, renewal=renewal).rewrites
    judged_size = counts.sizes.get(((by,),), counts.size)
    assert judged_size == wanted.target_file_size
    assert counts.of_size(judged_size) == written.cut_into
    assert counts.most() >= written.cut_into


def test_the_files_of_a_layout_are_those_of_its_columns(table):
    """A layout of columns that the table is clustered by has the size that it is clustered with."""
    more = replace(table, budgets={(A,): np.array([3 * FILES])})

    files = [len(each.divide_rows(Keys({"a": 1.0}))[0].boxes.rows) for each in (table, more)]

    assert files == [FILES, 3 * FILES]


def test_the_row_groups_of_a_layout_are_those_that_are_stated(table):
    """Beside by="auto", row_groups= holds for the layout that the log asks for."""
    few = replace(table, row_groups_to_write=2)

    groups = [len(each.divide_rows(Keys({"a": 1.0}))[1].boxes.rows) for each in (table, few)]

    assert groups == [16 * FILES, 2 * FILES]
