"""All formats, or some by comma: ``pytest integration --format delta,iceberg``."""

from argparse import ArgumentTypeError
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from integration.kit import s3 as servers
from tests.kit import jvm
from tests.kit.variants import slow

FORMATS = ("delta", "iceberg", "parquet", "migration", "journeys", "lake")
SEVERAL = FORMATS[3:]
"""Folders whose tests are of several formats at once."""
HERE = Path(__file__).parent
jvm.use_fast_compiler()


def pytest_addoption(parser):
    """Let the caller choose the format."""
    parser.addoption(
        "--format", type=chosen, default=[*FORMATS], metavar="FORMATS", help=", ".join(FORMATS)
    )
    parser.addoption("--sweep", type=int, metavar="N", help="N pairs of rivals, drawn of all")


def chosen(text):
    """Return the formats of a list by comma."""
    formats = text.split(",")
    if unknown := {*formats} - {*FORMATS}:
        raise ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return formats


def pytest_generate_tests(metafunc):
    """Have two rivals come to a rewrite, some pairs or many more; and tests for each format."""
    if "table_format" in metafunc.fixturenames:
        formats = metafunc.config.getoption("--format")
        metafunc.parametrize("table_format", [each for each in formats if each not in SEVERAL])
    if "trial" in metafunc.fixturenames:
        module, count = metafunc.module, metafunc.config.getoption("--sweep")
        every = Random(count).sample(module.EVERY, len(module.EVERY))
        first, *others = module.SOME
        metafunc.parametrize(
            "trial", [first, *slow(*others)] if count is None else every[:count], ids=str
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out the tests of other formats, and mark what CI has with some formats alone."""
    formats = config.getoption("--format")
    left_out = {item for item in items if format_of(item, formats) not in formats}
    for item in of_another_format(items):
        item.add_marker("slow")
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


def format_of(item, formats):
    """Return the format of a test; one for all formats goes with the first that is no folder."""
    for name in (*SEVERAL, *FORMATS):
        if f"/{name}/" in item.nodeid or f"::Test{name.capitalize()}::" in item.nodeid:
            return name
    return next((name for name in formats if name not in SEVERAL), None)


def of_another_format(items):
    """Return the tests whose turn it is with another format, or with other formats.

    The common core is the same code for all formats, as are its tests. Where formats differ, the
    contract says so, which is marked ``every_format``.
    """
    tests = defaultdict(lambda: defaultdict(list))
    for item in items:
        if not item.get_closest_marker("every_format"):
            test, formats = parts(item)
            tests[test][formats].append(item)
    found = set()
    for turn, by_formats in enumerate(tests.values()):
        del by_formats[[*by_formats][turn % len(by_formats)]]
        found |= {item for others in by_formats.values() for item in others}
    return found


def parts(item):
    """Return what a test has in common with those of other formats, and its formats."""
    name = item.function.__qualname__
    given = getattr(item, "callspec", None)
    given = {key: str(value) for key, value in given.params.items()} if given else {}
    if format_ := given.pop("table_format", None):
        return (item.path, name, *sorted(given.items())), format_
    if item.cls and not name.startswith(f"{item.cls.__name__}."):
        return (item.path, name), item.cls
    if given and item.path.is_relative_to(HERE / "migration"):
        formats = {key: value for key, value in given.items() if value in FORMATS[:3]}
        return (item.path, name, *sorted(given.items() - formats.items())), (*formats.values(),)
    return item, None


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
    session = jvm.session(
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
            "spark.driver.memory": "3g",
            # what many tests leave in memory: plans, jobs and stages for Spark's UI
            "spark.ui.retainedJobs": "100",
            "spark.ui.retainedStages": "200",
            "spark.sql.ui.retainedExecutions": "20",
        },
        stores=["s3"],
    )
    yield session
    session.stop()
