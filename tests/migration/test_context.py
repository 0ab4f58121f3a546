"""What a migration is careful of before it writes."""

from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.builders import file_table, snapshot
from zadapter.backend.format import Format
from zadapter.errors import StaleRewriteError, UnsupportedError, UsageError
from zadapter.migration.context import build_load, check_apart, has_same_files
from zadapter.migration.in_place import _check_footers as checked
from zadapter.migration.in_place import _cut as cut
from zadapter.migration.in_place import _files_to_open as files_to_open
from zadapter.migration.in_place import _reasons as reasons
from zadapter.migration.in_place import _with_bounds as with_bounds
from zadapter.spark.compat.spark_api import MOVING
from zadapter.table import file_stats
from zadapter.table.file_stats import Bounds
from zadapter.table.snapshot import Source, Staged
from zadapter.table.spec import Definition, PartitionField

BARE = snapshot(pa.schema([("a", pa.int64())]))
SOURCE = Source(format="iceberg", id="x", version=1, columns="c")
LONG = {"name": "a", "type": "long", "nullable": True, "metadata": {}}
BEFORE = Definition(columns=(LONG,))


def at(location):
    return replace(BARE, table=location, location=location)


def load(**said):
    staged = Staged(paths={}, files=file_table(["new"]))
    return build_load(replace(BARE, source=lambda: SOURCE, **said), [staged], SOURCE)


def footer(rows, type_="int64"):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": pa.array(range(rows), type_)}), sink)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


def rows_of(live, footers):
    files = file_table([f"f{n}" for n in range(len(live))])
    field = files.schema.field("rows")
    files = files.set_column(
        files.schema.get_field_index("rows"), field, pa.array(live, pa.int64())
    )
    transfer = SimpleNamespace(
        files=files, target=SimpleNamespace(format=Format(name="x", field_ids=True))
    )
    found = checked(transfer, BEFORE, range(len(live)), ((0, each) for each in footers))
    return [each.num_rows for _, each in found]


def test_more_rows_go_on_top_of_what_others_have_added():
    """Whatever files these are: none of them go."""
    head = replace(BARE, source=lambda: SOURCE, version=9)
    before = load()

    after, left = before.rebase(head, file_table(["of somebody else"]))

    assert after == replace(before, base=head)
    assert after.id == before.id
    assert left == ()


@pytest.mark.parametrize(
    "said",
    [
        {"source": lambda: replace(SOURCE, version=2)},
        {"source": lambda: None},
        {"source": lambda: SOURCE, "definition": "other columns"},
    ],
)
def test_rows_that_somebody_else_has_carried_are_not_carried_again(said):
    """Nor into a table that is another one by now."""
    with pytest.raises(StaleRewriteError):
        load().rebase(replace(BARE, **said), file_table([]))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/t", "/t"),
        ("/t", "/t/new"),
        ("/t/old", "/t"),
        ("file:/t", "/t/new"),
        ("file:///t/", "file:/t/new"),
        ("s3://b/t", "s3://b/t/new/"),
        ("s3://b/t", "s3a://b/t/new"),
        ("hdfs://nn:8020/t", "hdfs:/t/new"),
        ("/t", "/./t//new"),
        ("/t/../u", "/u/new"),
    ],
)
def test_no_table_lies_within_the_other(old, new):
    """The one's clean-up would take the other's files for its own, and delete them."""
    with pytest.raises(UsageError, match="overlap"):
        check_apart(at(old), at(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/t/old", "/t/new"),
        ("/t", "/t2"),
        ("file:/t", "/t2/t"),
        ("s3://a/t", "s3://b/t/new"),
        ("s3://a/t", "/t"),
    ],
)
def test_tables_may_lie_side_by_side(old, new):
    assert check_apart(at(old), at(new)) is None


def test_rows_are_counted_by_footers_where_the_log_does_not_know():
    """A log that knows tells of deletes: those files cannot be shared."""
    assert rows_of([3, None, 0], map(footer, [3, 5, 0])) == [3, 5, 0]
    with pytest.raises(UnsupportedError, match="f1 has 5 rows, 4 of them live"):
        rows_of([3, 4], map(footer, [3, 5]))


def test_the_first_file_that_is_unfit_is_named():
    with pytest.raises(UnsupportedError, match="f2 cannot be shared: its column a has type INT32"):
        rows_of([1, 2, 3], [footer(1), footer(2), footer(3, "int32")])


def test_a_schema_is_looked_at_once(monkeypatch):
    """Tables have many files and few schemas."""
    seen = []
    monkeypatch.setattr(
        "zadapter.migration.in_place.find_mismatch", lambda *said: seen.append(said)
    )

    rows_of([1, 2, 3], [footer(1), footer(2), footer(3, "int32")])

    assert len(seen) == 2


def transfer(files, *, external_files=True, kept=(), rebase="EXCEPTION", **said):
    """From a table with these files to one that is cut by the fields *kept*."""
    after = Definition(columns=(LONG,), partition=tuple(map(field, kept)), **said)
    return SimpleNamespace(
        files=files,
        target=SimpleNamespace(format=Format(name="x", external_files=external_files)),
        snapshot=BARE,
        definition=after,
        spark=SimpleNamespace(conf=dict.fromkeys(MOVING, rebase)),
    )


