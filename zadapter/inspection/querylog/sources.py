"""The forms of a log, and its entries as rows of one form."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.locations import reachable
from zadapter.base.names import quote
from zadapter.base.printable import abridge
from zadapter.base.quantities import MOST_WEIGHT, is_weight
from zadapter.base.translate_errors import root_cause, texts
from zadapter.errors import UsageError
from zadapter.inspection.querylog.entries import (
    OTHER_TABLE,
    SCANS,
    Grouped,
    group_rows,
    group_texts,
)
from zadapter.inspection.querylog.json_lines import entries_of_lines, rows_of_lines
from zadapter.inspection.querylog.spelling import statements, without_comments
from zadapter.spark.jvm.gateway import Py4JJavaError, gateway_of, java_session, scala_context
from zadapter.spark.jvm.java_classes import java_classes

Queries: TypeAlias = str | PathLike[str] | Sequence[str] | Sequence[tuple[str, float]] | DataFrame
"""What is passed as a log."""
_COMPRESSED = (".zstd", ".lz4", ".snappy", ".lzf")
"""Ends of the names of event logs in the containers of Spark's own codecs."""
_PATH = re.compile(
    r"[a-z][a-z0-9+.-]*:/|\S*/[^\s=<>()']*\Z|.*\.(sql|csv|parquet|json|jsonl|ndjson|gz|bz2)\Z",
    re.IGNORECASE,
)
_QUERY = re.compile(r"\b(select|from|where)\b|[=<>]", re.IGNORECASE)
"""What a query or a condition has, and the name of a column has not."""
_MOST_FILES = 100_000
_FORMS = (
    "pass a .sql file, a CSV or Parquet file with a column of texts, lines of JSON with a key sql, "
    "Spark's event log, or scan reports of Iceberg as lines of JSON"
)

_TEXTS = ("sql", "query", "text", "query_text", "statement", "statement_text", "querytext")
_COUNT = "count"
_WEIGHTS = ("weight", _COUNT, "seconds")
_TIMES = (
    "time", "timestamp", "ts", "start_time", "query_start_time", "event_time", "started",
    "started_at", "created", "created_at", "executed_at", "date",
)  # fmt: skip
_DIGITS = r"^[+-]?[0-9]+([.][0-9]+)?$"
_TEMPORAL = (T.TimestampType, T.TimestampNTZType, T.DateType)


def read_entries(queries: Queries, session: SparkSession, name: str) -> Grouped:
    """Read a log and group its entries.

    Args:
        queries: The log.
        session: Reads files.
        name: Last part of the table's name. Of scans that the log reports, only those with this
            name in their table or location are kept; empty: all scans of all tables.

    Raises:
        UsageError: The log has no known form, cannot be read or is empty.
    """
    if isinstance(queries, DataFrame):
        return group_rows(entries_of(queries, "queries="), "queries=")
    if isinstance(queries, PathLike) or (isinstance(queries, str) and is_path(queries)):
        return _read_path(str(fspath(queries)), session, name)
    if isinstance(queries, str):
        queries = [queries]
    given: object = queries
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        raise UsageError(
            f"queries= must be a list of texts, a path or a DataFrame, not {queries!r:.60}"
        )
    if not queries:
        raise UsageError("queries= is an empty log; pass queries of this table")
    return group_texts([_check_entry(entry, number) for number, entry in enumerate(queries)])


def is_path(text: str) -> bool:
    """Return whether a text is the path of a log, and neither a query nor a condition."""
    try:
        return bool(_PATH.match(text)) or Path(text).exists()
    except (OSError, ValueError):  # too long for a path
        return False


def _check_entry(entry: object, number: int) -> tuple[str, float]:
    """Return an entry of a list as a text and a weight.

    Raises:
        UsageError: It is neither a text nor a text with a positive number.
    """
    text, weight = (entry, 1.0) if isinstance(entry, str) else _pair(entry)
    shown = f"a text with the weight {weight!r:.60}" if isinstance(text, str) else f"{entry!r:.60}"
    if isinstance(text, str) and _PATH.fullmatch(text.strip()) and " " not in text.strip():
        raise UsageError(f"queries[{number}] is the path {text!r}; pass one path alone as queries=")
    if not isinstance(text, str) or not is_weight(weight):
        raise UsageError(
            f"queries[{number}] is {shown}; pass texts, or pairs of a text and a number above 0 "
            f"and up to {MOST_WEIGHT:g}"
        )
    return text, float(weight)


