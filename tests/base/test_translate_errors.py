"""What Spark, formats and stores throw, as errors that say what to do."""

import traceback

import pyarrow as pa
import pytest

from zadapter.base.translate_errors import translate_error, translates_errors
from zadapter.errors import (
    DataFileError,
    EngineError,
    SessionError,
    StoreError,
    UnsupportedError,
    UsageError,
    ZadapterError,
)

FILE = "file:///lake/t/part-0-c000.snappy.parquet"
PYTHON = (
    "org.apache.spark.api.python.PythonException: An exception was thrown from the Python worker. "
    'Please see the stack trace below.\nTraceback (most recent call last):\n  File "/jobs/CRC.py", '
    "line 3, in look\n{}\n"
)
ABORTED = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed "
    "1 times, most recent failure: Lost task 0.0 (TID 8) (host executor driver): {}\n"
    "\tat org.apache.spark.Thing(Thing.scala:1)\n"
)
READING = (
    "org.apache.spark.SparkException: [FAILED_READ_FILE.{}] Encountered error while reading file "
    f"{FILE}. SQLSTATE: KD001"
)


@pytest.mark.parametrize(
    ("thrown", "error", "says"),
    [
        (
            ["java.lang.IllegalArgumentException: no data file: data file counts are missing."],
            UnsupportedError,
            ["Iceberg cannot list", "CREATE TABLE"],
        ),
        (
            [READING.format("NO_HINT"), "java.io.IOException: could not decompress page"],
            DataFileError,
            [FILE, "is damaged", "restore", "could not decompress page"],
        ),
        (
            [
                READING.format("FILE_NOT_EXIST"),
                f"java.io.FileNotFoundException: File {FILE} does not exist",
            ],
            DataFileError,
            [FILE, "is missing", "restore"],
        ),
        (
            ["FileNotFoundError: [Errno 2] Failed to open local file '/lake/t/x.parquet'. Detail:"],
            DataFileError,
            ["/lake/t/x.parquet is missing"],
        ),
        (
            ["OSError: Couldn't deserialize thrift: TProtocolException: Invalid data\n"],
            DataFileError,
            ["a file of lake/t (see the log of Spark) is damaged"],
        ),
        (
            [ABORTED.format("x"), "java.io.IOException: No space left on device"],
            StoreError,
            ["no space left; ", "free space", "spark.local.dir"],
        ),
        (
            [ABORTED.format("java.io.IOException: No space left on device")],
            StoreError,
            ["no space left"],
        ),
        (
            ["OSError: [Errno 28] No space left on device: '/lake/t/_zadapter/new/7'"],
            StoreError,
            ["no space left for /lake/t/_zadapter/new/7"],
        ),
        (
            ["java.nio.file.AccessDeniedException: s3a://b/t/x: getFileStatus: Status Code: 403"],
            StoreError,
            ["access to s3a://b/t/x is denied", "credentials"],
        ),
        (
            [
                "software.amazon.awssdk.SdkClientException: Unable to load credentials by "
                + ", ".join(["P(): none"] * 100)
            ],
            StoreError,
            ["set AWS_ACCESS_KEY_ID", "AWS_PROFILE", "credentials by P(): none, ", " [...])"],
        ),
        (
            ["PermissionError: [Errno 13] Permission denied: '/t/x'"],
            StoreError,
            ["/t/x", "permissions"],
        ),
        (
            [
                ABORTED.format(
                    "org.apache.parquet.hadoop.BadConfigurationException: Class "
                    "org.apache.hadoop.io.compress.BrotliCodec was not found"
                )
            ],
            SessionError,
            ["org.apache.hadoop.io.compress.BrotliCodec", "add its jar", "change the setting"],
        ),
        (
            ['org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"'],
            SessionError,
            ["no file system", "stores=['s3']", 'scheme "s3"'],
        ),
        (["java.lang.OutOfMemoryError: Java heap space"], SessionError, ["spark.driver.memory"]),
        (["Py4JNetworkError: Answer from Java side is empty"], SessionError, ["start a new one"]),
        (
            [
                ABORTED.format("y"),
                "java.lang.IllegalArgumentException: maxCapacityHint can't be less than 64 1",
            ],
            SessionError,
            ["rejects a value (IllegalArgumentException: maxCapacityHint can't be less than 64 1)"],
        ),
        (
            [ABORTED.format("z"), "org.example.OddException: \n\nsome text\nmore of it"],
            EngineError,
            ["OddException: some text", "exception's __cause__"],
        ),
        (
            [
                ABORTED.format("u"),
                PYTHON.format("ValueError: the table has no entry for 7"),
            ],
            EngineError,
            ["a Python function", "ValueError: the table has no entry for 7"],
        ),
        ([], EngineError, ["no message"]),
    ],
)
def test_a_failure_says_what_is_wrong_where_and_what_to_do(thrown, error, says):
    """One message instead of a hundred lines of Java."""
    made = translate_error("lake/t", thrown)

    assert type(made) is error
    assert str(made).startswith("lake/t: ")
    assert "\n" not in str(made)
    assert [text for text in says if text not in str(made)] == []


