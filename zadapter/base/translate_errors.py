"""Translation of failures in Spark, formats and stores to errors of zadapter with advice.

Only this module translates exceptions of other programs: :func:`explaining` wraps each public
function. Exceptions of Python's own types, such as ``TypeError``, are not translated.
"""

import errno
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from os import PathLike
from typing import ParamSpec, TypeVar

from zadapter.base.interrupts import reraise
from zadapter.base.java_errors import causes, first_line_of, java_exception
from zadapter.base.secrets import masked
from zadapter.errors import (
    DataFileError,
    EngineError,
    SessionError,
    StoreError,
    UnknownTableError,
    UnsupportedError,
    ZadapterError,
)

P = ParamSpec("P")
R = TypeVar("R")

_FOREIGN = {"fsspec", "obstore", "py4j", "pyarrow", "pyiceberg", "pyspark"}
"""Packages whose exceptions are translated, besides errors of the operating system."""
_URI = r"(?:[a-zA-Z][\w+.-]*:/+|/)[^\s'\"`,;<>|]*[\w/]"
_READING = re.compile(
    rf"(?:reading file|Error reading file:|Checksum error:|column in file|in file) (?P<path>{_URI})"
)
_WORKER = "An exception was thrown from the Python worker"
_WRITING = "Task failed while writing rows to"
_PATH = re.compile(rf"(?<![\w:/.])(?P<path>{_URI})")
_CLASS = re.compile(
    r"\bClass (?P<name>[\w.$]+) was not found"
    r"|(?:ClassNotFoundException|NoClassDefFoundError): (?P<last>\S+)"
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of failure.

    Attributes:
        pattern: Pattern in the text of one of the causes.
        error: The error to raise.
        text: Problem and advice, with placeholders ``{path}``, ``{name}`` (class) and ``{cause}``.
    """

    pattern: re.Pattern[str]
    error: type[ZadapterError]
    text: str


def _kind(pattern: str, error: type[ZadapterError], text: str) -> _Kind:
    return _Kind(re.compile(pattern), error, text)


_KINDS = (
    _kind(
        r"SPARK_JOB_CANCELLED|\bJob \d+ cancelled\b",
        EngineError,
        "its Spark jobs were cancelled, by their group, a tag or in Spark's UI; files that were "
        "not committed were deleted, and the same call goes on with what is left ({cause})",
    ),
    _kind(
        r"No space left on device|Disk quota exceeded|QuotaExceededException|File too large"
        r"|could only be written to 0 of the|\[Errno (?:27|28|122)\]",
        StoreError,
        "no space left for {path}; free space in the table's store, or in spark.local.dir if "
        "that is full, and retry ({cause})",
    ),
    _kind(
        r"AccessDenied|AccessControlException|[Pp]ermission denied|Status Code: 403|403 Forbidden"
        r"|InvalidAccessKeyId|SignatureDoesNotMatch|NoAuthWithAWSException"
        r"|Unable to load credentials|CredentialInitializationException|\[Errno (?:1|13|30)\]"
        r"|Read-only file system|Operation not permitted",
        StoreError,
        "access to {path} is denied; check the credentials and permissions, and retry ({cause})",
    ),
    _kind(
        r"UnknownStoreException|NoSuchBucket",
        UnknownTableError,
        "bucket not found; check its name, and fs.s3a.endpoint if the server is not AWS ({cause})",
    ),
    _kind(
        r"FileNotFoundException|FILE_NOT_EXIST|NoSuchFileException|NoSuchKey|NotFoundException: "
        r"(?:File|Failed to open|Location)|\[Errno 2\]",
        DataFileError,
        "{path} is missing, but the table references it. If a clean-up has just deleted an old "
        "version, retry; otherwise restore the file, or the table to a version without it "
        "({cause})",
    ),
    _kind(
        r"FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|ParquetDecodingException|ParquetCryptoRuntime"
        r"|is not a Parquet file|Parquet file size is 0|ChecksumException|Checksum error"
        r"|could not verify page"
        r"|FAILED_TO_UNCOMPRESS|ZstdException|ZstdIOException|magic bytes not found"
        r"|Couldn't deserialize thrift|can not read class org.apache.parquet|InvalidAvroMagic"
        r"|Not an Avro data file|Invalid sync|AvroRuntimeException|Not a data file",
        DataFileError,
        "{path} is damaged; restore the file, or the table to a version without it ({cause})",
    ),
    _kind(
        r"ClassNotFoundException|NoClassDefFoundError|Class [\w.$]+ was not found"
        r"|UnsatisfiedLinkError",
        SessionError,
        "the Spark session lacks the class {name}, required by a codec, a file system or another "
        "setting; add its jar to the session, or change the setting ({cause})",
    ),
    _kind(
        r"OutOfMemoryError|Java heap space|GC overhead limit",
        SessionError,
        "Spark ran out of memory; start a session with a larger spark.driver.memory, and a larger "
        "spark.executor.memory on a cluster ({cause})",
    ),
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
        "the store or the catalog does not respond; check the connection, and retry ({cause})",
    ),
    _kind(
        r"file counts are missing|No file counts in manifest",
        UnsupportedError,
        "the table's manifests, of an old writer, do not count their files, so Iceberg cannot list "
        "them; copy the table by CREATE TABLE ... AS SELECT ({cause})",
    ),
    _kind(
        r"IllegalArgumentException|NumberFormatException|INVALID_CONF_VALUE"
        r"|algorithm version is supported",
        SessionError,
        "Spark or the format rejects a value, most likely of a setting; check the session's "
        "parquet.* and spark.sql.* settings, and the table's properties ({cause})",
    ),
)


@contextmanager
def explaining(table: str) -> Iterator[None]:
    """Translate exceptions of other programs to errors of zadapter.

    The cause is the original exception, unless it contains a secret, which a traceback would print.

    Args:
        table: The table, as the user named it.

    Raises:
        StoreError: The store is full, does not answer, or denies access.
        UnknownTableError: There is no such bucket.
        DataFileError: A file is missing or damaged.
        SessionError: The session lacks a class or memory, has ended, or has an invalid setting.
        UnsupportedError: Iceberg itself cannot list the files of the table.
        EngineError: Spark, a format or a library has failed in another way.
    """
    try:
        yield
    except ZadapterError as error:
        reraise(error)
        _mask_causes(error)
        raise
    except Exception as error:
        reraise(error)
        if not is_foreign(error):
            raise
        explained = explain(table, texts(error))
        explained.__cause__ = error
        _mask_causes(explained)
        raise explained from explained.__cause__


def explained(verb: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function whose first argument is a table with :func:`explaining`."""

    @wraps(verb)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        table = args[0] if args else kwargs.get("table")
        with explaining(str(table) if isinstance(table, str | PathLike) else "the table"):
            return verb(*args, **kwargs)

    return wrapped


def is_foreign(error: BaseException) -> bool:
    """Return whether Spark, a library or the operating system has raised an exception."""
    return isinstance(error, OSError) or any(
        class_.__module__.partition(".")[0] in _FOREIGN for class_ in type(error).__mro__
    )


def texts(error: BaseException) -> list[str]:
    """Return an exception and its causes as text, outermost first."""
    messages: list[str] = []
    link: BaseException | None = error
    while link is not None and len(messages) < len(errno.errorcode):
        if java_exception(link) is not None:
            messages += causes(link)
        else:
            messages.append(f"{type(link).__name__}: {link}")
        link = link.__cause__
    return messages


def explain(table: str, messages: Sequence[str]) -> ZadapterError:
    """Return the error for a failure.

    Args:
        table: The table, as the user named it.
        messages: The exceptions as text, outermost first.
    """
    by_python = next((text for text in reversed(messages) if _WORKER in text), None)
    if by_python is not None:
        return EngineError(
            f"{table}: a Python function of the query failed: {_raised(by_python)}; fix it, and "
            "retry"
        )
    cause = root_cause(messages)
    for kind in _KINDS:
        hit = next((text for text in reversed(messages) if kind.pattern.search(text)), None)
        if hit is None:
            continue
        reads = kind.error is DataFileError
        # the damaged file is the one being read, not the one being written
        path = _path([text for text in messages if not (reads and _WRITING in text)], hit)
        name = _CLASS.search(hit)
        missing = (name and (name["name"] or name["last"])) or "named in the cause"
        shown = path or f"a file of {table}{' (see the log of Spark)' if reads else ''}"
        message = f"{table}: {kind.text.format(path=shown, cause=cause, name=missing)}"
        if kind.error is DataFileError:
            return DataFileError(message, path)
        return kind.error(message)
    return EngineError(
        f"{table}: {cause}; Spark, the format or a library raised this error. In Python, the "
        "exception's __cause__ is the original error"
    )


def _raised(traceback: str) -> str:
    """Return the exception at the end of a Python traceback in the message of a Spark error."""
    lines = traceback.partition("\n\tat ")[0].splitlines()
    return first_line_of(next(line.strip() for line in reversed(lines) if line.strip()))


def root_cause(messages: Sequence[str]) -> str:
    """Return the first line of the innermost exception with a message."""
    non_empty = (text for text in reversed(messages) if text.partition(": ")[2].strip())
    name, _, message = next(non_empty, messages[-1] if messages else "no message").partition(": ")
    if not message.strip():
        return first_line_of(name).rstrip(".")
    # masked as one text, since a secret may be recognised by the text before it
    line = next(part for part in message.splitlines() if part.strip())
    return first_line_of(f"{name.rpartition('.')[2]}: {line.strip()}").rstrip(".")


def _path(messages: Sequence[str], hit: str) -> str | None:
    """Return the path of the file that caused a failure, or None if no text names it."""
    for pattern, among in ((_READING, messages), (_PATH, [hit]), (_PATH, messages)):
        for text in among:
            named = pattern.search(text.partition("\n\tat ")[0])
            if named is not None:
                return named["path"]
    return None


class _Masked(Exception):  # noqa: N818 - stands for an exception of any name
    """An exception whose text contained a secret."""


def _mask_causes(error: BaseException) -> None:
    """Replace causes of an error that contain secrets, since a traceback prints all causes."""
    link = error
    for _ in errno.errorcode:
        behind = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if behind is None:
            return
        text = f"{type(behind).__name__}: {behind}"
        if masked(text) != text:
            link.__cause__ = _Masked(masked(text))
            return
        link = behind
