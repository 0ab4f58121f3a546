"""Column names are taken apart, put together and found as Spark does it."""

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.base.names import join, leaves, quote, resolve, split
from zadapter.errors import UnknownColumnError, UsageError

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        (
            "User",
            pa.struct([("Name", pa.string()), ("home.town", pa.struct([("zip", pa.int32())]))]),
        ),
        ("tags", pa.list_(pa.struct([("key", pa.string())]))),
        ("odd `name`", pa.int8()),
    ]
)
odd = st.text(st.sampled_from("aB0_`. \té水\U0001f600'\"\\") | st.characters(codec="utf-8"))


@given(parts=st.lists(odd, min_size=1, max_size=3).map(tuple))
def test_split_undoes_join(parts):
    """Whatever the names hold: backticks, dots, blanks, any script, or nothing."""
    assert split(join(parts)) == parts
    assert split(quote(parts)) == parts


@given(text=st.text(st.sampled_from("ab.` "), max_size=8))
def test_a_text_is_a_name_or_refused(text):
    """What is read is what would be written, or at least reads the same again."""
    with suppress(UsageError):
        parts = split(text)
        assert split(join(parts)) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ("`a.b`.c", ("a.b", "c")),
        ("`a``b`", ("a`b",)),
        (" a . b ", ("a", "b")),
        ("``", ("",)),
        ("a.``", ("a", "")),
        ("````", ("`",)),
        ("order date", ("order date",)),
        ("größe", ("größe",)),
    ],
)
def test_known_names(text, parts):
    """As people type them."""
    assert split(text) == parts


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", " ", "a. ", "`a", "a`", "`", "```", "`a`b", "``a"]
)
def test_what_is_no_name(text):
    """Nothing is guessed."""
    with pytest.raises(UsageError, match="is not a column name"):
        split(text)


@pytest.mark.parametrize(
    ("parts", "text"),
    [(("a", "b"), "a.b"), (("a.b",), "`a.b`"), (("1a",), "`1a`"), (("a`",), "`a```")],
)
def test_names_are_quoted_where_they_must_be(parts, text):
    """And only there; for SQL they always are."""
    assert join(parts) == text
    assert quote(("a", "b`")) == "`a`.`b```"


@pytest.mark.parametrize(
    ("asked", "found", "type_"),
    [
        (("ID",), ("id",), pa.int64()),
        (("user", "NAME"), ("User", "Name"), pa.string()),
        (("user", "Home.Town", "ZIP"), ("User", "home.town", "zip"), pa.int32()),
        (("USER",), ("User",), SCHEMA.field("User").type),
        (("Odd `Name`",), ("odd `name`",), pa.int8()),
    ],
)
def test_case_does_not_matter(asked, found, type_):
    """The column comes back as the schema writes it, at every depth."""
    assert resolve(asked, SCHEMA) == (found, type_)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (("idd",), "did you mean 'id'?"),
        (("user", "nam"), "did you mean 'User.Name'?"),
        (("USER", "home.twn"), "did you mean 'User.`home.town`'?"),
        (("oddname",), "did you mean '`odd ``name```'?"),
        (("quite another thing",), "available: id, User, tags, `odd ``name```"),
        (("id", "x"), "did you mean 'id'?"),
        (("tags", "quite another"), "available: id, User, tags, `odd ``name```"),
    ],
)
def test_an_unknown_column_shows_the_way(asked, hint):
    """The error has the nearest name, or all there are."""
    with pytest.raises(UnknownColumnError) as raised:
        resolve(asked, SCHEMA)

    assert raised.value.column == join(asked)
    assert hint in str(raised.value)


def test_an_ambiguous_name_is_refused():
    """Unless it is written exactly as one of the columns is."""
    schema = pa.schema([("Id", pa.int32()), ("ID", pa.int64())])

    assert resolve(("ID",), schema) == (("ID",), pa.int64())
    with pytest.raises(UsageError, match="ambiguous: Id, ID"):
        resolve(("id",), schema)


def test_leaves_open_structs_only():
    """Depth first, in the order of the schema; an array is a leaf, whatever it holds."""
    found = dict(leaves(SCHEMA))

    assert list(found) == [
        ("id",),
        ("User", "Name"),
        ("User", "home.town", "zip"),
        ("tags",),
        ("odd `name`",),
    ]
    assert found["User", "home.town", "zip"] == pa.int32()
    assert all(resolve(parts, SCHEMA) == (parts, type_) for parts, type_ in found.items())
