"""What a folder of Parquet files can be told, and how a table of another format becomes one."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tests.builders import snapshot
from tests.parquetlog import ENTRY
from tests.parquetworld import table_of
from zadapter.definition import FILE_SIZE, RETENTION, Definition, Fate, Item, PartitionField
from zadapter.errors import ConflictError, StaleRewriteError, UsageError
from zadapter.table import Load, Source, Staged
from zadapter_parquet import loads
from zadapter_parquet.entries import Operation, decode, digest, encode
from zadapter_parquet.loads import accept, define
from zadapter_parquet.local import LocalFiles
from zadapter_parquet.log import Log
from zadapter_parquet.versions import Version
from zadapter_parquet.versions import snapshot as at

TYPES = [
    "boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp",
    "timestamp_ntz", "string", "binary", "decimal(38,10)",
]  # fmt: skip
SOURCE = Source(format="delta", id="1-2", version=7)
PROPERTIES = {FILE_SIZE: "1024", RETENTION: "60000", "team": "x"}
LONG = {"name": "a", "type": "long", "nullable": True, "metadata": {}}


def column(type_, name="c", *, nullable=True):
    return {"name": name, "type": type_, "nullable": nullable, "metadata": {}}


def of(*types, **said):
    columns = [column(type_, f"c{number}") for number, type_ in enumerate(types)]
    return Definition(columns=tuple(columns), **said)


def defined(**said):
    entry = replace(ENTRY, **said)
    handle = SimpleNamespace(version=Version(entry=entry))
    return define(replace(snapshot(pa.schema([])), handle=handle))


@pytest.mark.parametrize("type_", TYPES)
def test_types_that_files_have_stay(type_):
    assert accept(of(type_)) == of(type_)


@pytest.mark.parametrize("type_", ["varchar(3)", "char(3)"])
def test_texts_lose_their_limit(type_):
    assert accept(of(type_)).columns == of("string").columns


def test_types_without_a_match_are_refused():
    assert [item.what for item in accept(of("long", "variant")).refused] == ["column c1"]


STRICT = {"type": "struct", "fields": [column("long", "x", nullable=False)]}


@pytest.mark.parametrize(
    "strict",
    [
        column("long", nullable=False),
        column(STRICT),
        column({"type": "array", "elementType": "long", "containsNull": False}),
        column({"type": "array", "elementType": STRICT, "containsNull": True}),
    ],
)
def test_not_null_is_lost_however_deep(strict):
    """Spark's reader takes all of it for nullable: what it reads would fit no stricter type."""
    made = accept(Definition(columns=(strict,)))

    assert made.items == (
        Item("NOT NULL", Fate.LOST, "readers of plain files take every column for nullable"),
    )
    assert '"nullable": false' not in json.dumps(made.columns)
    assert '"containsNull": false' not in json.dumps(made.columns)
    assert accept(replace(made, items=())).items == ()


@pytest.mark.parametrize("type_", TYPES)
def test_folders_say_the_values_of_some_types(type_):
    """Those whose text is the value, and has no colon."""
    cut = accept(of(type_, "long", partition=(PartitionField("c0", ("c0",)),)))
    said = type_ not in {"float", "double", "timestamp", "timestamp_ntz", "binary"}

    assert [each.name for each in cut.partition] == (["c0"] if said else [])
    assert [item.what for item in cut.items] == ([] if said else ["partitions by c0"])
    assert all("the name of a folder" in item.how for item in cut.items)


def test_folders_are_not_cut_by_what_their_names_cannot_say():
    """An empty text would come back as null."""
    cut = of("string", "long", partition=(PartitionField("c0", ("c0",)),))

    made = accept(replace(cut, unspeakable=frozenset({"c0"})))

    assert made.partition == ()
    assert [item.how for item in made.items] == [
        "files are not cut by it: the name of a folder cannot say one of its values"
    ]


def test_a_column_stays_for_the_files():
    """A file without columns is none."""
    cut = of(
        "long", "long", partition=(PartitionField("c0", ("c0",)), PartitionField("c1", ("c1",)))
    )

    made = accept(cut)

    assert [each.name for each in made.partition] == ["c0"]


def test_folders_are_cut_by_whole_columns():
    cut = (PartitionField("d", ("c0",), "day"), PartitionField("c1.x", ("c1", "x")))

    made = accept(of("date", STRICT, partition=cut))

    assert made.partition == ()
    assert [item.what for item in made.items if "partitions" in item.what] == [
        "partitions by day(c0)",
        "partitions by c1.x",
    ]


def test_properties_are_kept_by_the_names_that_all_formats_know():
    assert accept(of("long", properties=PROPERTIES)).properties == PROPERTIES


def test_a_table_says_again_what_it_was_told():
    text = json.dumps({"type": "struct", "fields": [LONG]})

    made = defined(schema=text, partition=("a",), properties={**PROPERTIES, "comment": "all"})

    assert made == Definition(
        columns=(LONG,),
        partition=(PartitionField("a", ("a",)),),
        properties=PROPERTIES,
        comment="all",
    )
    assert defined().comment is None


