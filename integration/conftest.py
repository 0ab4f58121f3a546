"""One format at a time: ``pytest integration --format delta``, or several at once."""

from collections import defaultdict
from random import Random

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import zadapter.spark
from integration.kit import s3 as servers
from tests.kit import jvm

FORMATS = ("delta", "iceberg", "parquet", "migration", "journeys")
SEVERAL = FORMATS[3:]
"""Folders whose tests are of several formats at once."""
ALL_PAIRS = {
    "test_m04_m05_m11_every_value_arrives",
    "test_m09_what_was_stopped_is_ended_by_the_next_call",
}
"""Tests of migrations that have all pairs of formats in any run."""
ALL_FORMATS = {"test_contract.py", "test_a_table_is_clustered"}
"""Tests of the common core that any run has with all formats."""

jvm.use_fast_compiler()


def pytest_addoption(parser):
    """Let the caller choose the format."""
    parser.addoption("--format", choices=FORMATS, default="delta", help="table format to test")
    parser.addoption("--sweep", type=int, metavar="N", help="N pairs of rivals, drawn of all")


def pytest_generate_tests(metafunc):
    """Have two rivals come to a rewrite: some pairs, or many more."""
    if "trial" in metafunc.fixturenames:
        module, count = metafunc.module, metafunc.config.getoption("--sweep")
        every = Random(count).sample(module.EVERY, len(module.EVERY))
        metafunc.parametrize("trial", module.SOME if count is None else every[:count], ids=str)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out the tests of other formats, and mark what CI has with some formats alone."""
    others = [f for f in FORMATS if f != config.getoption("--format")]
    marks = [mark for other in others for mark in (f"/{other}/", f"::Test{other.capitalize()}::")]
    left_out = {item for item in items if any(mark in item.nodeid for mark in marks)}
    if (chosen := config.getoption("--format")) in SEVERAL:
        left_out = {item for item in items if f"/{chosen}/" not in item.nodeid}
    pairs = known(item for item in items if "integration/migration/" in item.nodeid)
    for item in pairs | of_another_format(items):
        item.add_marker("slow")
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


def known(items):
    """Return the tests each of whose parameters has its value in an earlier test, too.

    What is read of one format and what is written to another meet in values that are the same for
    all formats, so each of both once finds what all pairs would.
    """
    seen, found = defaultdict(set), set()
    for item in items:
        values = {*map(repr, item.callspec.params.items())} if hasattr(item, "callspec") else set()
        before = seen[item.originalname]
        if values and values <= before and item.originalname not in ALL_PAIRS:
            found.add(item)
        before |= values
    return found


def of_another_format(items):
    """Return the tests of the common core whose turn it is with another format.

    They are the same code for all formats, as is what they test. Where formats differ, the contract
    says so, which each of them keeps in any run.
    """
    tests = defaultdict(lambda: defaultdict(list))
    for item in items:
        name = item.function.__qualname__
        inherited = item.cls and not name.startswith(f"{item.cls.__name__}.")
        if inherited and {item.path.name, item.originalname}.isdisjoint(ALL_FORMATS):
            tests[item.path, name][item.cls].append(item)
    found = set()
    for turn, by_format in enumerate(tests.values()):
        del by_format[[*by_format][turn % len(by_format)]]
        found |= {item for others in by_format.values() for item in others}
    return found


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory):
    """The folder of the Iceberg catalog ``ice``."""
    return tmp_path_factory.mktemp("ice")


@pytest.fixture(scope="session")
def catalog(spark, warehouse):
    """The Iceberg catalog ``ice``, as pyiceberg sees it."""
    return SqlCatalog(
        "ice", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}"
    )


@pytest.fixture(scope="session")
def s3():
    """An S3 server with empty buckets."""
    with servers.running() as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory, warehouse, s3):
    """A small session that can handle every format, and reads S3."""
    session = zadapter.spark.session(
        {
            **s3.settings(),
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "jdbc",
            "spark.sql.catalog.ice.uri": f"jdbc:sqlite:{warehouse}/catalog.db",
            "spark.sql.catalog.ice.jdbc.schema-version": "V1",
            "spark.sql.catalog.ice.warehouse": f"file://{warehouse}",
            "spark.master": "local[2]",
            "spark.default.parallelism": "2",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM lists by it
            "spark.driver.memory": "2g",
        },
        stores=["s3"],
    )
    yield session
    session.stop()