def field(name):
    return PartitionField(name, (name,))


CUT = replace(BEFORE, partition=(field("p"),))


def test_files_are_shared_where_nothing_is_lost():
    plain = file_table(["a"], partition={"p": pa.array([None], pa.string())})

    assert list(reasons(transfer(plain, kept=["p"]), CUT)) == []
    assert list(reasons(transfer(plain), replace(CUT, whole=True))) == []


@pytest.mark.parametrize(
    ("said", "before", "why"),
    [
        ({"external_files": False}, BEFORE, "own folder"),
        ({"files": file_table(["a"], deletes=["1"])}, BEFORE, "deleted rows would reappear"),
        ({"renamed": "so it is"}, BEFORE, "so it is"),
        ({"rebase": "LEGACY"}, BEFORE, "changes dates or timestamps"),
        ({}, CUT, "p is not in the files"),
    ],
)
def test_files_are_not_shared_where_rows_could_be_lost(said, before, why):
    (reason,) = reasons(transfer(**{"files": file_table(["a"]), **said}), before)

    assert why in reason


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pa.array(["a", ""]), False),
        (pa.array(["NaN", None]), True),
        (pa.array([0.5, None]), True),
        (pa.array([0.5, float("nan")]), False),
        (pa.array([float("-inf")], pa.float32()), False),
        (pa.array([1, 2]), True),
    ],
)
def test_a_log_has_to_say_the_values_of_partitions(values, said):
    """Delta takes an empty text for null, and JSON has finite numbers only."""
    files = file_table([f"{n}" for n in range(len(values))], partition={"p": values})

    assert bool(list(reasons(transfer(files, kept=["p"]), CUT))) != said


class Old:
    """A table of one file, then two; version 2 has a property more than version 1."""

    def at(self, table, version):
        return version

    def files(self, version):
        return file_table(["a", "b"][: 1 if version == 0 else 2])


@pytest.mark.parametrize(
    ("had", "now", "same"),
    [(2, 2, True), (1, 2, True), (0, 2, False), (None, None, True), (None, 2, False)],
)
def test_a_version_without_other_files_is_no_news(had, now, same):
    """In place, the old table itself gets a property. What was no table has no versions to ask."""
    context = SimpleNamespace(source=Old(), table="t")
    source_table = SimpleNamespace(
        origin=replace(SOURCE, version=now), transfer=SimpleNamespace(files=Old().files(now))
    )

    assert has_same_files(context, source_table, had) == same


def test_all_files_without_a_count_are_opened_and_some_others():
    """The first and the last among them; a proof reads all."""
    live = pa.array([None if n in {3, 777} else n for n in range(1_000)], pa.int64())
    files = file_table([f"{n}" for n in range(1_000)])
    field = files.schema.field("rows")
    files = files.set_column(files.schema.get_field_index("rows"), field, live)

    found = files_to_open(files)

    assert {0, 3, 777, 999} <= {*found}
    assert found == sorted(set(found))
    assert len(found) < 1_000
    assert files_to_open(files.slice(0, 5)) == [0, 1, 2, 3, 4]
    assert files_to_open(files.slice(0, 0)) == []


def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(UsageError, match="overlap"):
        check_apart(at(f"file:{tmp_path}/link"), at(f"{tmp_path}/real/new"))


def test_columns_with_ids_are_not_read_by_others_ids():
    """Iceberg looks for its own ids, and those of another table are others."""
    schema = pa.schema([pa.field("a", pa.int64(), metadata={b"PARQUET:field_id": b"7"})])
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    numbered = pq.read_metadata(pa.BufferReader(sink.getvalue()))

    with pytest.raises(UnsupportedError, match="columns have field ids"):
        rows_of([0], [numbered])


def moments(bounds, type_=None):
    """One file with bounds of a column t."""
    type_ = type_ or pa.timestamp("us", "UTC")
    value = pa.array([1_000], pa.int64()).cast(type_)
    none, flags = pa.array([None], pa.int64()), pa.array([int(bounds)], pa.int8())
    child = pa.StructArray.from_arrays(
        [value, value, none, none, flags], fields=list(file_stats.column_type(type_))
    )
    field = file_stats.schema({("t",): type_}, {}).field("stats")
    return file_stats.replace_column(
        file_table(["f"]), field, file_stats.structs([child], field.type, 1)
    )


def test_bounds_of_moments_that_a_log_has_cut_are_those_of_footers():
    whole, cut_ = moments(Bounds.EXACT), moments(Bounds.WIDENED)

    assert cut(whole) == []
    assert cut(moments(Bounds.WIDENED, pa.int64())) == []
    assert cut(cut_) == ["t"]
    assert with_bounds(cut_, whole, ["t"]).equals(whole)
    assert with_bounds(cut_, whole, []) is cut_
