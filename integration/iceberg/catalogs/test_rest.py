"""A REST catalog, and what becomes of a commit when the network or the catalog fails."""

from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog

from integration.iceberg.catalogs.rest import failing_catalog
from zadapter.base.commit_attempts import Backoff
from zadapter.errors import ConflictError, UnknownOutcomeError, UnsupportedError
from zadapter_iceberg import IcebergBackend

AT_ONCE = Backoff(attempts=3, initial=0.0)
TABLE = "rest.db.t"


@pytest.fixture(scope="module")
def network(spark, tmp_path_factory):
    with failing_catalog(spark, "rest", tmp_path_factory.mktemp("rest")) as network:
        spark.sql("CREATE NAMESPACE rest.db")
        yield network


@pytest.fixture
def table(spark, network):
    """2 000 rows in four files; commits are tried again once."""
    network.fates.clear()
    network.held.clear()
    spark.sql(f"DROP TABLE IF EXISTS {TABLE}")
    rows = spark.range(2_000).selectExpr("id * 7919 % 2003 AS a", "id AS b").repartition(4)
    writer = rows.writeTo(TABLE).using("iceberg").tableProperty("commit.retry.num-retries", "1")
    writer.tableProperty("commit.retry.min-wait-ms", "1").create()
    return TABLE


def rows_behind(network):
    """All rows, by pyiceberg."""
    found = RestCatalog("rest", uri=network.uri).load_table("db.t").scan().to_arrow()
    return sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))


def stored(network, which="*"):
    """Parquet files under the table, referenced or not."""
    location = RestCatalog("rest", uri=network.uri).load_table("db.t").location()
    return {str(path) for path in Path(location.removeprefix("file:")).rglob(f"{which}.parquet")}


@pytest.mark.slow
def test_a_table_is_clustered(lake, network, table):
    """As with any catalog; the second run commits nothing."""
    before = rows_behind(network)

    report = lake.optimize(table, backend="iceberg")

    assert before == rows_behind(network)
    assert report.share_after < 0.5
    assert lake.optimize(table, backend="iceberg").nothing_to_do


def test_a_catalog_that_refuses_the_write(lake, network, table):
    """It is named, and what was written goes."""
    before, files = rows_behind(network), stored(network)
    network.fates.extend(["refused"])

    with pytest.raises(UnsupportedError, match=r"rejects the commit.*refused"):
        lake.optimize(table, backend="iceberg", backoff=AT_ONCE)

    assert before == rows_behind(network)
    assert files == stored(network)


def test_an_answer_that_is_lost(lake, network, table):
    """The commit is found by its id, and nothing is deleted."""
    before = rows_behind(network)
    network.fates.extend(["lost"])

    report = lake.optimize(table, backend="iceberg", backoff=AT_ONCE)

    assert before == rows_behind(network)
    assert report.files_added > 4
    assert report.versions == (None,)


def test_races_lost_until_attempts_run_out(lake, spark, network, table):
    """New files are removed, the metadata is as it was, and caches hold no more."""
    before, files = rows_behind(network), stored(network)
    cached = IcebergBackend(spark)._jvm.tables  # noqa: SLF001
    held = cached.size()
    network.fates.extend(["outrun"] * 100)

    with pytest.raises(ConflictError):
        lake.optimize(table, backend="iceberg", backoff=AT_ONCE)
    network.fates.clear()

    assert before == rows_behind(network)
    assert files == stored(network)
    assert cached.size() == held
    properties = RestCatalog("rest", uri=network.uri).load_table("db.t").properties
    assert "zadapter.layout-id" not in properties


@pytest.mark.slow
def test_a_commit_that_arrives_late(lake, network, table):
    """It was given up as of unknown outcome, so its files are there when it lands after all."""
    before = rows_behind(network)
    network.fates.extend(["late"] * 100)

    with pytest.raises(UnknownOutcomeError):
        lake.optimize(table, backend="iceberg", backoff=AT_ONCE)
    network.fates.clear()
    assert before == rows_behind(network)

    codes = network.deliver()

    assert sorted(codes) == [200, *[409] * (len(codes) - 1)]
    assert before == rows_behind(network)
    assert len(stored(network, "zadapter-*/*/*")) > 4
