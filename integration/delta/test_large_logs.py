"""Logs whose checkpoint is large are read without Delta's state, and tell the same."""

import json
import shutil
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from integration.delta.conftest import Tables
from zadapter.errors import UnsupportedError
from zadapter.table.spark_schema import arrow_schema
from zadapter_delta import DeltaBackend
from zadapter_delta.commits.rewrites import removals
from zadapter_delta.jvm import Jvm
from zadapter_delta.stats import add_files
from zadapter_delta.stats.add_files import Wanted
from zadapter_delta.stats.arrow_adds import flatten
from zadapter_delta.table import live_files
from zadapter_delta.table.checkpoint_log import CheckpointLog
from zadapter_delta.table.checkpoints import Checkpoint, to_structs
from zadapter_delta.table.large_log import LargeLog
from zadapter_delta.table.lookup import current, locate

COLUMNS = [("a",), ("s",)]


@pytest.fixture(scope="module")
def original(spark, tmp_path_factory):
    """A table with a checkpoint, and commits after it that touch files of it in every way."""
    lake = Tables(spark, tmp_path_factory.mktemp("large"))
    rows = spark.range(400).selectExpr("id a", "concat('s', id) s", "concat('p ä/', id % 3) p")
    said = {"enableDeletionVectors": "true", "checkpointInterval": "1"}
    path = lake.make(rows, partition_by=["p"], **said)
    lake.sql(f"DELETE FROM delta.`{path}` WHERE a % 50 = 3")
    lake.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.checkpointInterval=100)")
    lake.sql(f"DELETE FROM delta.`{path}` WHERE a % 50 = 7 AND p LIKE '%1'")  # other vectors
    lake.sql(f"DELETE FROM delta.`{path}` WHERE p LIKE '%2' AND a < 200")
    rows.selectExpr("a + 1000 a", "s", "p").coalesce(1).write.format("delta").mode("append").save(
        path
    )
    return path


@pytest.fixture
def table(lake, original):
    """A copy of it: its log names files, and files of deletion vectors, by relative paths."""
    return str(shutil.copytree(original, lake.folder / "events"))


def written(lake, path, *actions):
    """Add a version, as any program may."""
    number = len(lake.log(path))
    lines = "\n".join(map(json.dumps, actions))
    (Path(path) / "_delta_log" / f"{number:020d}.json").write_text(lines)


def file_table(spark, path):
    """Return the file table."""
    with closing(DeltaBackend(spark)) as backend:
        files = backend.files(backend.snapshot(path), COLUMNS)
        return files.sort_by([("path", "ascending"), ("deletes", "ascending")])


@pytest.fixture(params=["Arrow", "Spark"])
def large(monkeypatch, request):
    """Have every log with a checkpoint be large, read in one way, and the others out of reach."""

    def switch():
        if request.param == "Spark":
            monkeypatch.setattr(live_files, "find_checkpoint", lambda *_: None)
        else:
            monkeypatch.setattr(LargeLog, "__init__", lambda *_: pytest.fail("Spark"))
        monkeypatch.setattr(
            "zadapter_delta.table.live_files.LiveFiles._keep_if_few",
            lambda *_, **__: pytest.fail("its state"),
        )
        monkeypatch.setattr("zadapter_delta.table.large_log.LARGE", -1)
        monkeypatch.setattr("zadapter.spark.jvm.spark_parts.AT_ONCE", 0)

    return switch


@pytest.mark.slow
def test_a_large_log_tells_the_files_that_delta_tells(lake, spark, table, large, request):
    """Also of files that are removed under another spelling, and added again."""
    live = [a["add"] for actions in lake.log(table) for a in actions if "add" in a]
    first = next(add for add in live if "deletionVector" not in add and "%C3" in quote(add["path"]))
    other = first["path"].replace("%C3%A4", "%c3%a4")
    written(lake, table, {"remove": {"path": other, "dataChange": False, "deletionTimestamp": 1}})
    again = {**first, "size": first["size"] + 1}
    written(lake, table, {"add": again})
    if request.node.callspec.params["large"] == "Spark":
        absolute = {**first, "path": f"file:{table}/other.parquet", "size": 7}
        written(lake, table, {"add": absolute})
    told = file_table(spark, table)

    large()
    found = file_table(spark, table)

    assert found.num_rows == told.num_rows > 8
    assert found.equals(told)


