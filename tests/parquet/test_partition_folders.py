"""Names of partition folders become values and names again, and folders stay apart."""

from datetime import date
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from zadapter.errors import UnsupportedError
from zadapter.table.spark_schema import arrow_schema
from zadapter_parquet.store import hive_names
from zadapter_parquet.store.contract import ListedFile
from zadapter_parquet.store.hive_names import NULL
from zadapter_parquet.store.partition_folders import folders_of, partition_columns

NASTY = [
    "1", "01", "01001", "1001", "+1", "-1", "-0", "0", "00", "1.0", "1.50", "1e5", "-0.0", ".5",
    "NaN", "Infinity", "infinity", "0x10", "1L", "1d", "1_000", "2147483648", "-2147483649",
    "9223372036854775807", "9223372036854775808", "9" * 39, "1" * 400, " 1", "1 ", "٣", "\uff11",
    "1%30", "%31", "%2B1", "%41", "A", "a", "%61", "%2f", "%2F", "%3A", "%3a", "a:b", "a=b", "=",
    "%", "%4", "%zz", "%25", "%2541", "%C3%BC", "%c3%bc", "ü", "%FC", "%FC%C3", "u\u0308",
    "true", "TRUE", "True", "null", "NULL", NULL, NULL.lower(), "nan", "2024-01-01", "2024-1-1",
    "2024-02-30", "2024-02-29", "2023-02-29", "0000-01-01", "0001-01-01", "9999-12-31",
    "10000-01-01", "+10000-01-01", "2024", "2024-01", "٢٠٢٤-01-01", "2024-01-01 00%3A00%3A00",
    "2024-01-01 00%3A00%3A00.5", "2024-01-01T00:00:00Z", "2024-01-01 12:30:00+02:00", "today",
    "..a", "a b", "a%20b", "a+b", "'", '"', "[x]*?", "#", "$", "`", "%0A", "%7F", "🦆",
]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(NASTY), st.integers().map(str), st.dates().map(str)) | (
    st.text(min_size=1, max_size=6).map(lambda text: quote(text, safe="")).filter(bool)
)
COLUMNS = st.sampled_from(["zip", "zip code", "zip%20code", "_c", "ü", "%C3%BC", "a%3Db", "1", "%"])


def found(paths):
    return [ListedFile(path=path, size=1, modified=0) for path in paths]


def types_of(files):
    """The Arrow types of the partition columns of files, as in a table's schema."""
    inferred = hive_names.column_types(files, partition_columns(files))
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in inferred.items()]
    return {field.name: field.type for field in arrow_schema({"type": "struct", "fields": fields})}


def as_spark_writes(folder, partition):
    """A folder as Spark's writer names it: unescaped first, then escaped by its rules."""
    special = "".join(map(chr, range(0x20))) + "\"#%'*/:=?\\\x7f{[]^"
    names = []
    for name, type_ in partition.items():
        value = hive_names.values([f"{folder}/x"], name, type_)[0].as_py()
        text = NULL if value is None else str(value)
        both = (name, text)
        names.append(
            "=".join("".join(f"%{ord(c):02X}" if c in special else c for c in t) for t in both)
        )
    return "/".join(names)


@given(COLUMNS, st.lists(TEXTS, min_size=1, max_size=6, unique=True))
@example("zip", ["01001", "1001"])
@example("zip", ["1", "+1", "-0", "0"])
@example("day", ["2024-01-01", "2024-1-1"])
@example("k", [NULL, "1"])
@example("k", ["%FC", "%FD"])
def test_folders_stay_as_they_are_or_are_refused(column, texts):
    """A number or a date prints the text, and rewrites put its rows in the same folder."""
    folders = [f"{column}={text}" for text in texts]
    try:
        types = types_of(found(f"{folder}/1.parquet" for folder in folders))
        kept = folders_of((f"{folder}/1.parquet" for folder in folders), types)
    except UnsupportedError as error:
        refused = str(error)
        assert any(repr(folder) in refused or folder in refused for folder in folders)
        unescaped = [hive_names.unescape(text) for text in texts]
        assert len({*unescaped}) < len(texts) or NULL in {
            value for value, text in zip(unescaped, texts, strict=True) if text != NULL
        }
        return

    ((name, type_),) = types.items()
    values = hive_names.values((f"{folder}/x" for folder in folders), name, type_).to_pylist()
    assert len({*values}) == len(folders)
    for value, text in zip(values, texts, strict=True):
        assert (value is None) == (text == NULL)
        assert value is None or pa.types.is_string(type_) or str(value) == text
    for folder in folders:
        assert kept.match_folders([as_spark_writes(folder, types)]).popitem()[1] == folder


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4, unique=True))
def test_folders_of_two_columns_stay_as_they_are_or_are_refused(pairs):
    folders = [f"a={one}/b={two}" for one, two in pairs]
    assume(not any(hive_names.unescape(t) == NULL != t for pair in pairs for t in pair))
    types = types_of(found(f"{folder}/1.parquet" for folder in folders))
    try:
        kept = folders_of((f"{folder}/1.parquet" for folder in folders), types)
    except UnsupportedError:
        assert len({tuple(map(hive_names.unescape, pair)) for pair in pairs}) < len(pairs)
        return
    for folder in folders:
        assert kept.match_folders([as_spark_writes(folder, types)]).popitem()[1] == folder


