"""Tables, views and folders that patterns match, as catalogs and file systems list them."""

import os.path
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from pyspark.sql import Row, SparkSession

from zadapter.backend.plugins import formats
from zadapter.base.java_errors import causes
from zadapter.base.locations import STORE, folders_below, identify, reachable
from zadapter.base.names import NameParts, join, quote, split
from zadapter.base.translate_errors import root_cause, texts
from zadapter.lake import patterns
from zadapter.lake.patterns import literal
from zadapter.spark.jvm import spark_names
from zadapter.spark.jvm.gateway import JavaObject, hadoop_conf, java_session
from zadapter.spark.jvm.java_classes import java_classes

_METADATA = "metadata/*.metadata.json"
"""Metadata of Iceberg, which declares no log, since other folders may be called ``metadata``."""
_DENIED = ("AccessControlException", "AccessDeniedException")
_SPECIAL = re.compile(r"[*?\[\]{}\\]")
_VIEW = "it is a view; match the tables that it reads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A pattern of paths or of names."""

    text: str
    catalog: str | None
    """Catalog of the names; None: it matches paths."""
    parts: NameParts = ()
    """Patterns of the levels of the namespace, and of the name."""
    has_namespace: bool = True
    """Whether the text states a catalog or a namespace."""

    @property
    def has_wildcards(self) -> bool:
        """Whether it may match several tables."""
        return patterns.has_wildcards(self.text, is_path=self.catalog is None)

    def may_meet(self, other: "Pattern") -> bool:
        """Return whether two patterns of names may match the same one; False is certain."""
        return self.catalog == other.catalog and patterns.may_meet(self.parts, other.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a pattern matches."""

    table: str
    """Path in the scheme of the pattern, or identifier with its catalog."""
    parts: NameParts = ()
    """Catalog, namespace and name; empty for a path."""
    location: str | None = None
    """Location of a folder, unescaped; None for a name."""
    refused: str | None = None
    """Why it is no table; None: it may be one."""
    failed: bool = False
    """Whether a catalog or a file system has refused to list it."""

    @property
    def place(self) -> Hashable:
        """A value that is equal for all spellings of the path or name."""
        return identify(self.location) if self.location else self.parts or self.table


def read(spark: SparkSession, text: str) -> Pattern:
    """Return a pattern; one of names gets the current catalog and namespace if it states none.

    Raises:
        UsageError: The text is no pattern.
    """
    if spark_names.is_path(text):
        return Pattern(text=text, catalog=None)
    written, parts = patterns.split(text)
    name = spark_names.resolve(spark, written)
    own = parts[1:] if spark_names.has_catalog(spark, written) else parts
    current = name.parts[: len(name.parts) - len(own)]
    return Pattern(
        text=text,
        catalog=name.catalog,
        parts=(*map(literal, current), *own),
        has_namespace=len(written) > 1,
    )


def list_matches(spark: SparkSession, pattern: Pattern) -> list[Candidate]:
    """Return what a pattern matches; a catalog or file system that fails is refused itself."""
    try:
        if pattern.catalog is None:
            return _list_folders(spark, pattern)
        return list(_list_names(spark, pattern, (pattern.catalog,)))
    except spark_names.JVM_ERRORS as error:
        return [Candidate(table=pattern.text, refused=explain(error), failed=True)]


def find_excluded(spark: SparkSession, excluded: Sequence[Pattern]) -> Callable[[Candidate], bool]:
    """Return whether one of the patterns matches a table, or a folder above it."""
    folders = [
        str(status.getPath())
        for pattern in excluded
        if pattern.catalog is None
        for status in _glob(spark, _path(spark, pattern.text))
    ]
    named = [(literal(each.catalog), *each.parts) for each in excluded if each.catalog]

    def is_excluded(candidate: Candidate) -> bool:
        location = candidate.location
        if location is None:
            own = candidate.parts  # a temporary view has its name alone
            return any(patterns.matches(parts[-len(own) :], own) for parts in named)
        return any(folders_below(location, folder) is not None for folder in folders)

    return is_excluded


def explain(error: Exception) -> str:
    """Return why a catalog or a file system does not list what it has."""
    return f"it cannot be listed: {root_cause(texts(error))}"


def _list_names(spark: SparkSession, pattern: Pattern, namespace: NameParts) -> Iterator[Candidate]:
    """Yield tables and views below a namespace, sorted; one that cannot be listed is refused."""
    level = len(namespace) - 1
    wanted, has_levels = [pattern.parts[level]], level < len(pattern.parts) - 1
    try:
        inner = _list_namespaces(spark, namespace) if has_levels else []
        tables = [] if has_levels else _list_tables(spark, namespace)
    except spark_names.JVM_ERRORS as error:
        reason = explain(error)
        if len(pattern.parts) == 1:
            reason += f"; {join(namespace)}.*.* matches tables in namespaces"
        text = f"{join(namespace)}.*" if level else pattern.text
        yield Candidate(table=text, refused=reason, failed=True)
        return
    for name in inner:
        if patterns.matches(wanted, [name]):
            yield from _list_names(spark, pattern, (*namespace, name))
    # a name with a namespace is never that of a temporary view
    fewest = len(namespace) + 1 if pattern.has_namespace else 1
    for table in tables:
        if len(table.parts) >= fewest and patterns.matches(wanted, table.parts[-1:]):
            yield table


def _list_namespaces(spark: SparkSession, above: NameParts) -> list[str]:
    rows = spark.sql(f"SHOW NAMESPACES IN {quote(above)}").collect()
    return sorted(split(str(row[0]))[-1] for row in rows)


def _list_tables(spark: SparkSession, namespace: NameParts) -> list[Candidate]:
    """Return tables and views of a namespace, and the session's views, which are in none."""
    tables = spark.sql(f"SHOW TABLES IN {quote(namespace)}").collect()
    try:
        views = spark.sql(f"SHOW VIEWS IN {quote(namespace)}").collect()
    except spark_names.JVM_ERRORS:  # a catalog without views
        views = []
    kinds = dict[NameParts, str | None].fromkeys(_name_parts(namespace, row) for row in tables)
    kinds |= {_name_parts(namespace, row): _VIEW for row in views}
    return [
        Candidate(table=join(parts), parts=parts, refused=kind)
        for parts, kind in sorted(kinds.items(), key=lambda item: item[0])
    ]


def _name_parts(namespace: NameParts, row: Row) -> NameParts:
    _, name, is_temporary = row[:3]
    return (name,) if is_temporary else (*namespace, name)


def _list_folders(spark: SparkSession, pattern: Pattern) -> list[Candidate]:
    """Return folders, sorted, without those inside of tables unless the text names them."""
    scheme = re.match(STORE, pattern.text)
    holds_table = _checker(spark)
    found = []
    for status in _glob(spark, _path(spark, pattern.text)):
        path = status.getPath()
        shown = (scheme[0] if scheme else "") + str(path.toUri().getPath())
        if pattern.has_wildcards and (
            not status.isDirectory() or patterns.is_inner(pattern.text, shown)
        ):
            continue
        outer = next(filter(holds_table, _parents(path)), None)
        if outer is not None and pattern.has_wildcards:
            continue
        found.append(
            Candidate(
                table=shown,
                location=str(path),
                refused=outer and f"it is inside of {outer}, which is a table; match that",
            )
        )
    return sorted(found, key=lambda each: each.table)


def _path(spark: SparkSession, location: str) -> JavaObject:
    """Return a Hadoop path."""
    jvm = java_classes(spark)
    return jvm.org.apache.hadoop.fs.Path(reachable(jvm, java_session(spark), location))


def _glob(spark: SparkSession, path: JavaObject) -> list[JavaObject]:
    """Return the status of what a pattern matches."""
    found = path.getFileSystem(hadoop_conf(spark)).globStatus(path)
    return [] if found is None else [found[at] for at in range(len(found))]


def _parents(path: JavaObject) -> Iterator[str]:
    while (path := path.getParent()) is not None:
        yield str(path)


def find_logs(spark: SparkSession, folder: str) -> list[str]:
    """Return the formats whose log or metadata a folder has, which is unescaped."""
    return _log_finder(spark)(folder)


def find_tables(spark: SparkSession, folders: Iterable[str]) -> set[str]:
    """Return which of some folders, and of those above them, hold a table's log or metadata.

    A link on local disk may lead into the folder of another table, so the folders above its target
    count, too.

    Args:
        spark: A session.
        folders: Folders with their schemes, unescaped, as Hadoop and Iceberg list them.
    """
    every = set[str]()
    for folder in chain.from_iterable(map(_spellings, folders)):
        above = folder
        while above not in every and len(above) > len(_root(above)):
            every.add(above)
            above = above.rpartition("/")[0]
    return set(filter(_checker(spark), every))


def _spellings(folder: str) -> Iterator[str]:
    """Yield a folder, and where it lies on local disk if links lead there."""
    yield folder
    root = _root(folder)
    if root.startswith("file:"):
        yield f"file:{os.path.realpath(folder.removeprefix(root))}"


def qualify(spark: SparkSession, location: str) -> str:
    """Return a location with its scheme and host, unescaped, as Hadoop lists what lies in it.

    A catalog may state ``/warehouse/db/t`` or ``hdfs:///warehouse/db/t``.
    """
    path = _path(spark, location)
    return str(path.getFileSystem(hadoop_conf(spark)).makeQualified(path))


def _root(location: str) -> str:
    """Return the scheme and the host of a location, which end where its folders begin."""
    store = re.match(STORE, location)
    return store[0] if store else ""


def _checker(spark: SparkSession) -> Callable[[str], bool]:
    """Return a function that tells whether a folder holds a table's log or metadata.

    It looks for them alone. To open a folder of many tables would list the files of all.
    """
    find = _log_finder(spark)

    @cache
    def holds_table(folder: str) -> bool:
        try:
            return bool(find(folder))
        except spark_names.JVM_ERRORS as error:
            if any(name in line for line in causes(error) for name in _DENIED):
                return False  # a user may read below a folder, and not the folder
            raise

    return holds_table


def _log_finder(spark: SparkSession) -> Callable[[str], list[str]]:
    jvm = java_classes(spark)
    path_of = jvm.org.apache.hadoop.fs.Path
    logs = {name: form.log for name, form in formats().items() if form.log}

    def find(folder: str) -> list[str]:
        folder = reachable(jvm, java_session(spark), folder)
        escaped = _SPECIAL.sub(r"\\\g<0>", folder).rstrip("/")
        metadata = path_of(f"{escaped}/{_METADATA}")
        files = metadata.getFileSystem(hadoop_conf(spark))
        found = [name for name, log in logs.items() if files.exists(path_of(folder, log))]
        return [*found, "iceberg"] if files.globStatus(metadata) else found

    return find
