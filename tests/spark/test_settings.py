"""Settings: what the user said stays, what the formats need is added."""

from itertools import combinations
from pathlib import Path

import pyspark
import pytest

from zadapter.backend.plugins import formats
from zadapter.spark import settings
from zadapter.spark.settings import CATALOG, EXTENSIONS, PACKAGES

DELTA, ICEBERG = (formats()[name].library for name in ("delta", "iceberg"))
LIBRARY_SETS = [sets for size in range(3) for sets in combinations([DELTA, ICEBERG], size)]
USERS_SETTINGS = [
    {},
    {PACKAGES: "a:b:1", EXTENSIONS: "org.Mine"},
    {PACKAGES: "io.delta:delta-spark_4.1_2.13:4.4.9 , a:b:1", EXTENSIONS: DELTA.extension},
    {CATALOG: "org.MyCatalog", EXTENSIONS: f"org.Mine, {ICEBERG.extension}"},
    {"spark.jars": "/jars/delta-spark_4.1_2.13-4.4.0.jar"},
]


def items(stated, key):
    """Return the items of a list of settings."""
    return [item.strip() for item in stated.get(key, "").split(",") if item.strip()]


@pytest.mark.parametrize("libraries", LIBRARY_SETS)
@pytest.mark.parametrize("stated", USERS_SETTINGS)
def test_additions_complete_lists_and_take_nothing_away(stated, libraries):
    """Every item of the user's lists stays, first; a catalog of the user's stays alone."""
    told = {**stated, **settings.additions(stated, libraries)}

    for key in (PACKAGES, EXTENSIONS):
        mine = items(stated, key)
        assert items(told, key)[: len(mine)] == mine
    assert told.get("spark.jars") == stated.get("spark.jars")
    if CATALOG in stated:
        assert told[CATALOG] == stated[CATALOG]


@pytest.mark.parametrize("libraries", LIBRARY_SETS)
@pytest.mark.parametrize("stated", USERS_SETTINGS)
def test_additions_are_complete(stated, libraries):
    """What was added once is not added again, and no artifact or extension stands twice."""
    told = {**stated, **settings.additions(stated, libraries)}

    assert settings.additions(told, libraries) == {}
    artifacts = [package.rpartition(":")[0] for package in items(told, PACKAGES)]
    assert len(set(artifacts)) == len(artifacts)
    assert {library.extension for library in libraries} <= set(items(told, EXTENSIONS))


def test_a_jar_the_user_brought_is_not_downloaded():
    """A session works offline if its jars are given as files."""
    stated = {"spark.jars": "/jars/delta-spark_4.1_2.13-4.4.0.jar,/jars/delta-storage-4.4.0.jar"}

    assert PACKAGES not in settings.additions(stated, [DELTA])


def test_only_what_spark_ships_is_left_out():
    """Delta finds in Spark what is not downloaded with it."""
    jars = [path.name for path in Path(pyspark.__file__).with_name("jars").iterdir()]

    for artifact in DELTA.excludes:
        name = artifact.partition(":")[2]
        assert any(jar.startswith(f"{name}-") for jar in jars), artifact


def test_local_defaults_yield_to_the_user():
    """A default is set where nothing was said, and only there."""
    offered = settings.local_defaults({})

    for key in offered:
        rest = settings.local_defaults({key: "mine"})
        assert set(rest) == set(offered) - {key}


@pytest.mark.parametrize("variable", ["JDK_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS", None])
def test_the_collector_that_the_user_chose_stays_the_only_one(monkeypatch, variable):
    """A JVM that is told of two does not start."""
    chosen = "-Xss4m -XX:+UseG1GC"
    assert "GC" in settings.local_defaults({})[settings.JAVA_OPTIONS]
    if variable == "PYSPARK_SUBMIT_ARGS":
        monkeypatch.setenv(variable, f"--driver-java-options '{chosen}' pyspark-shell")
    elif variable is not None:
        monkeypatch.setenv(variable, chosen)
    stated = settings.submit_args() or {"spark.driver.extraJavaOptions": chosen}

    offered = settings.local_defaults(stated if variable != "JDK_JAVA_OPTIONS" else {})

    assert "GC" not in offered.get(settings.JAVA_OPTIONS, "")


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "k8s://https://host"])
def test_a_cluster_gets_no_local_defaults(master):
    """Memory and partitions of a cluster are its owner's affair."""
    assert settings.local_defaults({"spark.master": master}) == {}


@pytest.mark.parametrize(
    ("master", "partitions"), [("local", "2"), ("local[3]", "6"), ("local[4,2]", "8")]
)
def test_shuffle_partitions_follow_the_master(master, partitions):
    """Two partitions a core that Spark may use."""
    offered = settings.local_defaults({"spark.master": master})

    assert offered["spark.sql.shuffle.partitions"] == partitions
