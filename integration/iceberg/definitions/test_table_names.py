"""A name means the table that Spark reads by it."""

from contextlib import closing, contextmanager

import pytest

import zadapter
from tests.kit.variants import slow
from zadapter import errors
from zadapter_iceberg import IcebergBackend

NASTY = ("a.b", "a`b", "a-b", "select", "1t", "a/b", "ü ß", "日本", "a#b%41", "'q\"", "branch_main")
"""Names that have to be quoted, or that look like something else."""


def quoted(*parts):
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def make(spark, name):
    """Create a table whose only row is its name."""
    spark.sql(f"CREATE TABLE {name} (name STRING) USING iceberg")
    spark.createDataFrame([(name,)], ["name"]).writeTo(name).append()


def by_zadapter(spark, text):
    """The only row of the table that zadapter finds."""
    with closing(IcebergBackend(spark)) as backend:
        snapshot = backend.snapshot(text)
        row = backend.read(snapshot, backend.files(snapshot)).first()
        assert backend.scan(snapshot).first() == row
        return row.name


@contextmanager
def using(spark, name):
    """Make a catalog and namespace the current ones."""
    spark.sql(f"USE {name}")
    try:
        yield
    finally:
        spark.sql("USE spark_catalog.default")


@pytest.fixture(scope="module")
def tables(spark):
    """Tables beside namespaces, metadata tables and branches of their names."""
    for namespace in ("ice.n", "ice.n.sub", "ice.n.sub.files", "ice.ice", "ice.iceberg"):
        spark.sql(f"CREATE NAMESPACE {namespace}")
    names = (
        *("ice.n.sub.files", "ice.n.sub", "ice.n.sub.t", "ice.n.sub.branch_x", "ice.n.sub.tag_y"),
        *("ice.n.sub.files.z", "ice.n.t", "ice.ice.t", "ice.iceberg.t", "ice.iceberg.`a/b`"),
    )
    for name in names:
        make(spark, name)
    for branch in ("x", "y"):
        spark.sql(f"ALTER TABLE ice.n.sub CREATE BRANCH {branch}")
    return names


@pytest.mark.parametrize(
    ("use", "text"),
    [
        ("spark_catalog.default", "ice.n.sub"),
        ("spark_catalog.default", "ice.n.sub.t"),
        ("spark_catalog.default", "ice.n.sub.branch_x"),
        ("spark_catalog.default", "ice.n.sub.branch_y"),
        ("spark_catalog.default", "ice.n.sub.tag_y"),
        ("spark_catalog.default", "ice.n.sub.files"),
        ("spark_catalog.default", "ice.n.sub.files.z"),
        ("spark_catalog.default", "`ice`.`n`.`sub`.`t`"),
        ("spark_catalog.default", " ice . n.t -- the table"),
        ("ice.n", "t"),
        ("ice.n", "sub"),
        ("ice.n.sub", "t"),
        ("ice.n.sub", "branch_x"),
        ("ice.n", "n.sub.t"),
        ("ice.n", "ice.n.t"),
        ("ice.n", "ice.ice.t"),
        ("ice.n", "iceberg.t"),
        ("ice.n", "iceberg.`t`"),
        ("ice.n", "iceberg.`a/b`"),
        ("ice.n", "Iceberg.`a/b`"),
        ("ice.n", "spark_catalog.default.t"),
        ("ice.n", "n.T"),
        ("ice.n", "ice.t"),
        ("ice.n", "nowhere.t"),
    ],
)
def test_a_name_is_what_spark_reads(spark, tables, use, text):
    """Or nothing, where Spark reads nothing or a past snapshot."""
    with using(spark, use):
        try:
            (expected,) = spark.table(text).head(1)
        except Exception:  # noqa: BLE001 - there is no such table
            expected = None
        if expected is None:
            with pytest.raises(errors.UnknownTableError):
                by_zadapter(spark, text)
        else:
            assert by_zadapter(spark, text) == expected.name


