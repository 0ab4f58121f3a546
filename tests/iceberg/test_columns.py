"""Columns and partition fields, from the spec's JSON."""

import pytest

from zadapter.errors import UnsupportedError
from zadapter_iceberg.columns import Column, fields, types

TABLE = {("u",): Column(1, "uuid"), ("n",): Column(2, "long")}


def spec(*transforms, source=1):
    return {
        "fields": [
            {"name": f"f{at}", "transform": each, "source-id": source, "field-id": 1000 + at}
            for at, each in enumerate(transforms)
        ]
    }


def test_the_bucket_of_a_uuid_is_that_of_its_bytes():
    """Spark's text of it has another hash."""
    (field,) = fields(spec("bucket[4]"), TABLE)

    assert field.expression == "zadapter_iceberg.system.bucket(4, unhex(replace(`u`, '-', '')))"
    assert not field.is_uuid


def test_fields_keep_their_ids_and_places_beside_void_ones():
    """By these their values are found in manifests."""
    found = fields(spec("void", "identity", "bucket[4]"), TABLE)

    assert [(each.id, each.position, each.is_uuid) for each in found] == [
        (1001, 1, True),
        (1002, 2, False),
    ]


@pytest.mark.parametrize("transform", ["zorder", "bucket", "truncate[x]", "sorted_bucket[4]"])
def test_an_unknown_transform_is_refused(transform):
    """By the field's name, with what to do."""
    with pytest.raises(UnsupportedError, match=r"'f0' has the unknown transform .* DROP"):
        fields(spec(transform), TABLE)


def test_types_are_found_at_any_depth():
    """Without their parameters."""
    schema = {
        "type": "struct",
        "fields": [
            {"name": "d", "type": "decimal(9, 2)"},
            {"name": "l", "type": {"type": "list", "element": "geometry(srid:1)"}},
            {
                "name": "m",
                "type": {
                    "type": "map",
                    "key": "fixed[4]",
                    "value": {"type": "struct", "fields": [{"name": "t", "type": "time"}]},
                },
            },
        ],
    }

    assert dict(types(schema)) == {
        (): "struct",
        ("d",): "decimal",
        ("l",): "list",
        ("l", "element"): "geometry",
        ("m",): "map",
        ("m", "key"): "fixed",
        ("m", "value"): "struct",
        ("m", "value", "t"): "time",
    }
