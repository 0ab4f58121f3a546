"""What an Iceberg table can be told, and where its files cannot be read by names."""

import json

import pytest

from zadapter.table.spec import FILE_SIZE, RETENTION, Definition, Note, Status
from zadapter_iceberg.table.specs import _find_reused_name as renamed
from zadapter_iceberg.table.specs import adapt_definition


def column(type_, name="c"):
    return {"name": name, "type": type_, "nullable": False, "metadata": {"comment": "why"}}


def of(*types, **said):
    return Definition(columns=tuple(map(column, types)), **said)


def struct(*fields):
    return {
        "type": "struct",
        "fields": [
            {"id": number, "name": name, "required": False, "type": type_}
            for number, name, type_ in fields
        ],
    }


def schemas(*structs):
    return [json.dumps(each) for each in structs]


@pytest.mark.parametrize(
    "type_",
    [
        "boolean", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz",
        "string", "binary", "decimal(38,10)",
    ],
)  # fmt: skip
def test_types_that_iceberg_has_stay(type_):
    """So do nullability and comments."""
    assert adapt_definition(of(type_)) == of(type_)


@pytest.mark.parametrize(
    ("type_", "other"),
    [("byte", "integer"), ("short", "integer"), ("varchar(3)", "string"), ("char(3)", "string")],
)
def test_types_that_iceberg_has_not_are_widened(type_, other):
    made = adapt_definition(of({"type": "array", "elementType": type_, "containsNull": False}))

    assert made.columns[0]["type"]["elementType"] == other
    assert made.items == (Note("column c", Status.TRANSLATED, f"{type_} becomes {other}"),)


@pytest.mark.parametrize("type_", ["variant", "interval", "interval day to second", "void"])
def test_types_without_a_match_are_refused(type_):
    assert [item.what for item in adapt_definition(of(type_)).refused] == ["column c"]


def test_common_properties_get_their_names():
    made = adapt_definition(
        of("long", properties={FILE_SIZE: "1024", RETENTION: "60000", "team": "x"})
    )

    assert made.properties == {
        "write.target-file-size-bytes": "1024",
        "history.expire.max-snapshot-age-ms": "60000",
        "team": "x",
    }
    assert made.items == ()


@pytest.mark.parametrize(
    "key",
    [
        "write.format.default", "gc.enabled", "zadapter.source", "owner", "format-version", "uuid",
        "write.delete.parquet.page-size-bytes", "write.metadata.metrics.column.a.b", "location",
        "write.parquet.bloom-filter-enabled.column.a", "comment", "sort-order", "provider",
    ],
)  # fmt: skip
def test_properties_that_iceberg_would_obey_are_lost(key):
    """An owner's wish for another format is none for this one."""
    made = adapt_definition(of("long", properties={key: "x", f"x.{key}": "y"}))

    assert made.properties == {f"x.{key}": "y"}
    assert [(item.what, item.status) for item in made.items] == [(f"property {key}", Status.LOST)]


@pytest.mark.parametrize(
    "key",
    [
        "owner.team", "owner-email", "schema.registry", "format.source", "engine.x", "read.me",
        "commit.sha", "write.me", "history", "gc", "Owner", "write.format.default ", "encryption",
        "write.parquet", "write.metadata.metrics.column", "compatibility.matrix",
    ],
)  # fmt: skip
def test_properties_of_the_same_first_word_stay(key):
    """Iceberg itself keeps them."""
    made = adapt_definition(of("long", properties={key: ""}))

    assert made.properties == {key: ""}
    assert made.items == ()


def test_columns_may_come_and_go_and_move():
    first = struct((1, "a", "long"), (2, "b", "long"))
    then = struct((3, "c", "string"), (1, "a", "long"))

    assert renamed(schemas(first, then)) is None
    assert renamed([]) is None


def test_a_column_that_got_another_name_is_found_out():
    """Files that were written before have the old one."""
    found = renamed(schemas(struct((1, "a", "long")), struct((1, "b c", "long"))))

    assert found == "a and `b c` are names of the same column"


def test_a_name_that_was_used_twice_is_found_out():
    """The column was dropped, and another one added: old files still have the old one."""
    dropped = schemas(struct((1, "a", "long")), struct(), struct((2, "a", "long")))

    assert renamed(dropped) == "the table has had two columns a"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner,
        lambda inner: {"type": "list", "element-id": 8, "element": inner},
        lambda inner: {"type": "map", "key-id": 8, "key": "long", "value-id": 9, "value": inner},
        lambda inner: {"type": "map", "key-id": 8, "key": inner, "value-id": 9, "value": "long"},
    ],
)
def test_names_are_compared_however_deep(wrap):
    """Two fields of one name in different structs are two columns."""
    before, after = struct((2, "x", "long"), (3, "a", "long")), struct((2, "y", "long"))
    same = struct((1, "a", wrap(before)))

    assert renamed(schemas(same, same)) is None
    assert renamed(schemas(same, struct((1, "a", wrap(after))))).endswith(
        "names of the same column"
    )


def test_columns_that_readers_are_given_besides_are_refused():
    made = adapt_definition(Definition(columns=(column("long", "_pos"), column("long"))))

    assert [item.what for item in made.refused] == ["column _pos"]
