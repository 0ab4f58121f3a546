"""Partition folders keep their names and values, and what Spark skips stays out of a table."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zadapter
from integration.kit.lakes import settings
from tests.kit.variants import slow
from zadapter.errors import UnsupportedError
from zadapter_parquet.store import hive_names

INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
ROWS = 40
TEXTS = [
    "01001", "1001", "1.0", "-0", "NaN", "9" * 39, " 1", "%41", "b:c", "b=c", "%", "2024-1-1",
    "2024-01-01 00%3A00%3A00", "New%20York", "ü", "[x]*?", "'\"#", "__HIVE_DEFAULT_PARTITION__",
]  # fmt: skip
"""Texts of folders of one column, which is text: each is another value."""
KINDS = {
    "int": ["1", "-1", "0", "2147483647"],
    "bigint": ["1", "2147483648", "__HIVE_DEFAULT_PARTITION__"],
    "date": ["2024-01-01", "2024-02-29", "0001-01-01"],
}
"""Texts of folders of a column, by the type that Spark infers and zadapter keeps."""


def write(folder, name, values):
    """Write a file as programs other than Spark do, without a checksum file."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"v": values}), folder / name)


def make(folder, column, texts):
    """Write a table with a folder for each text, two files in each, not in order."""
    for at, text in enumerate(texts):
        shuffled = [at * ROWS + row * 7 % ROWS for row in range(ROWS)]
        for part in range(2):
            write(folder, f"{column}={text}/{part}.parquet", shuffled[part::2])
    return str(folder)


def as_texts(folder):
    """The rows by the texts of their folders, undecoded, as Python's glob finds them."""
    files = (path for path in Path(folder).rglob("*.parquet") if "_zadapter" not in path.parts)
    return sorted(
        (path.parent.name, v)
        for path in files
        for v in pq.read_table(path, partitioning=None)["v"].to_pylist()
    )


def by_spark(spark, folder, column):
    """The rows that Spark reads, partition values as text."""
    rows = spark.read.parquet(folder).selectExpr("v", f"string(`{column}`) AS p").collect()
    return sorted(((row.p, row.v) for row in rows), key=str)


def by_zadapter(spark, folder, column):
    rows = zadapter.read(folder, backend="parquet", spark=spark)
    rows = rows.selectExpr("v", f"string(`{column}`) AS p").collect()
    return sorted(((row.p, row.v) for row in rows), key=str)


def work(spark, folder):
    """Rewrite all files, delete a row of each folder, and publish; return the deleted rows."""
    asked = {"backend": "parquet", "spark": spark}
    report = zadapter.optimize(folder, by="v", force=True, **asked)
    assert report.files_added
    deleted = zadapter.delete(folder, f"v % {ROWS} = 3", spark=spark).rows_deleted
    zadapter.publish(folder, spark=spark)
    zadapter.optimize(folder, by="v", force=True, **asked)
    zadapter.restore(folder, zadapter.history(folder, spark=spark)[1].version, spark=spark)
    zadapter.publish(folder, spark=spark)
    return deleted


