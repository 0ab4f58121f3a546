"""An S3 server, and a gate before it that knows keys, counts, and cuts connections."""

import subprocess
import sys
from contextlib import contextmanager
from threading import Lock

import boto3

from integration.network import HOST, Network
from integration.servers import answers, free_port, wait_for

KEY, SECRET = "zadapter", "of zadapter"
"""Whoever has these may do everything; ``READER`` may read, ``TEMPORARY`` must have ``TOKEN``."""
READER, TEMPORARY, TOKEN = "reader", "temporary", "of an hour"
DENIED = "<Error><Code>{}</Code><Message>{}</Message></Error>"
READS = {"GET", "HEAD"}


class Gate(Network):
    """Passes requests on to an S3 server if their key may ask for this.

    Attributes:
        most: How many requests were under way at once.
        writes_left: After so many more writes, all connections are cut; None: none is.
    """

    def __init__(self, port):
        refusals = {
            "unknown": (403, DENIED.format("InvalidAccessKeyId", "There is no such key.")),
            "denied": (403, DENIED.format("AccessDenied", "Access Denied")),
        }
        super().__init__(port, lambda *_: False, refusals)
        self.lock, self.now, self.most, self.writes_left = Lock(), 0, 0, None

    def fate(self, method, path, headers):
        with self.lock:
            if self.writes_left is not None:
                if self.writes_left <= 0:
                    return "cut"
                self.writes_left -= method not in READS
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
    """The server, its gate, and a client of the bucket ``lake``."""

    def __init__(self, port):
        self.uri, self.gate = f"http://{HOST}:{port}", Gate(port)
        self.client = boto3.client(
            "s3", endpoint_url=self.uri, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )  # fmt: skip
        for bucket in ("lake", *BUCKETS):
            self.client.create_bucket(Bucket=bucket)

    def settings(self):
        """Return the settings of a session: ``lake`` is asked directly, all others by the gate."""
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
        """Return the names of all objects whose name begins like this."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]


BUCKETS = {
    "gated": {},
    "strangers": {"access.key": "stranger"},
    "readers": {"access.key": READER},
    "temporary": {"access.key": TEMPORARY, "session.token": TOKEN},
}
"""Buckets behind the gate, by the settings of their own that a session has."""


@contextmanager
def running():
    """Run a server with empty buckets as long as the context lasts."""
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
