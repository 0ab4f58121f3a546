"""What a table is besides its rows: nothing is changed without a word about it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.errors import UnsupportedError
from zadapter.table.spec import (
    COMMENT,
    Definition,
    Note,
    PartitionField,
    Status,
    check,
    convert_types,
    note_carried,
    optional,
    plain,
    without_partition,
)

ATOMS = ["integer", "long", "string", "decimal(9,2)", "varchar(3)"]


def field(name, type_, *, nullable=True, **metadata):
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


def array(element, *, null=False):
    return {"type": "array", "elementType": element, "containsNull": null}


def map_(key, value, *, null=False):
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": null}


def types():
    """Types of Spark, as its JSON has them."""
    return st.recursive(
        st.sampled_from(ATOMS),
        lambda inner: st.one_of(
            st.builds(array, inner, null=st.booleans()),
            st.builds(map_, inner, inner, null=st.booleans()),
            st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3).map(
                lambda of: struct(
                    *(field(f"f{n}", t, nullable=null) for n, (t, null) in enumerate(of))
                )
            ),
        ),
        max_leaves=6,
    )


def atoms(type_):
    if isinstance(type_, str):
        return [type_]
    inner = [each["type"] for each in type_.get("fields", ())]
    inner += [type_[w] for w in ("elementType", "keyType", "valueType") if w in type_]
    return [atom for each in inner for atom in atoms(each)]


def nullables(type_):
    """What says of each place in a type, from outside to inside, whether it may be null."""
    if isinstance(type_, str):
        return []
    own = [type_[word] for word in ("containsNull", "valueContainsNull") if word in type_]
    inner = [each["type"] for each in type_.get("fields", ())]
    inner += [type_[w] for w in ("elementType", "keyType", "valueType") if w in type_]
    own += [each["nullable"] for each in type_.get("fields", ())]
    return own + [said for each in inner for said in nullables(each)]


def of(*types_, **said):
    columns = tuple(field(f"c{n}", type_) for n, type_ in enumerate(types_))
    return Definition(columns=columns, **said)


@given(types())
def test_types_that_stay_leave_no_word(type_):
    assert convert_types(of(type_), lambda atom: atom) == of(type_)


@given(types())
def test_each_atomic_type_is_changed_however_deep(type_):
    """And nothing else of the type is."""
    changed = convert_types(of(type_), lambda atom: f"{atom}!")

    (made,) = changed.columns
    assert atoms(made["type"]) == [f"{atom}!" for atom in atoms(type_)]
    assert nullables(made["type"]) == nullables(type_)


@given(types())
def test_each_change_is_said_once_a_column(type_):
    there = set(atoms(type_))

    items = convert_types(of(type_), {"integer": "long"}.get).items

    assert [item.how for item in items if item.status is Status.TRANSLATED] == (
        ["integer becomes long"] if "integer" in there else []
    )
    assert len([item for item in items if item.status is Status.REFUSED]) == len(
        there - {"integer"}
    )
    assert {item.what for item in items} <= {"column c0"}


def test_types_without_a_match_are_refused_and_stay():
    """So that what follows can go on, and say all that is refused at once."""
    nested = struct(field("x", array("variant")))

    made = convert_types(of(nested), {}.get)

    assert made.columns == of(nested).columns
    assert made.refused == [
        Note("column c0", Status.REFUSED, "type variant is not supported; cast or omit the column")
    ]


@given(types(), st.booleans())
def test_within_arrays_and_maps_all_may_be_null(type_, deep):
    made = optional(type_, deep=deep)

    assert atoms(made) == atoms(type_)
    if deep:
        assert all(nullables(made))
    assert optional(made, deep=deep) == made


def test_fields_of_structs_outside_of_arrays_stay_as_they_are():
    inner = struct(field("x", "long", nullable=False), field("y", array("long")))

    made = optional(struct(field("s", inner, nullable=False), field("m", map_("long", inner))))

    (kept, looser) = made["fields"]
    assert not kept["nullable"]
    assert [each["nullable"] for each in kept["type"]["fields"]] == [False, True]
    assert kept["type"]["fields"][1]["type"]["containsNull"]
    assert looser["type"]["valueContainsNull"]
    assert [each["nullable"] for each in looser["type"]["valueType"]["fields"]] == [True, True]


def test_of_what_engines_note_the_comments_stay():
    """At every depth; of types of users, what they are made of."""
    noted = {COMMENT: "why", "delta.columnMapping.id": 7}
    deep = field("x", {"type": "udt", "class": "a.B", "sqlType": "string"}, **noted)

    (made,) = plain([field("a", array(map_("string", struct(deep))), **noted)])

    assert made["metadata"] == {COMMENT: "why"}
    assert made["type"]["elementType"]["valueType"]["fields"] == [
        field("x", "string", **{COMMENT: "why"})
    ]


def test_fields_without_metadata_have_none():
    (made,) = plain([{"name": "a", "type": "long", "nullable": True}])

    assert made == field("a", "long")


def test_partitions_that_go_are_said_as_they_were_made():
    cut = (
        PartitionField("d", ("d",)),
        PartitionField("t_day", ("t",), "day"),
        PartitionField("s.x", ("s", "x y")),
    )

    made = without_partition(of("long", partition=cut), {"t_day", "s.x"}, "so it is")

    assert [each.name for each in made.partition] == ["d"]
    assert [(item.what, item.status, item.how) for item in made.items] == [
        ("partition field day(t)", Status.TRANSLATED, "not a partition field: so it is"),
        ("partition field s.`x y`", Status.TRANSLATED, "not a partition field: so it is"),
    ]


def test_what_is_carried_is_listed_but_not_what_is_lost():
    """A property that the new format takes for its own is not carried."""
    properties = {"a": "1", "delta.x": "2"}
    cut = PartitionField("b", ("c1",), "bucket[4]")
    before = of("long", "long", properties=properties, comment="all", partition=(cut,))
    said = (field("c0", "long", comment="why"), field("c1", "long"))
    after = Definition(
        columns=said,
        partition=(cut,),
        comment="all",
        items=(Note("property delta.x", Status.LOST),),
    )

    found = note_carried(before, after)

    assert {item.status for item in found} == {Status.CARRIED}
    assert [item.what for item in found] == [
        "2 columns",
        "1 column comments",
        "partition field bucket[4](c1)",
        "property a",
        "table comment",
    ]


def test_all_that_is_refused_is_named():
    refused = [Note("a", Status.REFUSED, "so"), Note("b", Status.REFUSED, "and so")]
    definition = of("long").with_items(refused[0], Note("c", Status.LOST, "gone"), refused[1])

    with pytest.raises(UnsupportedError, match=r"t cannot be migrated to delta: a: so; b: and"):
        check(definition, "t", "delta")


def test_what_is_lost_or_translated_is_no_obstacle():
    items = [Note("a", status) for status in Status if status is not Status.REFUSED]

    assert check(of("long").with_items(*items), "t", "delta") is None


def test_columns_are_the_same_whatever_is_said_of_them():
    """But not under another id, name or type: that is another column."""
    said = {"name": "a", "type": "long", "nullable": True, "metadata": {}}
    first = Definition(columns=(said,), ids=("a 1",))
    commented = said | {"nullable": False, "metadata": {"comment": "x"}}

    assert replace(first, columns=(commented,)).digest == first.digest
    others = [
        replace(first, ids=("a 2",)),
        replace(first, columns=(said | {"name": "b"},)),
        replace(first, columns=(said | {"type": "integer"},)),
    ]
    assert len({first.digest, *(each.digest for each in others)}) == 4
