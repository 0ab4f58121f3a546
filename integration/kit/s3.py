"""S3 server behind a gate that checks keys, counts requests and cuts connections."""

import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from threading import Lock
from uuid import uuid4

import boto3
import deltalake
import pyarrow.dataset as ds
import pyarrow.fs
from pyiceberg.table import StaticTable

import zadapter
from integration.kit.network import HOST, Network
from integration.kit.servers import answers, free_port, wait_for

KEY, SECRET = "zadapter", "of zadapter"
"""Key with all rights; ``READER`` may only read, and ``TEMPORARY`` needs ``TOKEN``."""
READER, TEMPORARY, TOKEN = "reader", "temporary", "of an hour"
DENIED = "<Error><Code>{}</Code><Message>{}</Message></Error>"
READS = {"GET", "HEAD"}
REGION = "us-east-1"
_S3A = "org.apache.hadoop.fs.s3a"


class Gate(Network):
    """Proxy that passes requests on to an S3 server if their key permits them.

    Attributes:
        most: Highest number of concurrent requests.
        writes: Number of writes.
        billed: Number of requests that S3 bills as GET and as PUT; it bills lists as PUT.
        cut_after: Number of writes after which all connections are cut; None: never.
        is_open: Whether keys are ignored.
    """

    def __init__(self, port):
        refusals = {
            "unknown": (403, DENIED.format("InvalidAccessKeyId", "There is no such key.")),
            "denied": (403, DENIED.format("AccessDenied", "Access Denied")),
        }
        super().__init__(port, lambda *_: False, refusals)
        self.lock, self.now, self.most = Lock(), 0, 0
        self.writes, self.cut_after, self.is_open = 0, None, False
        self.billed = Counter()

    @contextmanager
    def opened(self):
        """Permit all requests temporarily."""
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False

    @contextmanager
    def cutting(self, writes):
        """Cut all connections after a number of further writes, temporarily."""
        self.writes, self.cut_after = 0, writes
        try:
            yield
        finally:
            self.cut_after = None

    def fate(self, method, path, headers):
        with self.lock:
            if self.cut_after is not None and self.writes >= self.cut_after:
                return "cut"
            self.writes += method not in READS
            if method != "DELETE" and not path.endswith("?delete"):
                self.billed["get" if method in READS and "list-type=" not in path else "put"] += 1
        if self.is_open:
            return None
        _, _, credential = headers.get("Authorization", "").partition("Credential=")
        key = credential.partition("/")[0]
        if key == READER:
            return None if method in READS else "denied"
        known = key == KEY or (key == TEMPORARY and headers.get("X-Amz-Security-Token") == TOKEN)
        return None if known else "unknown"

    def process_request_thread(self, *request):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            super().process_request_thread(*request)
        finally:
            with self.lock:
                self.now -= 1


class S3:
    """S3 server, its gate, and a client."""

    def __init__(self, port):
        self.uri, self.gate = f"http://{HOST}:{port}", Gate(port)
        self.client = boto3.client(
            "s3", endpoint_url=self.uri, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
            region_name=REGION,
        )  # fmt: skip
        for bucket in ("lake", *BUCKETS):
            self.client.create_bucket(Bucket=bucket)

    def settings(self):
        """Return session settings: access to ``lake`` is direct, to other buckets by the gate."""
        common = {
            "endpoint": self.uri, "path.style.access": "true",
            "access.key": KEY, "secret.key": SECRET,
            "retry.limit": "1", "retry.interval": "10ms", "attempts.maximum": "1",
        }  # fmt: skip
        gated = {f"bucket.{name}.endpoint": self.gate.uri for name in BUCKETS}
        keys = {
            f"bucket.{bucket}.{key}": value
            for bucket, own in BUCKETS.items()
            for key, value in own.items()
        }
        return {
            f"spark.hadoop.fs.s3a.{key}": value for key, value in (common | gated | keys).items()
        }

    def keys(self, prefix, bucket="lake"):
        """Return the names of all objects with a prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def rows(self, format_, table):
        """Count the rows of a table with a reader other than Spark."""
        return getattr(self, format_)(table.replace("s3a:", "s3:")).num_rows

    def delta(self, table):
        """Return the rows of a Delta table, read by delta-rs."""
        options = {
            "AWS_ENDPOINT_URL": self.uri, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true",
        }  # fmt: skip
        return deltalake.DeltaTable(table, storage_options=options).to_pyarrow_table()

    def properties(self):
        """Return the properties with which pyiceberg reads."""
        return {
            "s3.endpoint": self.uri, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET,
            "s3.region": REGION,
        }  # fmt: skip

    def iceberg(self, table):
        """Return the rows of an Iceberg table that is found by its path, read by pyiceberg."""
        bucket, _, key = table.removeprefix("s3://").partition("/")
        versions = [each for each in self.keys(f"{key}/metadata/v", bucket) if "json" in each]
        newest = max(versions, key=lambda each: int(each.rpartition("/v")[2].partition(".")[0]))
        found = StaticTable.from_metadata(f"s3://{bucket}/{newest}", properties=self.properties())
        return found.scan().to_arrow()

    def parquet(self, table):
        """Return the rows of the files that zadapter lists, read by pyarrow."""
        files = zadapter.files(table, backend="parquet")["path"].to_pylist()
        return self.arrow([path.removeprefix("s3://") for path in files])

    def arrow(self, paths):
        """Return the rows of Parquet files, whose paths begin with their bucket."""
        store = pyarrow.fs.S3FileSystem(
            access_key=KEY, secret_key=SECRET, endpoint_override=self.uri, region=REGION
        )
        return ds.dataset(list(paths), filesystem=store, format="parquet").to_table()


def make(spark, s3, format_, bucket="lake"):
    """Make a partitioned table of 2 000 rows and return its path."""
    rows = spark.range(2_000).selectExpr("id * 7919 % 2003 AS a", "id AS b", "id % 2 AS p")
    folder = uuid4().hex
    path = f"s3a://{bucket}/{folder}/t"
    with s3.gate.opened():
        if format_ == "iceberg":
            # a Hadoop catalog, whose tables are also found by path
            catalog = f"spark.sql.catalog.hadoop_{bucket}"
            spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
            spark.conf.set(f"{catalog}.type", "hadoop")
            spark.conf.set(f"{catalog}.warehouse", f"s3a://{bucket}")
            rows.repartition(2).writeTo(f"hadoop_{bucket}.`{folder}`.t").partitionedBy("p").create()
        else:
            rows.repartition(2).write.format(format_).partitionBy("p").save(path)
    return path


BUCKETS = {
    "gated": {},
    "strangers": {"access.key": "stranger"},
    "readers": {"access.key": READER},
    "temporary": {"access.key": TEMPORARY, "session.token": TOKEN},
    "nobody": {"aws.credentials.provider": f"{_S3A}.TemporaryAWSCredentialsProvider"},
}
"""Buckets behind the gate, with their own settings."""


@contextmanager
def running():
    """Run a server with empty buckets within the context."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(process, lambda: answers(port))
            server = S3(port)
            with server.gate:
                yield server
                server.gate.shutdown()
        finally:
            process.terminate()
