"""What Spark, formats and stores throw, as errors that say what to do."""

import ast
import re
import traceback

import pyarrow as pa
import pytest

from tests.kit.documents import ROOT
from zadapter.base.translate_errors import explain, explained
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


def reading(*causes):
    """A failure of a read, whose file Spark names, for whatever reason."""
    return [ABORTED.format("x"), READING.format("NO_HINT"), *causes]


WRITING = "SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to "
FOOTER = (
    "org.apache.spark.SparkException: [CANNOT_READ_FILE_FOOTER] Could not read footer for file: "
)
LOST = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed "
    "4 times, most recent failure: Lost task 0.3 in stage 3.0 (TID 7) (10.0.0.1 executor 1): "
    "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command "
    "exited with code 137\nDriver stacktrace:"
)
NOT_DAMAGED = [
    (
        reading("java.lang.OutOfMemoryError: Java heap space"),
        SessionError,
        ["ran out of memory", "spark.driver.memory"],
    ),
    (
        reading("java.lang.OutOfMemoryError: unable to create native thread: possibly out of"),
        SessionError,
        ["ran out of memory (OutOfMemoryError: unable to create native thread"],
    ),
    (
        reading("java.lang.OutOfMemoryError: Cannot reserve 4096 bytes of direct buffer memory"),
        SessionError,
        ["ran out of memory (OutOfMemoryError: Cannot reserve"],
    ),
    (
        ["org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to ac"],
        SessionError,
        ["ran out of memory (SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY]"],
    ),
    (
        reading("java.net.SocketTimeoutException: Read timed out"),
        StoreError,
        ["does not respond", "SocketTimeoutException: Read timed out"],
    ),
    (
        reading("java.lang.ClassNotFoundException: com.github.luben.zstd.Zstd"),
        SessionError,
        ["lacks the class com.github.luben.zstd.Zstd"],
    ),
    (
        reading(
            "java.lang.NoClassDefFoundError: Could not initialize class org.xerial.snappy.Snappy"
        ),
        SessionError,
        ["cannot be initialized", "org.xerial.snappy.Snappy"],
    ),
    (
        reading("java.lang.UnsatisfiedLinkError: no snappyjava in java.library.path"),
        SessionError,
        ["native library", "no snappyjava"],
    ),
    (
        reading(
            "org.apache.spark.sql.execution.datasources.SchemaColumnConvertNotSupportedException: "
            "column: [a], physicalType: INT32, logicalType: bigint"
        ),
        DataFileError,
        [f"{FILE} cannot be read (SchemaColumnConvertNotSupportedException: column: [a]"],
    ),
    (
        [f"{FOOTER}{FILE}.", "java.io.IOException: Filesystem closed"],
        DataFileError,
        [f"{FILE} cannot be read (IOException: Filesystem closed)", "if the file is damaged"],
    ),
    (
        ["java.io.FileNotFoundException: /tmp/blockmgr-1f/0e/temp_shuffle_7 (No such file)"],
        EngineError,
        ["FileNotFoundException: /tmp/blockmgr-1f/0e/temp_shuffle_7"],
    ),
    (
        [
            f"{WRITING}s3a://b/t.",
            "java.util.concurrent.TimeoutException: Futures timed out [120 s]",
        ],
        EngineError,
        ["TimeoutException: Futures timed out [120 s]", "while it wrote to s3a://b/t"],
    ),
    (
        ["java.nio.file.AccessDeniedException: User: arn:aws:iam::1:user/u is not authorized"],
        StoreError,
        ["access is denied; check the credentials"],
    ),
    (
        ["OSError: [Errno 30] Read-only file system: '/lake/t/_delta_log/1.json'"],
        StoreError,
        ["is read-only for /lake/t/_delta_log/1.json"],
    ),
    (
        [f"{WRITING}file:/lake/t.", "java.io.IOException: No space left on device"],
        StoreError,
        ["no space left; ", "spark.local.dir"],
    ),
    (
        ["OSError: [Errno 27] File too large"],
        StoreError,
        ["a limit on the size of files", "free space"],
    ),
    (
        ["RemoteException: File /t/x could only be written to 0 of the 1 minReplication nodes."],
        StoreError,
        ["HDFS has no node"],
    ),
    (
        [
            LOST,
        ],
        EngineError,
        ["an executor was lost", "executor 1 exited", "log of the cluster"],
    ),
    (
        ['java.lang.NumberFormatException: For input string: "many"'],
        SessionError,
        ['rejects a value (NumberFormatException: For input string: "many")'],
    ),
    (
        ["SparkIllegalArgumentException: [INVALID_CONF_VALUE.TIME_ZONE] The value 'x' in it"],
        SessionError,
        ["Spark rejects the value of a setting", "The value 'x' in it"],
    ),
]
"""Failures that messages have called damaged files, full disks of the table, or settings."""


@pytest.mark.parametrize(("thrown", "error", "says"), NOT_DAMAGED)
def test_a_failure_is_not_taken_for_another_one(thrown, error, says):
    """What was being read is no proof of damage; a file that is named is not always the cause."""
    made = explain("lake/t", thrown)

    assert type(made) is error
    assert [text for text in says if text not in str(made)] == []
    assert not {"is damaged;", "likely", "probably"} & set(str(made).split())
    assert " is damaged" not in str(made).replace("if the file is damaged", "")


def test_no_message_guesses():
    """In texts of the code, and what its documentation says of Java is no message."""
    guesses = re.compile(r"most likely|probably|perhaps|presumably|maybe|possibly", re.IGNORECASE)
    found = []
    for path in [*(ROOT / "zadapter").rglob("*.py"), *(ROOT / "backends").rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (
            n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in documents
        )
        found += [t.value for t in texts if isinstance(t.value, str) and guesses.search(t.value)]

    assert found == []


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
    made = explain("lake/t", thrown)

    assert type(made) is error
    assert str(made).startswith("lake/t: ")
    assert "\n" not in str(made)
    assert [text for text in says if text not in str(made)] == []


def test_the_file_can_be_asked_for():
    """A program restores what was found damaged."""
    made = explain("lake/t", [READING.format("NO_HINT")])

    assert isinstance(made, DataFileError)
    assert made.path == FILE


@explained
def verb(table, failure):
    raise failure


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