@pytest.mark.slow
def test_a_file_of_the_checkpoint_that_is_removed_by_other_escapes_is_gone(lake, spark, large):
    """The digits of escapes may be in upper or lower case, and the file be added again."""
    path = lake.make(spark.range(9).selectExpr("id a", "'s' s"))
    first, *_ = [each["add"] for each in lake.log(path)[0] if "add" in each]
    names = [f"{number}%C3%A4.parquet" for number in range(3)]
    written(lake, path, *({"add": {**first, "path": name}} for name in names))
    jvm = Jvm(spark)
    snapshot = current(jvm, path, locate(jvm, path))
    snapshot.deltaLog().checkpoint(snapshot, jvm.option())
    gone = {"dataChange": False, "deletionTimestamp": 1}
    removes = [{"remove": {**gone, "path": name.replace("%C3", "%c3")}} for name in names[:2]]
    written(lake, path, *removes)
    written(lake, path, {"add": {**first, "path": names[1], "size": 7}})
    told = file_table(spark, path)

    large()

    assert file_table(spark, path).equals(told)
    assert [name in told["path"].to_pylist() for name in names] == [False, True, True]


@pytest.mark.slow
def test_a_rewrite_of_a_large_log_keeps_all_rows(lake, spark, table, large):
    """Deletion vectors are applied, and the removes have them."""
    before = lake.rows(table)
    large()

    lake.optimize(table)

    removes = [action["remove"] for action in lake.log(table)[-1] if "remove" in action]
    assert lake.rows(table) == before
    assert any("deletionVector" in remove for remove in removes)


@pytest.mark.slow
def test_removes_in_bulk_are_those_made_one_by_one(lake, spark, table):
    """All fields: sizes, tags, deletion vectors, partition values, row ids and encoded paths."""
    lake.optimize(table, where="p = 'p ä/0'")
    jvm, changes_data = Jvm(spark), False
    snapshot = current(jvm, table, locate(jvm, table))
    adds = snapshot.allFiles().collectAsList()
    alone = [str(add.removeWithTimestamp(1 << 40, changes_data).json()) for add in adds]

    bulk = [str(remove.json()) for remove in removals(jvm, adds, 1 << 40)]

    assert bulk == alone
    assert {"tags", "deletionVector"} <= {name for r in bulk for name in json.loads(r)["remove"]}


@pytest.mark.parametrize("way", ["Arrow", "Spark"])
def test_a_list_that_contradicts_the_checksum_is_read_from_the_state(
    spark, table, monkeypatch, way
):
    """Delta's writers tell beside each version how many files it has, and how many bytes."""
    told, frame, read = file_table(spark, table), LargeLog.frame, Checkpoint.read
    monkeypatch.setattr("zadapter_delta.table.large_log.LARGE", -1)
    monkeypatch.setattr(LargeLog, "frame", lambda self: frame(self).limit(told.num_rows - 1))
    if way == "Spark":
        monkeypatch.setattr(live_files, "find_checkpoint", lambda *_: None)
    monkeypatch.setattr(Checkpoint, "read", lambda self: (adds[1:] for adds in read(self)))

    assert file_table(spark, table).equals(told)


def repeat(_, adds):
    """Return as many actions, of which one is there twice and another one is not."""
    adds.set(0, adds.get(1))
    return adds


def resize(jvm, adds):
    """Return the actions on the same paths, one of which has other bytes."""
    [first] = jvm.to_python(jvm.list_of([adds.get(0)]))
    adds.set(0, jvm.to_java([{**first, "size": first["size"] + 1}]).get(0))
    return adds


def drop(_, adds):
    """Return the actions without one."""
    adds.remove(adds.get(0))
    return adds


