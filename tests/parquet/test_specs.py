"""What a folder of Parquet files can be told of a table."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tests.kit.builders import snapshot
from tests.parquet.kit.log import ENTRY
from zadapter.table.spec import FILE_SIZE, RETENTION, Definition, Note, PartitionField, Status
from zadapter_parquet.log.snapshot import Version
from zadapter_parquet.operations.loading import adapt_definition, define

TYPES = [
    "boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp",
    "timestamp_ntz", "string", "binary", "decimal(38,10)",
]  # fmt: skip
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
    assert adapt_definition(of(type_)) == of(type_)


@pytest.mark.parametrize("type_", ["varchar(3)", "char(3)"])
def test_texts_lose_their_limit(type_):
    assert adapt_definition(of(type_)).columns == of("string").columns


def test_types_without_a_match_are_refused():
    assert [item.what for item in adapt_definition(of("long", "variant")).refused] == ["column c1"]


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
    made = adapt_definition(Definition(columns=(strict,)))

    assert made.items == (
        Note("NOT NULL", Status.LOST, "readers of Parquet files treat all columns as nullable"),
    )
    assert '"nullable": false' not in json.dumps(made.columns)
    assert '"containsNull": false' not in json.dumps(made.columns)
    assert adapt_definition(replace(made, items=())).items == ()


@pytest.mark.parametrize("type_", TYPES)
def test_folders_say_the_values_of_some_types(type_):
    """Those whose text is the value, and has no colon."""
    cut = adapt_definition(of(type_, "long", partition=(PartitionField("c0", ("c0",)),)))
    said = type_ not in {"float", "double", "timestamp", "timestamp_ntz", "binary"}

    assert [each.name for each in cut.partition] == (["c0"] if said else [])
    assert [item.what for item in cut.items] == ([] if said else ["partition field c0"])
    assert all("folder names cannot" in item.how for item in cut.items)


def test_folders_are_not_cut_by_what_their_names_cannot_say():
    """An empty text would come back as null."""
    cut = of("string", "long", partition=(PartitionField("c0", ("c0",)),))

    made = adapt_definition(replace(cut, unrepresentable=frozenset({"c0"})))

    assert made.partition == ()
    assert [item.how for item in made.items] == [
        "not a partition field: a folder name cannot represent one of its values"
    ]


def test_a_column_stays_for_the_files():
    """A file without columns is none."""
    cut = of(
        "long", "long", partition=(PartitionField("c0", ("c0",)), PartitionField("c1", ("c1",)))
    )

    made = adapt_definition(cut)

    assert [each.name for each in made.partition] == ["c0"]


def test_folders_are_cut_by_whole_columns():
    cut = (PartitionField("d", ("c0",), "day"), PartitionField("c1.x", ("c1", "x")))

    made = adapt_definition(of("date", STRICT, partition=cut))

    assert made.partition == ()
    assert [item.what for item in made.items if "partition field" in item.what] == [
        "partition field day(c0)",
        "partition field c1.x",
    ]


def test_properties_are_kept_by_the_names_that_all_formats_know():
    assert adapt_definition(of("long", properties=PROPERTIES)).properties == PROPERTIES


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


def test_columns_that_differ_in_case_only_are_refused():
    """DuckDB and Spark by default take them for one."""
    (item,) = adapt_definition(Definition(columns=(column("long", "a"), column("long", "A")))).items

    assert (item.what, item.status) == ("column a", Status.REFUSED)
