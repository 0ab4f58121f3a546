"""Object stores: which tables lie there, and what a session gets for them."""

from pathlib import Path

import pyspark
import pytest

from zadapter.errors import UsageError
from zadapter.spark import object_stores, session
from zadapter.spark.settings import EXCLUDES, PACKAGES


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("tables", "stores"),
    [
        (["s3://b/t"], ["s3"]),
        (["lake/t", "delta.`s3a://b/t`"], ["s3"]),
        (["lake/s3://b", "db.s3", "gs://b/t", "file:/s3a/t"], []),
    ],
)
def test_the_path_tells_the_store(tables, stores):
    assert object_stores.named(tables) == stores


def test_the_versions_are_those_of_pyspark():
    """Hadoop's S3A works with the Hadoop of its own version."""
    jars = [path.name for path in Path(pyspark.__file__).with_name("jars").iterdir()]

    assert f"hadoop-client-api-{object_stores.HADOOP}.jar" in jars
    for artifact in object_stores.EXCLUDES[2:]:
        name = artifact.partition(":")[2]
        assert any(jar.startswith(f"{name}-") for jar in jars), artifact


def test_what_the_user_said_stays():
    """Lists are completed, and a session that has S3A already downloads none."""
    mine = {PACKAGES: "a:b:1", "spark.hadoop.fs.s3.impl": "my.Own"}
    added = object_stores.additions(mine, ["s3"])
    there = {"spark.jars": "/jars/hadoop-aws-3.4.2.jar"}

    assert added[PACKAGES].startswith("a:b:1,org.apache.hadoop:hadoop-aws:")
    assert "spark.hadoop.fs.s3.impl" not in added
    assert object_stores.additions({**mine, **added}, ["s3"]) == {}
    assert not {PACKAGES, EXCLUDES} & object_stores.additions(there, ["s3"]).keys()
    assert object_stores.additions({}, []) == {}


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_a_server_of_ones_own(monkeypatch, variable):
    """Its buckets are in the path."""
    monkeypatch.setenv(variable, "http://host:9000")

    added = object_stores.additions({}, ["s3"])

    assert added["spark.hadoop.fs.s3a.endpoint"] == "http://host:9000"
    assert added["spark.hadoop.fs.s3a.path.style.access"] == "true"


def test_a_store_that_nobody_knows():
    with pytest.raises(UsageError, match="unknown store 'gcs'; expected one of: s3"):
        session(stores=["gcs"])
