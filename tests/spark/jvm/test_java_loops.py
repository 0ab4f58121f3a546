"""Loops within the JVM: a call into Java takes a tenth of a millisecond, whatever it does there."""

import pytest

from zadapter.spark.jvm import scala
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.java_loops import loops_of

TEXTS = ["", "a", "bb", "", "ccc"]


@pytest.fixture
def loops(spark):
    return loops_of(spark)


@pytest.fixture
def texts(spark):
    java = java_classes(spark).java.util.ArrayList()
    for text in TEXTS:
        java.add(text)
    return java


def test_items_are_mapped_chosen_and_sorted(loops, texts):
    length = loops.method("java.lang.String", "length")
    is_empty = loops.method("java.lang.String", "isEmpty")
    to_text = loops.chain(length, loops.method("java.lang.Object", "toString"))
    found = loops.map_items(texts, length)
    loops.sort(found, loops.method("java.lang.Integer", "intValue"))

    assert list(loops.map_items(texts, to_text)) == ["0", "1", "2", "0", "3"]
    assert list(loops.select_items(texts, is_empty)) == ["", ""]
    assert list(loops.select_items(texts, loops.negate(is_empty))) == ["a", "bb", "ccc"]
    assert list(found) == [0, 0, 1, 2, 3]
    assert list(texts) == TEXTS


def test_tests_of_one_call_are_not_those_of_the_next(spark, loops, texts):
    """What has the values of a call is not kept; handles of methods alone are."""
    starts = loops.method("java.lang.String", "startsWith", "java.lang.String")
    found = java_classes(spark).java.util.ArrayList()
    for prefix in ("a", "bb"):
        test = loops.bind(starts, 1, prefix)
        either = loops.either(test, loops.method("java.lang.String", "isEmpty"))
        loops.for_each(texts.iterator(), loops.where(test, loops.adding_to(found)))

        assert list(loops.select_items(texts, test)) == [prefix]
        assert list(loops.select_items(texts, either)) == ["", *[prefix], ""]
    assert list(found) == ["a", "bb"]


def test_a_second_loop_takes_two_calls(spark, sent, texts):
    """Of which one makes the list of the results."""
    for _ in range(2):
        loops = loops_of(spark)
        length = loops.method("java.lang.String", "length")
        both = loops.chain(length, loops.method("java.lang.Object", "hashCode"))
        sent.clear()
        loops.map_items(texts, both)

    assert len(sent) == 2, sent


@pytest.mark.parametrize(
    "items", [["a b", "$x", "`c`, d"], ["a", ""], [1, 2], [], ["".join(map(chr, range(1, 32)))] * 2]
)
def test_lists_have_the_items_that_they_are_made_of(spark, items):
    """Whatever characters texts have: a list of many texts is one text to the JVM."""
    jvm = java_classes(spark)

    assert list(scala.items(jvm, scala.seq(jvm, scala.java_list(jvm, items)))) == items


def test_maps_have_the_entries_that_they_are_made_of(spark):
    jvm, entries = java_classes(spark), {"a.b": "", 'c "d"': "\u00e9\n", "e": "${f}"}

    assert scala.java_dict(jvm, scala.java_map(jvm, entries)) == entries