def _pair(entry: object) -> tuple[Any, Any]:
    if isinstance(entry, Sequence) and len(entry) == 2:  # noqa: PLR2004
        return entry[0], entry[1]
    return None, None


def _read_path(path: str, session: SparkSession, name: str) -> Grouped:
    shown = f"queries={path!r}"
    try:
        files = _files(path, session)
        if not files:
            raise UsageError(f"{shown} has no files; {_FORMS}")
        return _read_files(files, session, name, shown)
    except (PySparkException, Py4JJavaError) as error:
        cause = root_cause(texts(error))
        raise UsageError(f"{shown} cannot be read: {cause}; {_FORMS}") from error


def _read_files(files: list[str], session: SparkSession, name: str, shown: str) -> Grouped:
    first, *others = {_kind(file): file for file in files}.items()
    if others:
        raise UsageError(
            f"{shown} has files of several forms, such as {first[1]} and {others[0][1]}; pass "
            "those of one form"
        )
    kind = first[0]
    if kind == "parquet":
        return group_rows(entries_of(session.read.parquet(*files), shown), shown)
    if kind == "csv":
        rows = session.read.options(header=True, multiLine=True, escape='"').csv(files)
        _check_header(rows.columns, shown)
        return group_rows(entries_of(rows, shown), shown)
    if kind == "sql":
        scripts = session.read.text(files, wholetext=True)
        found = [
            (text, 1.0)
            for row in scripts.orderBy(F.input_file_name()).collect()
            for text in statements(row["value"])
            if without_comments(text).strip()
        ]
        if not found:
            raise UsageError(f"{shown} is an empty log; pass one with queries of this table")
        return group_texts(found)
    with _lines(files, session, shown) as lines:
        entries = entries_of_lines(lines, name)
        objects = rows_of_lines(lines) if entries.isEmpty() else None
        if objects is None:
            return group_rows(entries, shown, OTHER_TABLE)
        _check_keys(objects.columns, shown)
        return group_rows(entries_of(objects, shown), shown)


def _check_keys(names: list[str], shown: str) -> None:
    """Refuse lines of JSON that have no queries; one text alone may be anything there."""
    if _find_column(_TEXTS, names) is None:
        raise UsageError(
            f"{shown} has lines of JSON without a query: their keys are {abridge(names)}; name the "
            f"text of a query one of: {', '.join(_TEXTS)}; or {_FORMS}"
        )


def _check_header(names: Sequence[str], shown: str) -> None:
    """Refuse a CSV file whose first line is a query, which would be lost as a header."""
    queries = [name for name in names if _QUERY.search(name)]
    if queries:
        raise UsageError(
            f"{shown} has no header: its first line has {queries[0]!r:.60}; add a line with the "
            "names of the columns, such as query"
        )


def _kind(file: str) -> str:
    """Return the form of a file by its name; all but three have lines of JSON."""
    name = PurePosixPath(file).name.removesuffix(".gz").removesuffix(".bz2")
    kind = name.rpartition(".")[2].lower()
    return kind if kind in {"parquet", "csv", "sql"} else "json"


def _files(path: str, session: SparkSession) -> list[str]:
    """Return the files at a path, in order, without those that Spark hides.

    Raises:
        UsageError: There is nothing at the path.
    """
    jvm = java_classes(session)
    java: Any = java_session(session)
    root = jvm.org.apache.hadoop.fs.Path(reachable(jvm, java, path))
    system = root.getFileSystem(java.sessionState().newHadoopConf())
    if not system.exists(root):
        raise UsageError(
            f"queries={path!r}: there is no such file or folder; pass a list for texts of queries"
        )
    listed, found = system.listFiles(root, True), list[str]()  # noqa: FBT003
    while listed.hasNext():
        if len(found) == _MOST_FILES:
            raise UsageError(
                f"queries={path!r} has more than {_MOST_FILES:,} files; pass a folder with fewer"
            )
        file = listed.next().getPath()
        if not str(file.getName()).startswith(("_", ".", "appstatus_")):
            found.append(str(file.toString()))
    return sorted(found)


@dataclass(frozen=True, slots=True)
class _Copies:
    """Copies of compressed event logs, without the compression."""

    session: SparkSession
    folder: str

    def of(self, file: str, number: int) -> str:
        """Copy a file, within the JVM."""
        jvm = java_classes(self.session)
        java: Any = java_session(self.session)
        path = jvm.org.apache.hadoop.fs.Path(file)
        system = path.getFileSystem(java.sessionState().newHadoopConf())
        reader = jvm.org.apache.spark.deploy.history.EventLogFileReader
        target = f"{self.folder}/{number}.json"
        stream = reader.openEventLog(path, system)
        try:
            options = gateway_of(self.session.sparkContext).new_array(
                jvm.java.nio.file.CopyOption, 0
            )
            jvm.java.nio.file.Files.copy(stream, jvm.java.io.File(target).toPath(), options)
        finally:
            stream.close()
        return f"file://{target}"