def test_a_new_value_gets_the_folder_that_spark_names():
    kept = folders_of(["k=a%20b/1.parquet"], {"k": pa.string()}).match_folders(["k=a b", "k=c%3Ad"])

    assert kept == {"k=a b": "k=a%20b", "k=c%3Ad": "k=c%3Ad"}


def test_the_names_of_visible_folders_take_precedence():
    """Older releases of zadapter wrote into folders that Spark names."""
    paths = ["_zadapter/data/1/2/k=a b/rows/0.rows", "k=a%20b/1.parquet"]

    for order in (paths, paths[::-1]):
        kept = folders_of(order, {"k": pa.string()})
        assert kept.match_folders(["k=a b"]) == {"k=a b": "k=a%20b"}
    assert folders_of(paths[:1], {"k": pa.string()}).match_folders(["k=a b"]) == {"k=a b": "k=a b"}


def test_two_folders_that_an_older_release_took_for_one_number_are_not_merged():
    """Its log says that the column is an integer, but the rows came from two folders."""
    integer = {"zip": pa.int32()}
    assert folders_of(["zip=01001/1.parquet"], integer).match_folders(["zip=1001"]) == {
        "zip=1001": "zip=01001"
    }

    with pytest.raises(UnsupportedError, match=r"'zip=01001' and 'zip=1001' have the same values"):
        folders_of(["zip=01001/1.parquet", "zip=1001/1.parquet"], integer)


READ = [
    (["a.parquet", "b", "c.txt", "d=1.parquet", "_e=1.parquet"], ()),
    (["p=1/a.parquet", "p=2/old/x/b.parquet"], ("p",)),
    (["_c=1/a.parquet", "_c=2/b.parquet"], ("_c",)),
    (["a=1/b=2/f.parquet", "a=1/b=3/g.parquet"], ("a", "b")),
]


@pytest.mark.parametrize(("paths", "columns"), READ)
def test_folders_that_spark_reads_whole(paths, columns):
    assert partition_columns(found(paths)) == columns


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        (["a.parquet", "old/b.parquet"], r"old/b\.parquet is in the folder 'old'.*move the folder"),
        (["a.parquet", "x.parquet/b.parquet"], "the folder 'x.parquet'"),
        (["2020/a.parquet", "2021/b.parquet"], "the folder '202[01]'"),
        (["p=1/a.parquet", "b.parquet"], r"b\.parquet is in the folder itself.*move it out"),
        (["p=1/a.parquet", "old/b.parquet"], "in the folder 'old'.*move it out"),
        (["x/p=1/a.parquet", "x/p=2/b.parquet"], "above the partition folder 'p=[12]'; pass 'x'"),
        (["a=1/x/b=2/f.parquet"], "above the partition folder 'b=2'; pass 'a=1/x'"),
        (["a=1/f.parquet", "a=1/b=2/g.parquet"], r"a=1/b=2/g\.parquet has .*\['a', 'b'\]"),
        (["a=1/b=1/f.parquet", "b=1/a=1/g.parquet"], r"\['b', 'a'\].* rename the folders"),
        (["a=1/f.parquet", "A=2/g.parquet"], r"\['A'\].* rename the folders"),
        (["a=1/a=2/f.parquet"], "two folders of one partition column"),
        (["a=1/A=2/f.parquet"], "differ only in case"),
        (["=1/f.parquet"], "without a column"),
        (["a=/f.parquet"], "without a value"),
        (["a=%5F_HIVE_DEFAULT_PARTITION__/f.parquet"], "take for null"),
    ],
)
def test_folders_that_spark_does_not_read_whole_are_refused_by_name(paths, says):
    """In any order of the listing."""
    for order in (paths, paths[::-1]):
        with pytest.raises(UnsupportedError, match=says):
            partition_columns(found(order))


def test_what_spark_skips_is_not_listed():
    """Hidden names, files that are being copied, and empty files; not columns such as _c."""
    skipped = ["_SUCCESS", "_metadata", ".a.parquet.crc", "_old/a", ".b/a", "c.parquet._COPYING_"]
    files = [*found([*skipped, "_c=1/a.parquet", "x"]), ListedFile(path="p=2", size=0, modified=0)]

    assert [file.path for file in hive_names.visible(files)] == ["_c=1/a.parquet", "x"]


def test_dates_are_those_of_the_calendar():
    types = types_of(found(["d=2024-02-29/a", "d=0001-01-01/b"]))

    assert hive_names.values(["d=2024-02-29/a"], "d", types["d"]).to_pylist() == [date(2024, 2, 29)]