@pytest.mark.parametrize("mistake", [drop, repeat, resize])
@pytest.mark.parametrize("way", ["Arrow", "Spark"])
def test_actions_that_a_reader_of_the_log_has_wrong_are_read_from_the_state(
    spark, table, monkeypatch, way, mistake
):
    """A rewrite of the files goes on: Delta itself has them."""
    jvm = Jvm(spark)
    find, read = CheckpointLog.find_actions, LargeLog.actions

    def wrong(adds):
        return mistake(jvm, jvm.root.java.util.ArrayList(adds))

    monkeypatch.setattr("zadapter_delta.table.large_log.LARGE", -1)
    monkeypatch.setattr(CheckpointLog, "find_actions", lambda *args: wrong(find(*args)))
    monkeypatch.setattr(LargeLog, "actions", lambda *args: wrong(read(*args)))
    if way == "Spark":
        monkeypatch.setattr(live_files, "find_checkpoint", lambda *_: None)
    snapshot = current(jvm, table, locate(jvm, table))
    live = jvm.to_python(snapshot.allFiles().collectAsList())
    files = pa.table({name: [add[name] for add in live] for name in ("path", "size")})

    found = jvm.to_python(live_files.LiveFiles(jvm).find_actions(snapshot, files))

    assert {add["path"]: add["size"] for add in found} == {add["path"]: add["size"] for add in live}
    assert len(found) == len(live) > 8


def test_actions_of_other_files_than_asked_for_are_refused(spark, table):
    """As many files as the version has, but not these; or these, with other bytes."""
    jvm = Jvm(spark)
    snapshot = current(jvm, table, locate(jvm, table))
    live = jvm.to_python(snapshot.allFiles().collectAsList())
    files = pa.table({name: [add[name] for add in live] for name in ("path", "size")})
    others = pa.table({"path": ["x", *files["path"].to_pylist()[1:]], "size": files["size"]})
    larger = files.set_column(1, "size", pc.add(files["size"], 1))

    for asked in (others, larger):
        with pytest.raises(UnsupportedError, match="has other actions than those of the "):
            live_files.LiveFiles(jvm).find_actions(snapshot, asked)


ODD_BOUNDS = {
    "i": (1, 1.0, "1", None, True, 1 << 31, -0),
    "x": (1, 1.5, -0.0, "NaN", 1e-310, 12345678901234567890123, "1.5", float("inf")),
    "d": (1.5, 1.555, 1e9, -0.01, "1.5", 1e2),
    "day": ("2024-02-29", "2024-02-30", "0001-01-01", "9999-12-31", "2024-1-1", 19_000),
    "t": (
        *(f"2024-01-01T00:00:00{zone}" for zone in ("", "Z", "+17:59", "+18:00", "+19:00")),
        *(f"2024-01-01T00:00:{second}Z" for second in ("60", "00.1", "59.123456", "59.1234567")),
        *("1582-10-10T12:00:00.000Z", "0001-01-01T00:00:00.000-00:30", "9999-12-31T23:59:59.999Z"),
    ),
    "n": ("2024-01-01T00:00:00.123", "2024-01-01T00:00:00Z", "1900-01-01T00:00:00"),
    "s": ("", "a\nb", "\u0000", "\U0001f600", 1, None, "\ud800"),
}
"""Bounds that any writer may state, of the columns of a table."""


def test_arrow_reads_bounds_as_spark_does_or_leaves_them_to_spark(spark):
    """Each of them by itself: a bound that Spark takes for unknown is no value for Arrow."""
    types = "i int, x double, d decimal(10,2), day date, t timestamp, n timestamp_ntz, s string"
    schema = spark.sql(f"SELECT from_json('', '{types}') c").select("c.*").schema
    columns = [
        Wanted(parts=(f.name,), physical=(f.name,), type=arrow.type, spark_type=f.dataType)
        for f, arrow in zip(schema, arrow_schema(json.loads(schema.json())), strict=True)
    ]
    stated = [(name, value) for name, values in ODD_BOUNDS.items() for value in values]
    adds = []
    for number, (name, value) in enumerate(stated):
        stats = {"numRecords": number, "minValues": {name: value}, "nullCount": {name: 1}}
        file = {"path": f"{number:03}", "partitionValues": {}, "size": 1, "modificationTime": 1}
        adds.append({**file, "dataChange": False, "stats": json.dumps(stats)})
    jvm = Jvm(spark)

    (by_spark,) = add_files.by_spark(jvm.action_frame(jvm.to_java(adds)))(columns, {})

    read = dict[str, int]()
    for number, add in enumerate(adds):
        with suppress(ValueError):
            found = flatten(to_structs([add]), columns, {})
            expected = by_spark.slice(number, 1).select(found.schema.names)
            assert found.to_pylist() == expected.to_pylist(), stated[number]
            read[stated[number][0]] = read.get(stated[number][0], 0) + 1
    assert read == {"i": 3, "x": 5, "d": 4, "day": 3, "t": 7, "n": 2, "s": 5}
