"""A session with the releases of one cell. ``integration/conftest.py`` is not loaded."""

import os

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

import zadapter.spark
from integration.matrix.cells import CELLS, PATCHES
from tests.kit import jvm
from zadapter.backend.plugins import formats
from zadapter.spark.settings import EXCLUDES, PACKAGES

jvm.use_fast_compiler()


@pytest.fixture(scope="session")
def cell():
    """The cell that ``ZADAPTER_CELL`` names."""
    return next(cell for cell in (*CELLS, *PATCHES) if cell.name == os.environ["ZADAPTER_CELL"])


@pytest.fixture(scope="session")
def packages(cell):
    """Settings that load the libraries of the cell."""
    excludes = [e for name in cell.versions for e in formats()[name].library.excludes]
    coordinates = [package for build in cell.builds for package in build.packages]
    lists = {PACKAGES: coordinates, EXCLUDES: excludes}
    return {key: ",".join(items) for key, items in lists.items() if items}


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory):
    """The folder of the Iceberg catalog ``ice``."""
    return tmp_path_factory.mktemp("ice")


class Folders:
    """A Hadoop catalog, as pyiceberg sees it."""

    def __init__(self, warehouse):
        self._warehouse = warehouse

    def load_table(self, name):
        """Load the newest metadata of a table."""
        metadata = self._warehouse.joinpath(*name.split("."), "metadata")
        version = (metadata / "version-hint.text").read_text().strip()
        return StaticTable.from_metadata(str(metadata / f"v{version}.metadata.json"))


def by_hadoop(cell):
    """Whether SQLite cannot be shared by two sessions, see ``zadapter_iceberg.local_catalog``."""
    return cell.versions["iceberg"].startswith("1.10.")


@pytest.fixture(scope="session")
def catalog(spark, warehouse, cell):
    """The Iceberg catalog ``ice``, as pyiceberg sees it."""
    if "iceberg" not in cell.versions:
        pytest.skip("Iceberg has no library for this Spark")
    if by_hadoop(cell):
        return Folders(warehouse)
    return SqlCatalog(
        "ice", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}"
    )


def settings_of(cell, warehouse):
    """The settings of the catalog ``ice``."""
    if "iceberg" not in cell.versions:
        return {}
    jdbc = {
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{warehouse}/catalog.db",
        ".jdbc.schema-version": "V1",
    }
    options = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".warehouse": f"file://{warehouse}",
        **({".type": "hadoop"} if by_hadoop(cell) else jdbc),
    }
    return {f"spark.sql.catalog.ice{key}": value for key, value in options.items()}


@pytest.fixture(scope="session")
def spark(tmp_path_factory, warehouse, cell, packages):
    """A small session with the libraries of the cell."""
    session = zadapter.spark.session(
        {
            **packages,
            **settings_of(cell, warehouse),
            "spark.master": "local[2]",
            "spark.default.parallelism": "2",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.driver.memory": "2g",
        },
        formats=[*cell.versions],
    )
    yield session
    session.stop()
