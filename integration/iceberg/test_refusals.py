"""Bad input: each a clear error before anything is written."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import zadapter
from integration.kit.lakes import settings
from tests.kit import extremes
from zadapter import errors
from zadapter.table import file_stats
from zadapter_iceberg import IcebergBackend


@pytest.fixture
def table(lake, spark):
    return lake.make(spark.range(100).selectExpr("id a", "id % 2 p"), "p")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ice.db.nowhere", "table not found in the Iceberg catalogs of this session: ice"),
        ("ice.nospace.t", "table not found in the Iceberg catalogs"),
        ("nocatalog.db.t", "table not found in the Iceberg catalogs"),
        ("/no/such/path", "no Iceberg table found"),
        ("{}.files", "is a metadata table"),
        ("{}.branch_nope", "unknown branch 'nope'; expected one of: main"),
        ("{}.tag_v1", "is a past snapshot"),
        ("{}.other", "table not found"),
    ],
)
def test_what_is_no_table_is_named(table, spark, name, says):
    """And what there is instead, be there catalogs of Iceberg's own making."""
    spark.read.format("iceberg").load(table)
    assert spark.conf.get("spark.sql.catalog.default_iceberg")
    with pytest.raises(errors.UnknownTableError, match=says):
        zadapter.plan(name.format(table), by="a", backend="iceberg", spark=spark)


def test_a_session_that_means_another_branch_is_refused(lake, spark, table):
    """By the table's name Spark reads and writes the branch that is to be audited."""
    lake.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    lake.sql(f"ALTER TABLE {table} CREATE BRANCH audit")
    with settings(spark, {"spark.wap.branch": "audit"}):
        for call in (zadapter.optimize, zadapter.plan):
            with pytest.raises(errors.UnsupportedError, match="branch_audit"):
                call(table, by="a", backend="iceberg", spark=spark)
        assert lake.optimize(f"{table}.branch_audit").rows_added == 100

    assert lake.optimize(table).rows_added == 100


def test_a_view_is_named(lake, spark, table):
    """It has no files of its own."""
    lake.sql(f"CREATE OR REPLACE VIEW ice.db.seen AS SELECT * FROM {table}")

    with pytest.raises(errors.UnknownTableError, match="view"):
        zadapter.plan("ice.db.seen", by="a", backend="iceberg", spark=spark)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"by": "aa"}, errors.UnknownColumnError, "did you mean 'a'"),
        ({"by": "p"}, errors.UsageError, "partition column"),
        ({"where": "nope = 1"}, errors.UnknownColumnError, "nope"),
    ],
)
def test_a_wrong_argument_is_named(lake, table, arguments, error, says):
    """As for every format."""
    with pytest.raises(error, match=says):
        lake.optimize(table, **arguments)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"write.format.default": "orc"}, "write.format.default=orc"),
        ({"encryption.key-id": "k"}, "encrypted"),
    ],
)
def test_what_cannot_be_kept_is_refused(lake, spark, table, properties, says):
    """Before anything is written."""
    for key, value in properties.items():
        lake.java(table).updateProperties().set(key, value).commit()

    with pytest.raises(errors.UnsupportedError, match=says):
        lake.optimize(table)


def test_a_version_to_come_is_refused(lake, spark):
    """Iceberg can make such tables already, but their spec is not final."""
    name = lake.make(spark.range(9).toDF("a"), format_version=4)

    with pytest.raises(errors.UnsupportedError, match="format version 4"):
        lake.optimize(name)


def test_a_name_is_found_without_its_catalog(lake, spark, table):
    """Where one Iceberg catalog has it."""
    short = table.removeprefix("ice.")

    assert lake.optimize(short).rows_added == 100
    assert lake.optimize(short, backend="iceberg").nothing_to_do


@pytest.mark.slow
def test_bounds_of_every_type_hold_what_the_files_hold(lake, spark):
    """Read from the manifests of files that Iceberg wrote: nothing is outside of its bounds."""
    nasty = extremes.table()
    rows = spark.createDataFrame(nasty, extremes.ddl(nasty.schema))
    kept = [
        F.col(f.name).cast("int").alias(f.name)
        if f.dataType.simpleString() in {"tinyint", "smallint"}
        else F.col(f.name)
        for f in rows.schema
    ]
    name = lake.make(rows.select(*kept))
    backend = IcebergBackend(spark)
    snapshot = backend.snapshot(name)
    named = [(field.name,) for field in snapshot.schema]
    columns = [parts for parts in named if parts not in snapshot.without_bounds]

    files = backend.files(snapshot, columns)

    for number in range(files.num_rows):
        held = backend.read(snapshot, files.slice(number, 1)).toArrow()
        for parts in columns:
            stats = file_stats.column(files, parts).slice(number, 1)
            low, high, nulls, *_ = stats.flatten()
            values = held[parts[0]].cast(low.type)
            assert nulls[0].as_py() == values.null_count
            regular = values.drop_null()
            if pa.types.is_floating(low.type):
                regular = regular.filter(pc.invert(pc.is_nan(regular)))
            if len(regular):
                least = pc.min_max(regular)
                assert not low[0].is_valid or pc.less_equal(low[0], least["min"]).as_py(), parts
                assert not high[0].is_valid or pc.greater_equal(high[0], least["max"]).as_py()
    backend.close()
    hashed = "bit_xor(xxhash64(*)) AS hash", "count(*) AS rows"
    before = lake.load(name).selectExpr(*hashed).first()
    for at in range(0, len(columns), 4):
        by = [parts[0] for parts in columns[at : at + 4]]
        lake.optimize(name, by=by, target_file_size="64KB")
        assert before == lake.load(name).selectExpr(*hashed).first(), by


def test_a_file_that_is_named_twice_is_reported(lake, spark):
    """Its rows count double already; a rewrite would make that permanent."""
    name = lake.make(spark.range(100).toDF("a"))
    table = lake.java(name)
    task = table.newScan().planFiles().iterator().next()
    table.newFastAppend().appendFile(task.file()).commit()
    lake.sql(f"REFRESH TABLE {name}")

    with pytest.raises(errors.UnsupportedError, match="twice"):
        lake.optimize(name)