def test_the_file_can_be_asked_for():
    """A program restores what was found damaged."""
    made = translate_error("lake/t", [READING.format("NO_HINT")])

    assert isinstance(made, DataFileError)
    assert made.path == FILE


@translates_errors
def verb(table, failure):
    raise failure


@pytest.mark.parametrize("at", ["512 exp: 1370695036 got: -99852141", "1536"])
def test_a_stale_checksum_file_is_not_taken_for_a_damaged_file(at):
    """Whatever the path, and however deep the cause."""
    path = "file:/lake/a b/part-0.c000.parquet"
    checksum = f"org.apache.hadoop.fs.ChecksumException: Checksum error: {path} at {at}"
    for thrown in ([READING.format("NO_HINT"), checksum], [ABORTED.format(checksum)]):
        made = translate_error("lake/t", thrown)

        assert isinstance(made, DataFileError)
        assert made.path == path
        assert f"{path} does not match .part-0.c000.parquet.crc" in str(made)
        assert "delete .part-0.c000.parquet.crc" in str(made)


def test_blocks_of_hdfs_have_no_checksum_files():
    """A block that does not match its checksum is damaged."""
    thrown = "org.apache.hadoop.fs.ChecksumException: Checksum error: /lake/x.parquet at 0 exp: 1"
    made = translate_error("lake/t", [thrown])

    assert "/lake/x.parquet is damaged" in str(made)
    assert ".crc" not in str(made)


def raised_by(failure, table="lake/t"):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of whatever kind
        verb(table, failure)
    return caught.value


@pytest.mark.parametrize("failure", [OSError("disk"), pa.ArrowInvalid("x"), ConnectionError("y")])
def test_exceptions_of_others_are_wrapped(failure):
    """``except ZadapterError`` is enough, and the original is behind it."""
    error = raised_by(failure)

    assert isinstance(error, ZadapterError)
    assert error.__cause__ is failure


@pytest.mark.parametrize("failure", [TypeError("x"), KeyError("x"), AssertionError("x")])
def test_python_s_own_stay_as_they_are(failure):
    """A bug is to be seen as one."""
    assert raised_by(failure) is failure


def test_a_traceback_shows_no_secret():
    """Whoever sends a traceback to others has not read all of it."""
    error = raised_by(OSError("GET https://b/k?sig=hidden failed"), table="s3://K:hidden@b/t")

    assert "hidden" not in "".join(traceback.format_exception(error))
    assert "sig=***" in "".join(traceback.format_exception(error))


def test_a_traceback_of_our_own_error_shows_no_secret():
    """Neither where zadapter has wrapped the original somewhere else already."""
    wrapped = UsageError("the call is wrong")
    wrapped.__cause__ = ValueError("password=hidden")
    error = raised_by(wrapped)

    assert "hidden" not in "".join(traceback.format_exception(error))
