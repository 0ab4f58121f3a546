"""A migrated table has the properties of its source, but for those that its report calls lost."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.kit.builders import snapshot
from tests.parquet.kit.log import ENTRY
from zadapter.table.spec import COMMON, FILE_SIZE, OWN, RETENTION, Definition, Status, owner_of
from zadapter_delta.table import specs as delta
from zadapter_iceberg.table import specs as iceberg
from zadapter_parquet.log.snapshot import Version
from zadapter_parquet.operations import loading as parquet

RESERVED = [
    "owner",
    "location",
    "comment",
    "format-version",
    "uuid",
    "zadapter.team",
    *COMMON,
    *OWN,
]
WORDS = [
    "owner",
    "team",
    "delta",
    "Delta",
    "write",
    "read",
    "commit",
    "schema",
    "format",
    "gc",
    "zadapter",
]
keys = (
    st.sampled_from(RESERVED)
    | st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).flatmap(
        lambda words: st.sampled_from([".", "-", "_", " "]).map(lambda mark: mark.join(words))
    )
    | st.text(max_size=6)
)
values = st.sampled_from(["", "x", "'\"`", "a\nb", "\u00fc", "${env:HOME}", "7"]) | st.text(
    max_size=6
)
ACCEPT = {
    "delta": delta.adapt_definition,
    "iceberg": iceberg.adapt_definition,
    "parquet": parquet.adapt_definition,
}


def lost(definition):
    return {
        item.what.removeprefix("property ")
        for item in definition.items
        if item.status is Status.LOST
    }


def of_delta(properties):
    said = SimpleNamespace(
        configuration=lambda: properties,
        schemaString=lambda: json.dumps({"type": "struct", "fields": []}),
        description=lambda: None,
    )
    handle = SimpleNamespace(snapshot=SimpleNamespace(metadata=lambda: said))
    return delta.define(SimpleNamespace(dict=dict), replace(snapshot(pa.schema([])), handle=handle))


def of_parquet(properties):
    entry = replace(ENTRY, properties=properties)
    handle = SimpleNamespace(version=Version(entry=entry))
    return parquet.define(replace(snapshot(pa.schema([])), handle=handle))


@pytest.mark.parametrize("to", ACCEPT)
@given(properties=st.dictionaries(keys, values))
@example(properties={"owner.team": "x", "schema.registry": "", "commit.sha": "y", "DELTA.x": "z"})
def test_properties_are_kept_or_called_lost(to, properties):
    """In all directions, with their values."""
    before = of_delta(properties)
    made = ACCEPT[to](before)

    gone = lost(made) | OWN
    assert {k: v for k, v in properties.items() if k not in gone} == made.properties
    assert all(owner_of(key) or key.lower().startswith("delta.") for key in lost(before))
    # a further migration loses nothing more, except what the next format reserves itself
    again = of_parquet(ACCEPT["parquet"](made).properties)
    assert again.properties == ACCEPT["parquet"](made).properties


@given(properties=st.dictionaries(keys, values))
def test_a_users_property_is_never_taken_for_a_common_one(properties):
    """Formats know a file size and a retention; a user may have properties that are called so."""
    assert not COMMON & of_delta(properties).properties.keys()


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_common_properties_travel_through_all_formats(size, seconds):
    properties = {FILE_SIZE: str(size), RETENTION: str(seconds * 1_000)}
    definition = Definition(columns=(), properties=properties)

    for accept in ACCEPT.values():
        assert accept(definition).items == ()
        assert {*accept(definition).properties.values()} & {str(size), *properties.values()}
