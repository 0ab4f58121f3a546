"""Java's classes and collections, with no more questions to the JVM than needed."""

import pytest
from py4j.java_gateway import JavaClass
from pyspark.errors.exceptions import captured

from zadapter.spark.jvm import scala
from zadapter.spark.jvm.java_classes import java_classes


def test_a_class_is_one_question(spark, sent):
    """Its packages are none: the JVM would search all jars for each. It is not asked again."""
    found = [java_classes(spark).java.util.zip.CRC32C for _ in range(2)]

    assert all(isinstance(each, JavaClass) for each in found)
    assert len(sent) == 1


def test_a_static_method_is_asked_for_once(spark, sent):
    """Nor is Scala's only instance of an object; a field may change, and is."""
    jvm = java_classes(spark)
    for _ in range(2):
        sent.clear()
        found = jvm.java.lang.Math.abs(-3), jvm.java.lang.Integer.MAX_VALUE

    assert found == (3, 2**31 - 1)
    assert len(sent) == 2
    assert callable(jvm.PythonRDD.runJob)  # PySpark imports its package
    assert jvm.scala.Option.apply(None).isEmpty()


@pytest.mark.parametrize(
    "name", ["java.util.ArrayList", "scala.Option", "org.apache.spark.sql.internal.SQLConf$"]
)
def test_classes_are_those_of_py4j(spark, name):
    ours, theirs = java_classes(spark), spark._jvm  # noqa: SLF001
    for part in name.split("."):
        ours, theirs = getattr(ours, part), getattr(theirs, part)

    assert isinstance(ours, JavaClass)
    assert ours._fqn == theirs._fqn == name  # noqa: SLF001


def test_a_class_that_does_not_exist_is_no_class(spark):
    assert not isinstance(java_classes(spark).org.apache.spark.NoSuchThing, JavaClass)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_collections_are_read_without_an_exception(spark, monkeypatch, count):
    """PySpark converts each one at length, also that which ends an iteration."""
    converted = []
    monkeypatch.setattr(captured, "convert_exception", converted.append)
    jvm, numbers = java_classes(spark), [str(n) for n in range(count)]
    java = scala.java_list(jvm, numbers)
    names = scala.scala_map(jvm, dict.fromkeys(numbers, "a"))

    assert list(scala.items(jvm, scala.seq(jvm, java))) == numbers
    assert scala.entries(jvm, names) == dict.fromkeys(numbers, "a")
    assert converted == []
