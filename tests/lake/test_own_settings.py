"""What a table itself states replaces what the file of the lake states of it."""

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from tests.kit.builders import snapshot
from zadapter.errors import UsageError
from zadapter.lake.own_settings import Settings, follow_definition, settings_of
from zadapter.lake.settings import Entry, Keep, override

DAY = timedelta(days=1)
FILE = Entry(
    match="sales.*",
    exclude=("sales.tmp",),
    format="delta",
    options={"by": "auto", "queries": "logs/", "target_file_size": "64MB"},
    keep=Keep(versions=7 * DAY, orphans=3 * DAY),
    max_wait=7,
)
TABLE = snapshot(
    pa.schema({"a": pa.int64(), "b": pa.string(), "day": pa.date32(), "list": pa.list_(pa.int8())}),
    partition={"day": pa.date32()},
)


def properties(**stated):
    """Return properties of a table; two underscores stand for a dot."""
    return {f"zadapter.maintain.{k.replace('__', '.')}": v for k, v in stated.items()}


def with_properties(table=TABLE, **stated):
    return replace(table, properties=lambda: properties(**stated))


def test_a_table_overrides_its_entry():
    """By the keywords of an entry; what it does not state is the file's."""
    stated = properties(
        by='["a", "b"]', weight="3", max_wait="2", keep__versions="30d", target_file_size="1GB"
    )

    assert override(FILE, {"owner": "x", **stated}) == replace(
        FILE,
        options={"by": ["a", "b"], "target_file_size": "1GB"},
        keep=Keep(versions=30 * DAY),
        weight=3.0,
        max_wait=2,
    )
    assert override(FILE, {"zadapter.layouts": "x"}) is FILE


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"by": "a"}, {"by": "a"}),
        ({"by": '"a"'}, {"by": "a"}),
        ({"by__a": "2", "by__b": "0.5"}, {"by": {"a": 2, "b": 0.5}}),
        ({"by": "a", "where": "a >= 1 AND b = '\n'"}, {"by": "a", "where": "a >= 1 AND b = '\n'"}),
        ({"by": "a", "tiers__day__hot": "2d"}, {"by": "a", "tiers": {"day": {"hot": "2d"}}}),
        ({"by": "a", "min_age": "10 minutes"}, {"by": "a", "min_age": "10 minutes"}),
        ({"by": "a\nmax_wait = 1"}, {"by": "a\nmax_wait = 1"}),
        ({"by": "[" * 10_000}, {"by": "[" * 10_000}),
    ],
)
def test_values_are_written_as_in_the_file(stated, expected):
    """And texts also without their quotes."""
    entry = override(Entry(match="t"), properties(**stated))

    assert entry == Entry(match="t", options=expected)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (
            {"max_wiat": "1"},
            r"unknown key 'zadapter\.maintain\.max_wiat'; did you mean .*max_wait'",
        ),
        ({"max_wait": "soon"}, r"zadapter\.maintain\.max_wait: 'soon' is not a number of nights"),
        ({"weight": "0"}, r"zadapter\.maintain\.weight: 0 is not a weight; write a number above 0"),
        ({"enabled": "no"}, r"zadapter\.maintain\.enabled: 'no' is neither true nor false"),
        ({"keep": "7d"}, r"zadapter\.maintain\.keep: '7d' does not say what is kept"),
        ({"keep__orphan": "7d"}, r"zadapter\.maintain\.keep: unknown key 'orphan'.*'orphans'"),
        ({"keep__versions": "a day"}, r"zadapter\.maintain\.keep: versions: .*'a day'"),
        ({"max_wait": "1", "max_wait__x": "1"}, r"max_wait\.x: a property above it states a value"),
        ({"match": "a.*"}, r"'zadapter\.maintain\.match' belongs to the file of the lake"),
        ({"format": "delta"}, r"'zadapter\.maintain\.format' belongs to the file of the lake"),
        ({"settle": "1d"}, r"'zadapter\.maintain\.settle' was renamed; write 'min_age'"),
        ({"curve": "linear"}, r"properties zadapter\.maintain\.curve: curve= .* pass by="),
        ({"max_bytes": "x"}, r"zadapter\.maintain\.max_bytes: 'x' is not a size"),
        ({"min_age": "x"}, r"zadapter\.maintain\.min_age: 'x' is not a duration"),
        ({"": "1"}, r"unknown key 'zadapter\.maintain\.'"),
    ],
)
def test_a_property_that_cannot_be_read_is_named(stated, expected):
    """With what is wrong with it, and what to do."""
    with pytest.raises(UsageError, match=f"{expected}(?s:.*)SET TBLPROPERTIES"):
        settings_of(Entry(match="t"), with_properties(**stated))


def test_all_mistakes_are_listed():
    with pytest.raises(UsageError) as refused:
        override(FILE, properties(weight="-1", max_wait="0"))

    assert len(str(refused.value).splitlines()) == 2


SORTED = replace(TABLE, sort_columns=(("b",), ("day",), ("list",)))
CLUSTERED = replace(TABLE, clustering=(("b",), ("a",)))


@pytest.mark.parametrize(
    ("table", "by", "expected"),
    [
        (TABLE, ["a"], ["a"]),
        (SORTED, ["a"], ["b"]),
        (CLUSTERED, ["a"], ["b", "a"]),
        (CLUSTERED, {"a": 2.0, "B": 1.0}, {"a": 2.0, "B": 1.0}),
        (CLUSTERED, "auto", "auto"),
        (replace(SORTED, sort_columns=(("day",), ("list",))), ["a"], ["a"]),
        (replace(SORTED, without_stats=frozenset({("b",)})), ["a"], ["a"]),
    ],
)
def test_the_definition_of_a_table_replaces_columns_of_the_file(table, by, expected):
    """But not what queries decide, nor weights of its columns, nor by what cannot be a key."""
    settings = settings_of(Entry(match="t", options={"by": by}), table)

    assert settings.entry.options == {"by": expected}
    assert bool(settings.own) == (by != expected)


def test_a_property_comes_before_the_definition():
    settings = settings_of(
        Entry(match="t", options={"by": "b"}), with_properties(CLUSTERED, by="a")
    )

    assert settings == Settings(
        entry=Entry(match="t", options={"by": "a"}), own=("zadapter.maintain.by = a",)
    )


def test_without_by_the_layout_comes_before_the_definition():
    """As in ``optimize``; a sort order is followed by a table that has no layout."""
    entry = Entry(match="t", options={"target_file_size": "1GB"})

    assert settings_of(entry, SORTED) == Settings(entry=entry)
    assert follow_definition(Settings(entry=entry), SORTED) == Settings(
        entry=replace(entry, options={"target_file_size": "1GB", "by": ["b"]}),
        own=("by = ['b'], by its sort order",),
    )


def test_secrets_are_not_shown():
    url = "https://x/logs?X-Amz-Signature=abcdef0123456789"

    settings = settings_of(FILE, with_properties(queries=url))

    assert settings.entry.options["queries"] == url
    assert "abcdef0123456789" not in settings.own[0]
