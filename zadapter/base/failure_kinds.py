"""Kinds of failures of Spark, formats and stores, by the texts of their exceptions.

A text states what is certain: what has failed, where, and the innermost cause. It advises what the
pattern proves, or names the cases.
"""

import re
from dataclasses import dataclass

from zadapter.errors import (
    DataFileError,
    EngineError,
    SessionError,
    StoreError,
    UnknownTableError,
    UnsupportedError,
    ZadapterError,
)


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A kind of failure.

    Attributes:
        pattern: Pattern in the text of one of the causes.
        error: The error to raise.
        text: Problem and advice, with placeholders: ``{cause}``, the innermost exception;
            ``{path}``, the file that is read; ``{at}`` and ``{to}``, a path that the exception of
            the pattern names, or nothing; ``{where}``, what Spark was doing, if it is known;
            ``{name}``, a class; ``{lost}``, why an executor was lost.
    """

    pattern: re.Pattern[str]
    error: type[ZadapterError]
    text: str


def _kind(pattern: str, error: type[ZadapterError], text: str) -> FailureKind:
    return FailureKind(re.compile(pattern), error, text)


KINDS = (
    _kind(
        r"SPARK_JOB_CANCELLED|\bJob \d+ cancelled\b",
        EngineError,
        "its Spark jobs were cancelled, by their group, a tag or in Spark's UI; the same call goes "
        "on with what is left ({cause})",
    ),
    _kind(
        r"No space left on device|Disk quota exceeded|QuotaExceededException|\[Errno (?:28|122)\]"
        r"|SQLITE_FULL",
        StoreError,
        "no space left{at}; Spark writes to the table's store and to spark.local.dir: free space "
        "in the one that is full, and retry ({cause})",
    ),
    _kind(
        r"File too large|\[Errno 27\]",
        StoreError,
        "no space left{at} below a limit on the size of files; raise the limit, or free space that "
        "it counts, and retry ({cause})",
    ),
    _kind(
        r"could only be written to 0 of the",
        StoreError,
        "HDFS has no node that takes the blocks of a file; free space or start nodes, and retry "
        "({cause})",
    ),
    _kind(
        r"Read-only file system|\[Errno 30\]",
        StoreError,
        "the file system is read-only{at}; pass a table that can be written, or mount it for "
        "writing ({cause})",
    ),
    _kind(
        r"NoAuthWithAWSException|Unable to load credentials|CredentialInitializationException",
        StoreError,
        "no credentials for S3 were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
        "AWS_PROFILE, or fs.s3a.* in the session, and retry ({cause})",
    ),
    _kind(
        r"AccessDenied|AccessControlException|[Pp]ermission denied|Status Code: 403|403 Forbidden"
        r"|InvalidAccessKeyId|SignatureDoesNotMatch|\[Errno (?:1|13)\]|Operation not permitted",
        StoreError,
        "access{to} is denied; check the credentials and permissions, and retry ({cause})",
    ),
    _kind(
        r"UnsupportedFileSystemException|No FileSystem for scheme",
        SessionError,
        "the Spark session has no file system for a path; load its jar when the session starts, "
        "for S3 by zadapter.spark.session(stores=['s3']) ({cause})",
    ),
    _kind(
        r"UnknownStoreException|NoSuchBucket",
        UnknownTableError,
        "bucket not found; check its name, and AWS_ENDPOINT_URL or fs.s3a.endpoint if the server "
        "is not AWS ({cause})",
    ),
    _kind(
        r"Could not initialize class",
        SessionError,
        "a class of the Spark session cannot be initialized; its first failure is in the log of "
        "Spark ({cause})",
    ),
    _kind(
        r"UnsatisfiedLinkError",
        SessionError,
        "a native library cannot be loaded by the Spark session; install the one that the cause "
        "names, for this system ({cause})",
    ),
    _kind(
        r"ClassNotFoundException|NoClassDefFoundError|Class [\w.$]+ was not found",
        SessionError,
        "the Spark session lacks the class {name}; add its jar to the session, or change the "
        "setting that names the class, if one does ({cause})",
    ),
    _kind(
        r"ExecutorLostFailure",
        EngineError,
        "an executor was lost while it ran a task; the log of the cluster has the reason ({lost})",
    ),
    _kind(
        r"Java heap space|GC overhead limit",
        SessionError,
        "Spark ran out of memory; start a session with a larger spark.driver.memory, and a larger "
        "spark.executor.memory on a cluster ({cause})",
    ),
    _kind(r"OutOfMemoryError|OUT_OF_MEMORY", SessionError, "Spark ran out of memory ({cause})"),
    _kind(
        r"Py4JNetworkError|Answer from Java side is empty|ConnectionRefusedError"
        r"|stopped SparkContext|SparkContext was shut down|SparkContext has been shutdown",
        SessionError,
        "the Spark session has ended; start a new one, and check Spark's log for the reason "
        "({cause})",
    ),
    _kind(
        r"Unable to execute HTTP request|AWSClientIOException|AWSStatus5\d\dException"
        r"|ApiCall(?:Attempt)?TimeoutException|UnknownHostException|NoRouteToHostException"
        r"|Connect(?:ion)?(?:Timeout|Closed)?Exception|SocketTimeoutException"
        r"|NoHttpResponseException|Connection (?:reset|refused|timed out)",
        StoreError,
        "a server does not respond: the store, the catalog or a node of Spark; check the "
        "connection, and retry ({cause})",
    ),
    _kind(
        r"file counts are missing|No file counts in manifest",
        UnsupportedError,
        "the table's manifests, of an old writer, do not count their files, so Iceberg cannot list "
        "them; copy the table by CREATE TABLE ... AS SELECT ({cause})",
    ),
    _kind(
        r"is not a Parquet file|Parquet file size is 0|ChecksumException|Checksum error"
        r"|could not verify page|[Cc]ould not decompress page"
        r"|FAILED_TO_UNCOMPRESS|ZstdException|ZstdIOException|magic bytes not found"
        r"|Couldn't deserialize thrift|can not read class org.apache.parquet|InvalidAvroMagic"
        r"|Not an Avro data file|Invalid sync|Not a data file",
        DataFileError,
        "{path} is damaged; restore the file, or the table to a version without it ({cause})",
    ),
    _kind(
        r"FILE_NOT_EXIST|NotFoundException: (?:File|Failed to open|Location)"
        r"|(?:FileNotFoundException|NoSuchFileException|NoSuchKey|\[Errno 2\])[^\n]*"
        r"\.(?:parquet|rows|avro|orc|bin|puffin)\b",
        DataFileError,
        "{path} is missing; restore the file, or the table to a version without it. If a clean-up "
        "has deleted an old version during the call, a new call reads the present one ({cause})",
    ),
    _kind(
        r"FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|ParquetDecodingException|ParquetCryptoRuntime"
        r"|AvroRuntimeException",
        DataFileError,
        "{path} cannot be read ({cause}); if the file is damaged, restore it, or the table to a "
        "version without it",
    ),
    _kind(
        r"INVALID_CONF_VALUE|algorithm version is supported",
        SessionError,
        "Spark rejects the value of a setting; change it ({cause})",
    ),
    _kind(
        r"IllegalArgumentException|NumberFormatException",
        SessionError,
        "Spark, the format or a library rejects a value{where} ({cause})",
    ),
)
