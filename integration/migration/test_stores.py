"""Tables that lie elsewhere than on local disk, and are known to other catalogs."""

from uuid import uuid4

import pytest

import zadapter
from integration.iceberg.catalogs.rest import catalog_server
from integration.migration.tables import settings, texts
from integration.parquet.stores.hdfs import file_system
from zadapter.errors import UsageError


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory):
    """The URI of an empty HDFS."""
    with file_system(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


@pytest.fixture(scope="module")
def rest(spark, tmp_path_factory):
    """A namespace of a REST catalog."""
    with catalog_server(tmp_path_factory.mktemp("rest")) as port:
        said = {
            "spark.sql.catalog.rest": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.rest.type": "rest",
            "spark.sql.catalog.rest.uri": f"http://localhost:{port}",
        }
        with settings(spark, said):
            spark.sql("CREATE NAMESPACE rest.db")
            yield "rest.db"


def rows_of(lakes, format_, table):
    if format_ == "iceberg":
        return texts(lakes.spark.read.format("iceberg").load(table).toArrow())
    return texts(lakes.load(format_, table).toArrow())


MODES = [("delta", "copy"), ("delta", "in_place"), ("iceberg", "copy"), ("iceberg", "in_place")]


@pytest.mark.slow
@pytest.mark.parametrize(("to", "mode"), MODES)
def test_tables_are_made_on_hdfs_and_come_back(lakes, spark, hdfs, to, mode):
    """Whatever the store is called by, they do not come to lie within one another."""
    files, target = (f"{hdfs}/lake/{uuid4().hex}" for _ in range(2))
    rows = spark.range(100).selectExpr("id", "id % 3 AS p")
    rows.repartition(3).write.partitionBy("p").parquet(files)

    with pytest.raises(UsageError, match="overlap"):
        lakes.migrate("parquet", files, to, f"{files}/inner")
    report = lakes.migrate("parquet", files, to, target, mode=mode)
    back = lakes.migrate(to, target, "parquet", f"{hdfs}/lake/{uuid4().hex}")

    assert (report.proof.rows, report.mode.value) == (100, mode)
    assert back.proof.checksum == report.proof.checksum
    assert rows_of(lakes, to, target) == texts(rows.toArrow())


@pytest.mark.slow
def test_a_rest_catalog_learns_of_a_table_once(lakes, spark, rest):
    """All at once, and of what was appended since."""
    table, name = lakes.make("delta", spark.range(100)), f"{rest}.moved"
    lakes.migrate("delta", table, "iceberg", name)
    lakes.append("delta", table, spark.range(5))

    report = lakes.migrate("delta", table, "iceberg", name, follow=True)

    assert report.proof.rows == 5
    assert spark.table(name).count() == 105
    again = zadapter.migrate(
        name, to="delta", target=lakes.name("delta"), backend="iceberg", spark=spark
    )
    assert again.proof.rows == 105
