"""Names of tables are split and resolved as Spark does."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zadapter.base.names import quote
from zadapter.spark.clone import scratch
from zadapter.spark.jvm import spark_names
from zadapter.spark.jvm.spark_names import Name

# the JVM has no halves of surrogate pairs; Spark's parser ends a text at no character
PARTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(PARTS)
@example(["iceberg", "db", "t"])
@example(["delta", "/path"])
@example(["a`b", "``", "c.d", " e ", "select", "1t"])
@example(["/a:b\\c", "ü", "日本", "", "-- x", "/* y */", "a\nb"])
def test_names_in_backticks_are_split_into_their_parts(spark, parts):
    """Whatever characters they have: no such name is a path."""
    assert spark_names.table_name(spark, quote(tuple(parts))) == tuple(parts)


@pytest.mark.parametrize(
    "text",
    [
        *("/tmp/t", "a/b", "./t", "C:\\t", "s3://b/k", "file:/t", "hdfs://h:1/`x`", "t/`x`"),
        *("my-db.t", "a..b", "a b", "", "`x", "1.t", "ü.t", "a`b", "`a`b", "t;", "t@v1"),
    ],
)
def test_paths_and_other_texts_are_no_names(spark, text):
    """Spark's parser refuses them."""
    assert spark_names.table_name(spark, text) is None


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("t",), Name("spark_catalog", ("default", "t"))),
        (("db", "t"), Name("spark_catalog", ("db", "t"))),
        (("SPARK_CATALOG", "db", "t"), Name("spark_catalog", ("db", "t"))),
        (("named", "db", "t"), Name("named", ("db", "t"))),
        (("named",), Name("spark_catalog", ("default", "named"))),
        (("Named", "db", "t"), Name("spark_catalog", ("Named", "db", "t"))),
    ],
)
def test_a_catalog_comes_before_a_namespace_of_its_name(spark, conf, parts, expected):
    """It is not loaded for that, and its name is compared by case."""
    conf({"spark.sql.catalog.named": "no.such.Catalog"})

    assert spark_names.resolve(spark, parts) == expected


def test_a_clone_keeps_the_current_namespace(spark):
    """Else a short name would mean another table while it is rewritten."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS iceberg.current")
    spark.sql("USE iceberg.current")
    try:
        with scratch(spark) as clone:
            assert spark_names.resolve(clone, ("t",)) == Name("iceberg", ("current", "t"))
    finally:
        spark.sql("USE spark_catalog.default")


def test_a_view_of_the_session_comes_first(spark, view):
    """As in Spark; its tables come after it."""
    view(spark.range(1), "of_a_session")

    reading = spark_names.in_session_catalog(spark, "`of_a_session`")

    assert reading.other == "a view of this session"