def test_an_entry_keeps_where_the_table_came_from():
    """And what no file can say."""
    entry = replace(ENTRY, operation=Operation.MIGRATE, source=SOURCE, properties=PROPERTIES)

    assert decode(encode(entry), 0) == entry
    assert decode(encode(entry), 0).source == SOURCE
    assert decode(encode(entry), 0).properties == PROPERTIES


def test_an_entry_of_before_migrations_is_read():
    """It has no word of them, and its bytes stay what the next entry's hash is of."""
    body = json.loads(encode(ENTRY).splitlines()[0])
    del body["source"], body["properties"]
    data = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()

    found = decode(data + b'\n{"end":"' + digest(data).encode() + b'"}\n', 0)

    assert found == ENTRY
    assert found.source is None
    assert found.properties == {}


@pytest.fixture
def files(tmp_path):
    return LocalFiles(tmp_path)


def pending(files):
    text = Definition(columns=(LONG,), properties=PROPERTIES, comment="all")
    return loads.pending("t", files, text, SOURCE)


def staged(files, base, *names):
    """Files that lie where a commit would have put them."""
    folder = base.handle.version.entry.folder
    paths = [f"{folder}/{name}" for name in names]
    for path in paths:
        files.write(path, b"x")
    return Staged(paths={}, files=table_of(paths), handle=(folder, None))


def load_of(base, *parts, **said):
    return Load(base=base, staged=parts, source=SOURCE, **said)


def loaded(load_):
    return loads.load(load_, [each.files for each in load_.staged])


def head(files):
    return at("t", files, Version(entry=Log(files, "t").head()))


def test_a_table_appears_with_all_of_its_files(files):
    """And with what was said of it; before, there is none."""
    base = pending(files)
    load_ = load_of(base, staged(files, base, "a", "b"), staged(files, base, "c"))

    assert not Log(files, "t").exists()
    assert loaded(load_) == 0
    entry = Log(files, "t").head()
    assert (entry.files, entry.size, entry.rows) == (3, 3, 3)
    assert (entry.operation, entry.transaction) == (Operation.MIGRATE, load_.id)
    assert (entry.source, entry.properties) == (SOURCE, {**PROPERTIES, "comment": "all"})
    assert define(head(files)).comment == "all"


def test_an_empty_table_can_be_made(files):
    base = pending(files)

    assert loaded(load_of(base)) == 0
    assert Log(files, "t").head().files == 0


def test_of_two_that_make_a_table_one_does(files):
    first, second = pending(files), pending(files)
    theirs = load_of(second, staged(files, second, "b"))

    loaded(load_of(first, staged(files, first, "a")))

    with pytest.raises(ConflictError):
        loaded(theirs)
    assert Log(files, "t").head().files == 1


def test_a_folder_that_holds_anything_is_left_alone(files):
    files.write("a.csv", b"")

    with pytest.raises(UsageError, match=r"t holds a\.csv already"):
        pending(files)


def test_what_an_interrupted_try_has_left_is_no_obstacle(files):
    staged(files, pending(files), "a")

    assert loaded(load_of(pending(files))) == 0


def test_more_files_become_the_next_version(files):
    """With the new source's version, and all else as it was."""
    loaded(load_of(pending(files)))
    base = head(files)
    files.write("_zadapter/data/x/a", b"x")
    news = Staged(
        paths={}, files=table_of(["_zadapter/data/x/a"]), handle=("_zadapter/data/x", None)
    )
    load_ = Load(base=base, staged=(news,), source=replace(SOURCE, version=8))

    assert loaded(load_) == 1
    entry = Log(files, "t").head()
    assert (entry.files, entry.folder, entry.source.version) == (1, "_zadapter/data/x", 8)
    assert entry.properties == {**PROPERTIES, "comment": "all"}


def test_files_that_a_clean_up_has_taken_are_not_committed(files):
    base = pending(files)
    gone = staged(files, base, "a")
    files.delete(gone.files["path"].to_pylist())

    with pytest.raises(StaleRewriteError):
        loaded(load_of(base, gone))
    assert not Log(files, "t").exists()


def test_a_table_that_is_dropped_takes_nothing_along(files):
    """Another one may be on its way in the same folder."""
    base, rival = pending(files), pending(files)
    ours, theirs = staged(files, base, "a"), staged(files, rival, "b")
    loaded(load_of(base, ours))

    loads.drop(files, "t")

    left = {file.path for file in files.listed()}
    assert not Log(files, "t").exists()
    assert left >= set(theirs.files["path"].to_pylist())
    assert not left & set(ours.files["path"].to_pylist())
    assert loaded(load_of(rival, theirs)) == 0


def test_a_table_that_others_have_changed_is_not_dropped(files):
    loaded(load_of(pending(files)))
    log = Log(files, "t")
    log.claim(replace(log.head(), version=1, previous=log.hash_of(0), transaction="b"))

    with pytest.raises(ConflictError, match="left as it is"):
        loads.drop(files, "t")
    assert log.head().version == 1


def test_parts_of_the_stats_go_with_the_table(files):
    base = pending(files)
    loaded(load_of(base, staged(files, base, "a")))
    parts = [part.path for part in Log(files, "t").head().parts]

    loads.drop(files, "t")

    assert parts
    assert not any(map(files.has, parts))
