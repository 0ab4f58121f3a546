"""Failures that were taken for others: texts of Java, and what is said of them."""

import pytest

from tests.base.test_translate_errors import ABORTED, FILE, READING
from zadapter.base.failure_kinds import KINDS
from zadapter.base.translate_errors import translate_error
from zadapter.errors import DataFileError, EngineError, SessionError, StoreError


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
        ["org.sqlite.SQLiteException: [SQLITE_FULL] Insertion failed because database is full"],
        StoreError,
        ["no space left"],
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
    made = translate_error("lake/t", thrown)

    assert type(made) is error
    assert [text for text in says if text not in str(made)] == []
    assert not {"is damaged;", "likely", "probably"} & set(str(made).split())
    assert " is damaged" not in str(made).replace("if the file is damaged", "")


def test_who_is_told_to_retry_may_retry():
    """A program follows ``retryable``, and a person the text of the same error."""
    told = {kind.error for kind in KINDS if "retry" in kind.text}

    assert told
    assert [error.__name__ for error in told if not error.retryable] == []
