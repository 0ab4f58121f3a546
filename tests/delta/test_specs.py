"""What a Delta table can be told."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tests.kit.builders import snapshot
from zadapter.errors import UnsupportedError
from zadapter.table.spec import FILE_SIZE, RETENTION, Definition, Note, PartitionField, Status
from zadapter_delta.table.specs import MAPPING, adapt_definition, check_names, define

TYPES = [
    "boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp",
    "timestamp_ntz", "string", "binary", "decimal(38,10)",
]  # fmt: skip
ODD = [" ", ",", ";", "{", "}", "(", ")", "\n", "\t", "="]


def column(type_, name="c", *, nullable=True, **metadata):
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def of(*types, **said):
    columns = [column(type_, f"c{number}") for number, type_ in enumerate(types)]
    return Definition(columns=tuple(columns), **said)


def told(definition):
    return [(item.what, item.status) for item in definition.items]


def defined(columns=(), properties=(), *, partition=(), comment=None):
    """What is said of a table whose log says this of it."""
    text = json.dumps({"type": "struct", "fields": list(columns)})
    said = SimpleNamespace(
        configuration=lambda: dict(properties),
        schemaString=lambda: text,
        description=lambda: comment,
    )
    handle = SimpleNamespace(snapshot=SimpleNamespace(metadata=lambda: said))
    made = replace(snapshot(pa.schema([]), dict.fromkeys(partition)), handle=handle)
    return define(SimpleNamespace(dict=dict), made)


@pytest.mark.parametrize("type_", TYPES)
def test_types_that_delta_has_stay(type_):
    assert adapt_definition(of(type_)) == of(type_)


@pytest.mark.parametrize("type_", ["varchar(3)", "char(3)"])
def test_texts_lose_their_limit(type_):
    made = adapt_definition(of(type_))

    assert made.columns[0]["type"] == "string"
    assert made.items == (Note("column c0", Status.TRANSLATED, f"{type_} becomes string"),)


@pytest.mark.parametrize("type_", ["variant", "interval day to second", "void", "time(6)"])
def test_types_without_a_match_are_refused(type_):
    assert adapt_definition(of("long", type_)).refused[0].what == "column c1"


def test_not_null_is_kept_but_within_arrays_and_maps():
    """There Delta could not enforce it, and refuses the table."""
    strict = {"type": "struct", "fields": [column("long", "x", nullable=False)]}
    kept = Definition(columns=(column(strict, nullable=False),))
    array = {"type": "array", "elementType": strict, "containsNull": False}

    made = adapt_definition(of(array))

    assert adapt_definition(kept) == kept
    assert told(made) == [("NOT NULL within arrays and maps", Status.LOST)]
    assert made.columns[0]["type"]["containsNull"]
    assert made.columns[0]["type"]["elementType"]["fields"][0]["nullable"]


def test_columns_that_differ_in_case_only_are_refused():
    twins = Definition(columns=(column("long", "a"), column("long", "A"), column("long", "b")))

    assert [item.what for item in adapt_definition(twins).refused] == ["column a"]
    assert not adapt_definition(of("long", "long")).refused


def test_files_are_cut_by_whole_columns():
    """What is made of a column, or lies within one, has no place in the log."""
    cut = (
        PartitionField("c0", ("c0",)),
        PartitionField("other", ("c1",)),
        PartitionField("t_day", ("c2",), "day"),
        PartitionField("c3.x", ("c3", "x")),
    )

    made = adapt_definition(of(*["long"] * 4, partition=cut))

    assert [each.name for each in made.partition] == ["c0", "other"]
    assert [item.what for item in made.items] == ["partition field day(c2)", "partition field c3.x"]
    assert {item.status for item in made.items} == {Status.TRANSLATED}
    assert "Delta partitions by columns only" in made.items[0].how


@pytest.mark.parametrize("letter", ODD)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda name: column("long", name),
        lambda name: column({"type": "struct", "fields": [column("long", name)]}),
        lambda name: column(
            {
                "type": "array",
                "elementType": {"type": "struct", "fields": [column("long", name)]},
                "containsNull": True,
            }
        ),
        lambda name: column(
            {
                "type": "map",
                "keyType": "string",
                "valueType": {"type": "struct", "fields": [column("long", name)]},
                "valueContainsNull": True,
            }
        ),
    ],
)
def test_names_that_parquet_cannot_have_are_mapped(letter, wrap):
    """However deep they are."""
    made = adapt_definition(Definition(columns=(wrap(f"a{letter}b"),)))

    assert made.properties == {MAPPING: "name"}
    assert "require column mapping" in made.renamed
    assert told(made) == [("column names", Status.TRANSLATED)]


@pytest.mark.parametrize("name", ["a.b", "ä", "a-b", "`"])
def test_other_names_need_no_mapping(name):
    assert adapt_definition(Definition(columns=(column("long", name),))).properties == {}


def test_common_properties_get_their_names():
    made = adapt_definition(
        of("long", properties={FILE_SIZE: "1024", RETENTION: "90500", "team": "x"})
    )

    assert made.properties == {
        "delta.targetFileSize": "1024",
        "delta.deletedFileRetentionDuration": "interval 90 seconds",
        "team": "x",
    }
    assert made.items == ()


def test_properties_that_delta_would_obey_are_lost():
    """Whatever their case is: Delta ignores it."""
    lost = ["DELTA.x", "delta.appendOnly", "delta.columnMapping.mode"]
    made = adapt_definition(of("long", properties={"x.delta.y": "z", **dict.fromkeys(lost, "id")}))

    assert made.properties == {"x.delta.y": "z"}
    assert told(made) == [(f"property {key}", Status.LOST) for key in lost]


@pytest.mark.parametrize(
    ("interval", "milliseconds"),
    [
        ("interval 1 week", 604_800_000),
        ("interval 30 days", 2_592_000_000),
        ("INTERVAL 2 Hours", 7_200_000),
        ("5 minutes", 300_000),
        ("interval 90 seconds", 90_000),
    ],
)
def test_what_all_formats_know_is_known(interval, milliseconds):
    """And comes back from a journey to and fro."""
    made = defined(
        properties={
            "delta.targetFileSize": "128mb",
            "delta.deletedFileRetentionDuration": interval,
            "team": "x",
        }
    )

    assert made.properties == {FILE_SIZE: str(128 << 20), RETENTION: str(milliseconds), "team": "x"}
    assert made.items == ()
    assert adapt_definition(made).properties == {
        "delta.targetFileSize": str(128 << 20),
        "delta.deletedFileRetentionDuration": f"interval {milliseconds // 1_000} seconds",
        "team": "x",
    }


def test_an_interval_that_is_not_understood_is_not_dropped_in_silence():
    made = defined(properties={"delta.deletedFileRetentionDuration": "interval 1 day 2 hours"})

    assert made.properties == {}
    assert told(made) == [("property delta.deletedFileRetentionDuration", Status.LOST)]


def test_what_only_delta_enforces_is_lost():
    columns = [
        column("long", "a", **{"delta.generationExpression": "b + 1", "comment": "sum"}),
        column("long", "b", **{"delta.identity.start": 1}),
        column("string", "c", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
    ]
    properties = {
        "delta.constraints.positive": "a > 0",
        "delta.enableChangeDataFeed": "true",
        "delta.minReaderVersion": "3",
        "delta.feature.x": "supported",
        "zadapter.source": "iceberg:1",
    }

    made = defined(columns, properties, partition=["a"], comment="all")

    assert [each["metadata"] for each in made.columns] == [{"comment": "sum"}, {}, {}]
    assert made.partition == (PartitionField("a", ("a",)),)
    assert made.comment == "all"
    assert made.properties == {}
    assert made.renamed is None
    assert told(made) == [
        ("column a", Status.LOST),
        ("column b", Status.LOST),
        ("column c", Status.LOST),
        ("CHECK (a > 0)", Status.LOST),
        ("property delta.enableChangeDataFeed", Status.LOST),
    ]


def test_files_whose_names_or_types_differ_cannot_be_read_by_others():
    changes = [{"fromType": "float", "toType": "double"}]
    widened = column("double", "a", **{"delta.typeChanges": changes})

    assert "column mapping" in defined(properties={MAPPING: "id"}).renamed
    assert "type widening" in defined([widened]).renamed
    assert defined(properties={MAPPING: "none"}).renamed is None


@pytest.mark.parametrize("name", ["`", "`a", "a`"])
def test_a_partition_column_by_which_delta_finds_no_rows(name):
    """Delta strips backticks from the names in filters."""
    made = adapt_definition(
        Definition(
            columns=(column("long", name), column("long", "b`c")),
            partition=(PartitionField(name, (name,)), PartitionField("b`c", ("b`c",))),
        )
    )

    assert [each.name for each in made.partition] == ["b`c"]
    with pytest.raises(UnsupportedError, match="find no rows"):
        check_names(snapshot(pa.schema([]), {name: pa.int64()}))
    assert check_names(snapshot(pa.schema([]), {"b`c": pa.int64()}))


def test_files_are_not_cut_by_bytes():
    """The log writes a partition's values as texts, which not all bytes are."""
    made = adapt_definition(of("binary", "long", partition=(PartitionField("p", ("c0",)),)))

    assert made.partition == ()
    assert [(item.what, item.how) for item in made.items] == [
        ("partition field c0", "not a partition field: Delta stores partition values as strings")
    ]


@pytest.mark.parametrize("type_", ["timestamp_ntz", "date"])
def test_days_are_a_column_that_delta_computes(type_):
    """Of moments with a time zone they are not: Delta's days are the session's."""
    cut = (PartitionField("c0_day", ("c0",), "day"),)

    made, moments = (
        adapt_definition(of(type_, partition=cut)),
        adapt_definition(of("timestamp", partition=cut)),
    )

    assert made.partition == (PartitionField("c0_day", ("c0_day",)),)
    assert made.columns[1:] == (column("date", "c0_day"),)
    assert made.computed == {"c0_day": "CAST(`c0` AS DATE)"}
    assert told(made) == [("partition field day(c0)", Status.TRANSLATED)]
    assert (moments.partition, len(moments.columns), moments.computed) == ((), 1, {})