@contextmanager
def _lines(files: list[str], session: SparkSession, shown: str) -> Iterator[DataFrame]:
    """Read the lines of JSON files.

    Spark compresses its event logs in containers that its readers of text do not know. They are
    copied to a local folder first.

    Raises:
        UsageError: The executors do not share the local disk, so that they cannot read the copies.
    """
    compressed = [file for file in files if _is_compressed(file)]
    if compressed and not scala_context(session.sparkContext).isLocal():
        raise UsageError(
            f"{shown}: {compressed[0]} is compressed with a codec of Spark, which executors cannot "
            "read; decompress the files, or call this function in a local session"
        )
    with TemporaryDirectory(prefix="zadapter-events-") as folder:
        copies = _Copies(session, folder)
        readable = [
            copies.of(file, number) if _is_compressed(file) else file
            for number, file in enumerate(files)
        ]
        yield session.read.text(readable)


def _is_compressed(file: str) -> bool:
    return file.removesuffix(".compact").removesuffix(".inprogress").endswith(_COMPRESSED)


def entries_of(rows: DataFrame, shown: str) -> DataFrame:
    """Return the entries of a table of texts, in the form of ``querylog.entries``.

    Args:
        rows: A column ``sql``, ``query``, ``text``, ``query_text`` or ``statement``, or one column
            of texts; at will ``weight``, ``count`` or ``seconds``, and a time.
        shown: The log, as messages name it.

    Raises:
        UsageError: There is no column of texts.
    """
    names = rows.columns
    texts = [f.name for f in rows.schema.fields if isinstance(f.dataType, T.StringType)]
    text = _find_column(_TEXTS, texts)
    if text is None:
        others = [name for name in texts if name.lower() not in (*_WEIGHTS, *_TIMES)]
        if len(others) != 1:
            raise UsageError(
                f"{shown} has no column of texts among {abridge(names) or 'no columns'}; name "
                f"it one of: {', '.join(_TEXTS)}"
            )
        text = others[0]
    weight = _find_column(_WEIGHTS, [name for name in names if name != text])
    moment, second = _times(rows, text)
    counts = weight is None or weight.lower() == _COUNT
    return rows.select(
        F.trim(F.coalesce(F.col(quote((text,))), F.lit(""))).alias("text"),
        F.expr(f"CAST(array() AS {SCANS})").alias("scans"),
        (F.lit(1.0) if weight is None else _number(weight)).alias("weight"),
        moment.alias("moment"),
        (second if counts else _no_number()).alias("second"),
    )


def _find_column(choices: tuple[str, ...], names: list[str]) -> str | None:
    """Return the first of *choices* that is a column's name, as it is spelled."""
    lowered = {name.lower(): name for name in names}
    return next((lowered[choice] for choice in choices if choice in lowered), None)


def _number(name: str) -> Column:
    return F.expr(f"try_cast({quote((name,))} AS double)")


def _times(rows: DataFrame, text: str) -> tuple[Column, Column]:
    """Return a number that orders the entries by time, and the same as seconds since 1970.

    Both are null where there is no time, seconds also where it is a number in an unknown unit.
    """
    temporal = [f.name for f in rows.schema.fields if isinstance(f.dataType, _TEMPORAL)]
    names = [name for name in rows.columns if name != text]
    name = _find_column(_TIMES, temporal) or (temporal[0] if len(temporal) == 1 else None)
    name = name or _find_column(_TIMES, names)
    if name is None:
        return _no_number(), _no_number()
    if isinstance(rows.schema[name].dataType, T.NumericType):
        return _number(name), _no_number()
    second = F.expr(f"CAST(try_cast({quote((name,))} AS timestamp) AS double)")
    if not isinstance(rows.schema[name].dataType, T.StringType):
        return second, second
    # a CSV file has texts alone, and Spark takes four to six digits for a year
    is_number = F.coalesce(F.trim(F.col(quote((name,)))).rlike(_DIGITS), F.lit(False))  # noqa: FBT003
    second = F.when(~is_number, second)
    return F.when(is_number, _number(name)).otherwise(second), second


def _no_number() -> Column:
    return F.lit(None).cast("double")
