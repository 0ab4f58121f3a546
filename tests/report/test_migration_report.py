"""What a migration tells people."""

from dataclasses import replace

from zadapter.report.migration_report import Migration, Mode, Proof
from zadapter.table.spec import Note, Status

PROOF = Proof(
    rows=12_345, checksum="ab", columns=3, filters=24, share_source=0.5, share_target=0.125
)
PLAN = Migration(
    table="old",
    format="delta",
    source_version=7,
    target="new",
    to="iceberg",
    mode=Mode.COPY,
    why="",
    items=(),
    layout="adaptive by a, kept",
    file_count=2,
    size=3 << 20,
    seconds={},
)


def test_a_plan_says_that_nothing_is_committed():
    facts = PLAN.facts()

    assert facts == {
        "from": "old (delta, version 7)",
        "to": "new (iceberg)",
        "mode": "copy",
        "layout": "adaptive by a, kept",
        "files": "2 of 3 MB",
        "committed": "nothing",
    }


def test_a_migration_says_what_it_has_proven():
    done = replace(
        PLAN,
        mode=Mode.IN_PLACE,
        why="since it is safe",
        target_version=0,
        proof=PROOF,
        notes=("x keeps it", "y too"),
        seconds={"plan": 1.25, "total": 2.0},
    )

    assert list(done.facts().items())[2:] == [
        ("mode", "in_place, since it is safe"),
        ("layout", "adaptive by a, kept"),
        ("files", "2 of 3 MB"),
        ("shared files", "x keeps it; y too"),
        ("rows", "12,345 in both"),
        ("checksum", "ab in both"),
        ("schema", "3 columns as defined"),
        ("filters", "24 match the same rows; they read 50.0% of the rows before, 12.5% now"),
        ("seconds", "plan 1.2, total 2.0"),
        ("committed", "version 0"),
    ]


def test_items_are_told_by_their_fates():
    """In the order of fates, not that in which they were found."""
    items = (
        Note("a", Status.REFUSED, "no"),
        Note("b", Status.CARRIED),
        Note("c", Status.LOST, "gone"),
        Note("d", Status.CARRIED, "as it is"),
    )
    facts = replace(PLAN, items=items).facts()

    assert [(status.value, facts.get(status.value)) for status in Status] == [
        ("carried", "b; d: as it is"),
        ("translated", None),
        ("lost", "c: gone"),
        ("refused", "a: no"),
    ]
    assert [key for key in facts if key in {"carried", "lost", "refused"}] == [
        "carried",
        "lost",
        "refused",
    ]


def test_what_is_refused_cannot_be_made():
    assert not PLAN.refused
    assert not replace(PLAN, items=(Note("a", Status.LOST),)).refused
    assert replace(PLAN, items=(Note("a", Status.REFUSED),)).refused


def test_its_text_has_a_line_a_fact():
    lines = str(replace(PLAN, proof=PROOF, target_version=3)).splitlines()

    assert len(lines) == len(replace(PLAN, proof=PROOF, target_version=3).facts())
    assert lines[0].startswith("from ")
    assert lines[-1] == "committed  version 3"
