"""Object stores: which tables lie there, and what a session gets for them."""

import socket
from pathlib import Path

import pyspark
import pytest

from zadapter.errors import SessionError, StoreError, UsageError
from zadapter.spark import object_stores, session
from zadapter.spark.compat.s3a import CONNECTORS, connector, hadoop_of_jars
from zadapter.spark.settings import EXCLUDES, PACKAGES

HADOOP = CONNECTORS[0].hadoop
PROVIDER = "spark.hadoop.fs.s3a.aws.credentials.provider"


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
    assert object_stores.find_stores(tables) == stores


LAKE = "spark.sql.catalog.lake"


@pytest.mark.parametrize(
    ("stated", "stores"),
    [
        ({f"{LAKE}.warehouse": "s3://b/t", f"{LAKE}.type": "jdbc"}, ["s3"]),
        ({"spark.sql.warehouse.dir": "s3a://b/t"}, ["s3"]),
        ({PACKAGES: "a:b:1,org.apache.hadoop:hadoop-aws:3.4.2"}, ["s3"]),
        ({f"{LAKE}.warehouse": "s3://b/t", f"{LAKE}.io-impl": "my.FileIO"}, []),
        ({f"{LAKE}.warehouse": "lake", f"{LAKE}.uri": "http://s3://b", LAKE: "my.Catalog"}, []),
    ],
)
def test_settings_tell_the_store(stated, stores):
    """A table of a catalog is named without its path, and needs its file system all the same."""
    assert object_stores.find_stated_stores(stated) == stores


def test_the_versions_are_those_of_pyspark():
    """Hadoop's S3A works with the Hadoop of its own version."""
    jars = [path.name for path in Path(pyspark.__file__).with_name("jars").iterdir()]
    hadoop = object_stores.hadoop_of_pyspark()
    logging = "commons-logging:commons-logging"  # Spark has jcl-over-slf4j

    assert f"hadoop-client-api-{hadoop}.jar" in jars
    for artifact in {*connector(hadoop).excludes[1:]} - {logging}:
        name = artifact.partition(":")[2]
        assert any(jar.startswith(f"{name}-") for jar in jars), artifact


@pytest.mark.parametrize(
    ("hadoop", "packages", "credentials"),
    [
        ("3.3.4", "com.amazonaws:aws-java-sdk-s3:1.12.262", "DefaultAWSCredentialsProviderChain"),
        ("3.4.1", "software.amazon.awssdk:sts:2.24.8", "DefaultCredentialsProvider"),
        ("3.4.2", "software.amazon.awssdk:sts:2.29.52", "DefaultCredentialsProvider"),
        ("3.5.0", "software.amazon.awssdk:sts:2.35.5", "DefaultCredentialsProvider"),
    ],
)
def test_the_connector_goes_with_hadoop_and_with_its_sdk(hadoop, packages, credentials):
    """Spark 3.5 has a Hadoop with version 1 of the AWS SDK."""
    added = object_stores.additions({}, ["s3"], hadoop)

    named = added[PACKAGES].split(",")
    assert named[0] == f"org.apache.hadoop:hadoop-aws:{hadoop}"
    assert packages in named
    assert any("bundle" in artifact for artifact in added[EXCLUDES].split(","))
    assert added[PROVIDER].endswith(f".{credentials}")


@pytest.mark.parametrize(
    ("jars", "packages", "credentials"),
    [
        (["hadoop-client-api-3.4.9.jar"], "3.4.9", "DefaultCredentialsProvider"),
        (["hadoop-client-api-3.3.6.jar", "a.jar"], "3.3.6", "DefaultAWSCredentialsProviderChain"),
    ],
)
def test_an_unknown_hadoop_gets_its_own_connector_with_the_whole_sdk(jars, packages, credentials):
    """Which parts of the SDK it needs is unknown."""
    added = object_stores.additions({}, ["s3"], hadoop_of_jars(jars))

    assert added[PACKAGES] == f"org.apache.hadoop:hadoop-aws:{packages}"
    assert EXCLUDES not in added
    assert added[PROVIDER].endswith(f".{credentials}")


def test_a_spark_without_hadoop_gets_the_default():
    assert hadoop_of_jars(["spark-core_2.13-4.1.4.jar"]) == CONNECTORS[0].hadoop


def test_what_the_user_said_stays():
    """Lists are completed, and a session that has S3A already downloads none."""
    mine = {PACKAGES: "a:b:1", "spark.hadoop.fs.s3.impl": "my.Own"}
    added = object_stores.additions(mine, ["s3"], HADOOP)
    there = {"spark.jars": "/jars/hadoop-aws-3.4.2.jar"}

    assert added[PACKAGES].startswith("a:b:1,org.apache.hadoop:hadoop-aws:")
    assert "spark.hadoop.fs.s3.impl" not in added
    assert object_stores.additions({**mine, **added}, ["s3"], HADOOP) == {}
    assert not {PACKAGES, EXCLUDES} & object_stores.additions(there, ["s3"], HADOOP).keys()
    assert object_stores.additions({}, [], HADOOP) == {}


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_a_server_of_ones_own(monkeypatch, variable):
    """Its buckets are in the path."""
    monkeypatch.setenv(variable, "http://host:9000")

    added = object_stores.additions({}, ["s3"], HADOOP)

    assert added["spark.hadoop.fs.s3a.endpoint"] == "http://host:9000"
    assert added["spark.hadoop.fs.s3a.path.style.access"] == "true"


def test_a_store_that_nobody_knows():
    with pytest.raises(UsageError, match="unknown store 'gcs'; expected one of: s3"):
        session(stores=["gcs"])


@pytest.mark.parametrize("shape", ["http://{}:{}", "{}:{}"])
def test_a_server_that_does_not_answer_is_named_at_once(shape):
    """Spark would not say a word for minutes; the same server is accepted once it listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = shape.format(*server.getsockname())
        settings = {"spark.hadoop.fs.s3a.endpoint": endpoint}
        object_stores.check_endpoint(settings)

    with pytest.raises(StoreError, match=f"{endpoint} does not answer; check AWS_ENDPOINT_URL"):
        object_stores.check_endpoint(settings)
    object_stores.check_endpoint({**settings, "spark.hadoop.fs.s3a.proxy.host": "proxy"})
    object_stores.check_endpoint({})


def test_a_server_of_the_environment_has_a_scheme(monkeypatch):
    """S3A would speak https to a server of http for minutes; a setting has its own meaning."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "minio:9000")

    with pytest.raises(SessionError, match="AWS_ENDPOINT_URL is minio:9000; begin it with http"):
        object_stores.additions({}, ["s3"], HADOOP)
    object_stores.additions({"spark.hadoop.fs.s3a.endpoint": "minio:9000"}, ["s3"], HADOOP)


def test_a_port_that_is_no_number_is_named():
    with pytest.raises(StoreError, match="http://host:none does not answer; check AWS_ENDPOINT"):
        object_stores.check_endpoint({"spark.hadoop.fs.s3a.endpoint": "http://host:none"})