@pytest.mark.slow
def test_folders_of_any_text_keep_their_names(spark, tmp_path):
    """Rows stay where they were, for readers that decode names and for those that do not."""
    folder = make(tmp_path / "t", "city", TEXTS)
    before = as_texts(folder)
    with settings(spark, {INFERENCE: "false"}):
        seen = by_spark(spark, folder, "city")
    assert by_zadapter(spark, folder, "city") == seen

    new = spark.sql("SELECT 1000003L AS v, 'New York' AS city UNION ALL SELECT 1000043L, 'b:d'")
    zadapter.append(folder, new, backend="parquet", spark=spark)
    assert work(spark, folder) == len(TEXTS) + 2
    new.selectExpr("v - 1 AS v", "city").createOrReplaceTempView("new")
    zadapter.append(folder, spark.table("new"), spark=spark)
    zadapter.publish(folder, spark=spark)

    kept = [(name, v) for name, v in before if v % ROWS != 3]
    assert as_texts(folder) == sorted(
        [*kept, ("city=New%20York", 1000002), ("city=b%3Ad", 1000042)]
    )
    with settings(spark, {INFERENCE: "false"}):
        now = by_spark(spark, folder, "city")
    assert by_zadapter(spark, folder, "city") == now
    assert now == sorted(
        [*(row for row in seen if row[1] % ROWS != 3), ("New York", 1000002), ("b:d", 1000042)],
        key=str,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bigint", *slow("int", "date")])
def test_folders_whose_values_print_their_texts_have_types(spark, tmp_path, kind):
    """Those of Spark, whether the session asks it for them or for texts."""
    folder = make(tmp_path / "t", "p", KINDS[kind])
    before = as_texts(folder)
    assert dict(spark.read.parquet(folder).dtypes)["p"] == kind
    for inferred in ("false", "true"):
        with settings(spark, {INFERENCE: inferred}):
            rows = zadapter.read(folder, backend="parquet", spark=spark)
            assert dict(rows.dtypes)["p"] == kind
            assert by_zadapter(spark, folder, "p") == by_spark(spark, folder, "p")

    work(spark, folder)

    assert as_texts(folder) == [row for row in before if row[1] % ROWS != 3]


@pytest.mark.slow
def test_migrated_tables_have_the_texts_of_the_folders(spark, tmp_path):
    folder = make(tmp_path / "t", "zip", ["01001", "02134", "1001"])

    target = str(tmp_path / "new")
    zadapter.migrate(folder, to="delta", target=target, backend="parquet", spark=spark)

    zips = spark.read.format("delta").load(target).groupBy("zip").count().collect()
    assert {(row["zip"], row["count"]) for row in zips} == {
        (text, ROWS) for text in ("01001", "02134", "1001")
    }


def test_a_table_of_an_older_release_is_read_and_not_merged(spark, tmp_path, monkeypatch):
    """Its log says that zips are integers, so two folders have one value."""
    folder = make(tmp_path / "t", "zip", ["01001", "1001"])
    single = make(tmp_path / "single", "zip", ["01001", "2"])
    asked = {"backend": "parquet", "spark": spark}
    with monkeypatch.context() as older:
        older.setattr(hive_names, "column_types", lambda *_, **__: {"zip": "integer"})
        older.setattr("zadapter_parquet.operations.registration.folders_of", lambda *_: None)
        older.setattr("zadapter_parquet.log.snapshot.folders_of", _by_spark_alone)
        for table in (folder, single):
            zadapter.append(table, spark.sql("SELECT 5000003L AS v, 7 AS zip"), **asked)
    before = as_texts(single)

    assert zadapter.read(folder, spark=spark).where("zip = 1001").count() == 2 * ROWS
    for act in (zadapter.plan, zadapter.optimize):
        with pytest.raises(UnsupportedError, match="'zip=01001' and 'zip=1001'"):
            act(folder, by="v", force=True, **asked)

    assert work(spark, single) == 3
    assert as_texts(single) == [row for row in before if row[1] % ROWS != 3]


def _by_spark_alone(_, types):
    from zadapter_parquet.store.partition_folders import PartitionFolders

    return PartitionFolders(types=types)


@pytest.fixture
def database(spark, tmp_path):
    spark.sql("CREATE DATABASE folders")
    yield "folders"
    spark.sql("DROP DATABASE folders CASCADE")


def test_a_path_of_a_table_of_the_catalog_has_its_types(spark, database, tmp_path):
    """Whether its texts look like numbers or not."""
    name, folder = f"{database}.t", f"{tmp_path}/a table"
    spark.sql(
        f"CREATE TABLE {name} (v BIGINT, p STRING, q SMALLINT) USING parquet "
        f"PARTITIONED BY (p, q) LOCATION '{folder}'"
    )
    spark.range(200).selectExpr("id * 7 % 200 AS v", "string(id % 3)", "id % 2").write.insertInto(
        name
    )
    before = sorted(map(str, spark.table(name).collect()))

    rows = zadapter.read(f"file:{folder}".replace(" ", "%20"), backend="parquet", spark=spark)
    assert dict(rows.dtypes) == {"v": "bigint", "p": "string", "q": "smallint"}
    work(spark, folder)
    spark.sql(f"REFRESH TABLE {name}")

    assert len(before) - spark.table(name).count() == 5
    assert set(map(str, spark.table(name).collect())) < set(before)
    rows = zadapter.read(name, spark=spark)
    assert sorted(map(str, rows.collect())) == sorted(map(str, spark.table(name).collect()))
    named = rf"is a partition of `spark_catalog`\.`{database}`\.`t`"
    with pytest.raises(UnsupportedError, match=named):
        zadapter.plan(f"{folder}/p=1/q=1", by="v", backend="parquet", spark=spark)


@pytest.mark.parametrize(
    ("clauses", "says"),
    [
        ("CLUSTERED BY (v) INTO 2 BUCKETS", "bucketed"),
        ("CLUSTERED BY (v) SORTED BY (v) INTO 2 BUCKETS", "bucketed"),
        ("OPTIONS (pathGlobFilter '*.parquet')", "the option pathglobfilter"),
    ],
)
def test_a_path_of_a_table_that_cannot_be_kept_is_refused(spark, database, tmp_path, clauses, says):
    folder = f"{tmp_path}/t"
    spark.sql(f"CREATE TABLE {database}.t (v BIGINT) USING parquet {clauses} LOCATION '{folder}'")
    spark.range(50).write.insertInto(f"{database}.t")

    for table in (folder, f"parquet.`{folder}`"):
        with pytest.raises(UnsupportedError, match=says):
            zadapter.plan(table, by="v", backend="parquet", spark=spark)
    assert not Path(folder, "_zadapter").exists()


def test_the_rows_are_those_that_spark_reads(spark, tmp_path):
    """Not those of hidden or empty files; files need no suffix."""
    folder = tmp_path / "t"
    for name in ("a.parquet", "b", "_c=1.parquet"):
        write(folder, name, [1, 2])
    for name in (
        "_metadata",
        "_d.parquet",
        ".e.parquet",
        "f._COPYING_",
        "_old/g.parquet",
        "_temporary/0/h",
    ):
        write(folder, name, [3])
    for name in ("z.parquet", "_SUCCESS"):
        (folder / name).touch()
    (folder / "empty").mkdir()
    seen = spark.read.parquet(str(folder)).count()

    assert zadapter.read(folder, backend="parquet", spark=spark).count() == seen == 6
    zadapter.optimize(folder, by="v", backend="parquet", force=True, spark=spark)
    zadapter.publish(folder, spark=spark)
    assert spark.read.parquet(str(folder)).count() == 6
    duckdb.sql(f"FROM '{folder}/part-*.parquet'").fetchall()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (["a.parquet", "old/a.parquet"], "the folder 'old'"),
        (["a.parquet", "2020/01/a.parquet"], "the folder '2020'"),
        (["a.parquet", "b.parquet/a"], r"the folder 'b\.parquet'"),
        (["a.parquet", "p=1/a.parquet"], "a.parquet is in the folder itself"),
        (["p=1/a.parquet", "backup/p=1/a.parquet"], "the folder 'backup'"),
        (["a.parquet", "_spark_metadata/0"], "_spark_metadata"),
        (["a.parquet", "b/_zadapter/log/0.json"], "of a table of zadapter"),
        (["a.parquet", "b/_delta_log/0.json"], "of a table of Delta"),
    ],
)
def test_folders_that_spark_skips_are_refused_by_name(spark, tmp_path, files, says):
    """Before anything is written, and with what to do."""
    for name in files:
        write(tmp_path / "t", name, [1, 2])

    for act in (zadapter.plan, zadapter.optimize):
        with pytest.raises(UnsupportedError, match=says) as refused:
            act(tmp_path / "t", by="v", backend="parquet", spark=spark)
        assert any(word in str(refused.value) for word in ("move", "pass"))
    assert not (tmp_path / "t" / "_zadapter").exists()


@pytest.mark.parametrize("target", ["a.parquet", "p=1"])
def test_links_are_refused_by_name(spark, tmp_path, target):
    """Spark reads the rows under both names, and deleting one would take both."""
    folder = tmp_path / "t"
    write(folder, "p=1/a.parquet" if target == "p=1" else target, [1])
    Path(folder / target.replace("1", "2").replace("a", "b")).symlink_to(target)

    with pytest.raises(UnsupportedError, match=r"(p=2|b\.pbrquet) is a symbolic link.*remove"):
        zadapter.plan(folder, by="v", backend="parquet", spark=spark)
