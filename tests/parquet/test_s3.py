"""S3 without a session: where requests go, and what its errors become."""

import pytest

from zadapter import errors
from zadapter.base import translate_errors
from zadapter_parquet.store import s3

PATH_STYLE, VIRTUAL = {"path_style": True}, {"path_style": False}
FAILED = "org.apache.spark.SparkException: Job aborted due to stage failure"
S3A = "org.apache.hadoop.fs.s3a"


@pytest.mark.parametrize(
    ("endpoint", "bucket", "style", "url"),
    [
        ("http://host:9000", "lake", PATH_STYLE, "http://host:9000"),
        ("http://host:9000/", "lake", PATH_STYLE, "http://host:9000"),
        ("host:9000", "lake", PATH_STYLE, "https://host:9000"),
        ("oss.example.com", "lake", VIRTUAL, "https://lake.oss.example.com"),
        ("https://s3.eu-west-1.amazonaws.com", "a.b", VIRTUAL, "https://s3.eu-west-1.amazonaws.com"),
    ],
)  # fmt: skip
def test_a_bucket_is_where_hadoop_looks_for_it(endpoint, bucket, style, url):
    """In the path or in the host's name; certificates do not cover a name with dots."""
    found = s3.address(endpoint, bucket, secure=True, **style)

    assert found["endpoint"] == url
    assert found["virtual_hosted_style_request"] == str(bucket in url).lower()


def test_a_server_without_a_scheme_and_tls():
    found = s3.address("host:9000", "lake", secure=False, path_style=True)

    assert found["endpoint"] == "http://host:9000"


@pytest.mark.parametrize(
    ("cause", "error", "words"),
    [
        (f"{S3A}.UnknownStoreException: `s3a://b/t': getFileStatus: NoSuchBucket",
         errors.UnknownTableError, "bucket not found"),
        ("java.nio.file.AccessDeniedException: s3a://b/t/x: putObject: Access Denied (403)",
         errors.StoreError, "access to s3a://b/t/x is denied; check the credentials"),
        (f"{S3A}.auth.NoAuthWithAWSException: No AWS Credentials provided",
         errors.StoreError, "set AWS_ACCESS_KEY_ID"),
        (f"{S3A}.AWSClientIOException: getFileStatus on s3a://b/t: Unable to execute HTTP request",
         errors.StoreError, "does not respond"),
        ("org.apache.http.NoHttpResponseException: 127.0.0.1:9000 failed to respond",
         errors.StoreError, "does not respond"),
        ("java.net.ConnectException: Connection refused", errors.StoreError, "does not respond"),
        ("java.net.UnknownHostException: no.such.host", errors.StoreError, "does not respond"),
    ],
)  # fmt: skip
def test_what_hadoop_throws_says_what_to_do(cause, error, words):
    explained = translate_errors.translate_error("s3a://b/t", [FAILED, cause])

    assert type(explained) is error
    assert words in str(explained)
    assert str(explained).startswith("s3a://b/t: ")


def test_a_session_that_has_ended_is_no_store_that_does_not_answer():
    explained = translate_errors.translate_error(
        "t", ["ConnectionRefusedError: [Errno 111] Connection refused"]
    )

    assert type(explained) is errors.SessionError