@pytest.mark.slow
def test_the_table_of_a_branch_s_name_is_rewritten(lake, spark, tables):
    """And neither the branch of the table of the namespace's name, nor that table."""
    spark.sql("INSERT INTO ice.n.sub.branch_x VALUES ('more')")
    rows = spark.table("ice.n.sub.branch_x").collect()

    report = zadapter.optimize("ice.n.sub.branch_x", by=["name"], force=True, spark=spark)

    assert report.rows_added == len(rows) == 2
    assert lake.java("ice.n.sub.branch_x").currentSnapshot().operation() == "replace"
    assert sorted(spark.table("ice.n.sub.branch_x").collect()) == sorted(rows)
    assert lake.java("ice.n.sub").currentSnapshot().operation() == "append"


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NASTY[:4], *slow(*NASTY[4:])])
def test_a_name_in_backticks(spark, tables, name):
    """In a namespace of that name, too, and as the target of a migration."""
    spark.sql(f"CREATE NAMESPACE ice.n.{quoted(name)}")
    for text in (quoted("ice", "n", name), quoted("ice", "n", name, name)):
        make(spark, text)

        assert by_zadapter(spark, text) == text
        with using(spark, "ice.n"):
            assert by_zadapter(spark, text.removeprefix("`ice`.")) == text
        target = f"{text[:-1]}2`"
        with closing(IcebergBackend(spark)) as backend:
            definition = backend.define(backend.snapshot(text))
            assert backend.pending(target, definition, None).identifier == target


def test_another_reading_of_a_short_name_is_refused(spark, tables):
    """Spark reads a view, or a table of the built-in catalog, by the name."""
    spark.sql("CREATE DATABASE IF NOT EXISTS n")
    try:
        assert by_zadapter(spark, "n.t") == "ice.n.t"
        spark.sql("CREATE TABLE n.t (name STRING) USING parquet")
        with pytest.raises(errors.UnknownTableError, match="a table of parquet in spark_catalog"):
            by_zadapter(spark, "n.t")
        with closing(IcebergBackend(spark)) as backend:
            definition = backend.define(backend.snapshot("ice.n.t"))
            with pytest.raises(errors.UsageError, match="a table of parquet in spark_catalog"):
                backend.pending("n.t", definition, None)
        spark.range(1).createOrReplaceTempView("t")
        with using(spark, "ice.n"), pytest.raises(errors.UnknownTableError, match="is a view"):
            by_zadapter(spark, "t")
    finally:
        spark.catalog.dropTempView("t")
        spark.sql("DROP DATABASE n CASCADE")


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_the_current_catalog_is_not_passed_over(spark, tables, format_):
    """By a table of the built-in catalog, which Spark does not read by the name."""
    spark.sql("CREATE DATABASE IF NOT EXISTS n")
    try:
        spark.sql(f"CREATE TABLE n.t USING {format_} AS SELECT 1 AS name")
        with using(spark, "ice.n"):
            with pytest.raises(errors.UnknownTableError, match="a table of iceberg in ice"):
                zadapter.plan("n.t", by=["name"], backend=format_, spark=spark)
            assert "iceberg" in str(zadapter.plan("n.t", by=["name"], spark=spark))
    finally:
        spark.sql("DROP DATABASE n CASCADE")


@pytest.mark.parametrize("text", ["my-db.t", "a..b", "a b", "ice.n.`t", "t;"])
def test_what_spark_does_not_take_for_a_name(spark, tables, text):
    """The error says how a name is quoted."""
    with pytest.raises(errors.UnknownTableError, match="backticks"):
        by_zadapter(spark, text)


def test_a_path_stays_a_path(lake, spark, tmp_path):
    """However it is spelled."""
    folder = tmp_path / "o`dd.t"
    rows = spark.range(1).selectExpr("'by path' AS name")
    tables = spark._jvm.org.apache.iceberg.hadoop.HadoopTables(  # noqa: SLF001
        spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    )
    schema = spark._jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(  # noqa: SLF001
        rows._jdf.schema()  # noqa: SLF001
    )
    tables.create(schema, str(folder))
    rows.write.format("iceberg").mode("append").save(str(folder))
    doubled = str(folder).replace("`", "``")

    for text in (
        str(folder),
        f"file:{folder}",
        f"iceberg.`{doubled}`",
        f"ICEBERG.`file:{doubled}`",
    ):
        assert by_zadapter(spark, text) == "by path"
