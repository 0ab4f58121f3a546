"""Lookup of Iceberg tables, and refusal of tables that cannot be rewritten safely."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zadapter.base.java_errors import causes, first_line
from zadapter.base.locations import reachable, remove_new_warehouse
from zadapter.base.names import NameParts
from zadapter.errors import (
    ConflictError,
    SessionError,
    UnknownTableError,
    UnsupportedError,
)
from zadapter.spark.compat.s3a import advise_jar, hadoop_of_jvm
from zadapter.spark.compat.spark_api import settings as all_settings
from zadapter.spark.jvm import spark_names
from zadapter.spark.jvm.gateway import scala_context
from zadapter_iceberg import local_catalog
from zadapter_iceberg.columns import FUNCTIONS
from zadapter_iceberg.jvm import JavaObject, Jvm

_BY_PATH = re.compile(r"(?i)iceberg\.`(?P<path>(?:[^`]|``)+)`\Z")
_CATALOG = re.compile(r"spark\.sql\.catalog\.([^.]+)\Z")
_CLASSES = {f"org.apache.iceberg.spark.Spark{kind}Catalog" for kind in ("", "Session")}
"""Classes of catalogs that have names of tables. Others of Iceberg have tables under way, such as
the one that it defines in a session that has read a table by its path."""
_INTERNAL_CATALOGS = {"default_iceberg", FUNCTIONS}
"""Catalogs that Iceberg and zadapter define for paths and functions."""
_ABSENT = re.compile(
    r"NoSuch(Table|Namespace|Database|Catalog)|Cannot create table identifier without a table name"
)
_PAST = re.compile(r"tag_.*|(snapshot_id|at_timestamp)_\d+")
"""Selectors of a past snapshot (``SparkCatalog``)."""
_METADATA_TABLE = "org.apache.iceberg.BaseMetadataTable"
_TOO_NEW = re.compile(r"unsupported (format )?version|Cannot read unsupported", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Iceberg table, and the branch to read and write.

    Attributes:
        table: Iceberg's ``Table``.
        name: Name in the session's catalogs; None: the table was found by path.
        branch: Name of the branch; None: the main branch.
    """

    table: JavaObject
    name: NameParts | None
    branch: str | None = None


def locate(jvm: Jvm, table: str) -> Located:
    """Find *table*: an identifier, optionally ``.branch_<name>``, a path or ``iceberg.`path```.

    An identifier is what Spark reads by it. If Spark finds nothing, and it names no catalog, it is
    looked up in all Iceberg catalogs.

    Raises:
        UnknownTableError: There is no such table or branch, it is no Iceberg table, or several
            catalogs have it.
        UnsupportedError: This Iceberg version does not support its format version.
        SessionError: The session lacks the jar of a file system.
    """
    parts = spark_names.table_name(jvm.spark, table)
    path = by_path(table, parts)
    located = None if parts is None else _by_name(jvm, table, parts, path)
    if located is not None:
        return located
    if path is None:
        raise _absent(jvm, table, parts)
    return _at_path(jvm, table, path)


def reload(jvm: Jvm, table: str, located: Located) -> Located:
    """Reload a table past its catalog's cache: another table may have replaced it."""
    if located.name is not None:
        catalog = jvm.session.sessionState().catalogManager().catalog(located.name[0])
        catalog.invalidateTable(jvm.identifier(located.name[1:]))
    return locate(jvm, table)


def by_path(table: str, parts: NameParts | None) -> str | None:
    """Return the path that *table* may name, or None if it can only be an identifier.

    Args:
        table: The table as the caller named it.
        parts: Its parts as an identifier; None: it is none.
    """
    match = _BY_PATH.match(table)
    if match:
        return match["path"].replace("``", "`")
    return table if parts is None and re.search(r"[/\\:]", table) else None


def catalogs(jvm: Jvm) -> list[str]:
    """Return the session's Iceberg catalogs, the current one first."""
    # PySpark's getConf() asks for each setting
    of_context = str(scala_context(jvm.spark.sparkContext).conf().toDebugString()).splitlines()
    stated = dict(line.split("=", 1) for line in of_context if "=" in line)
    settings = stated | all_settings(jvm.spark)
    names = [
        name[1]
        for key, value in sorted(settings.items())
        if (name := _CATALOG.match(key)) and name[1] not in _INTERNAL_CATALOGS and value in _CLASSES
    ]
    current = jvm.session.sessionState().catalogManager().currentCatalog().name()
    return sorted(names, key=lambda name: (name != current, name))


def _by_name(jvm: Jvm, table: str, parts: NameParts, path: str | None) -> Located | None:
    try:
        with remove_new_warehouse(jvm.spark):
            return _find_by_name(jvm, table, parts)
    except spark_names.JVM_ERRORS:
        if path is None:
            raise
        return None  # a catalog may refuse a name that is a path


def _find_by_name(jvm: Jvm, table: str, parts: NameParts) -> Located | None:
    """Look up the table that Spark reads, or else the one in another Iceberg catalog."""
    spark = jvm.spark
    if spark_names.is_temporary_view(spark, parts):
        raise UnknownTableError(
            f"{table} is a view of this session; pass its underlying table", exists=True
        )
    names, first = catalogs(jvm), spark_names.resolve(spark, parts)
    if first.catalog in names:
        located = _in_catalog(jvm, table, (first.catalog, *first.parts))
        if located is not None:
            return located
    elif provider := spark_names.provider(spark, first):
        other = spark_names.describe(provider, first.catalog)
        raise UnknownTableError(f"{table} is {other}, not an Iceberg table")
    if spark_names.has_catalog(spark, parts):
        return None
    others = [(name, *parts) for name in names if name != first.catalog]
    found = [each for name in others if (each := _in_catalog(jvm, table, name)) is not None]
    if len(found) > 1:
        homes = ", ".join(str(located.name[0]) for located in found if located.name)
        raise UnknownTableError(
            f"{table}: the catalogs {homes} have such a table; add the catalog to the name",
            exists=True,
        )
    return found[0] if found else None


def _in_catalog(jvm: Jvm, table: str, name: NameParts) -> Located | None:
    """Look up a table, or else a branch of its namespace as a table (``SparkCatalog.load``)."""
    if _is_empty(jvm, name[0]):
        return None
    loaded = _load_table(jvm, table, name)
    if loaded is None:
        *parent, selector = name
        within = _load_table(jvm, table, tuple(parent)) if len(name) > len("cdt") else None
        return None if within is None else _find_by_selector(table, within, tuple(parent), selector)
    if jvm.is_a(loaded, _METADATA_TABLE):
        raise UnknownTableError(f"{table} is a metadata table; pass the table itself", exists=True)
    return Located(table=loaded, name=name)


def _find_by_selector(
    table: str, parent: JavaObject, name: NameParts, selector: str
) -> Located | None:
    if selector.startswith("branch_"):
        branch = selector.removeprefix("branch_")
        refs = dict(parent.refs())
        branches = sorted(name for name, ref in refs.items() if ref.isBranch())
        if branch in branches:
            return Located(table=parent, name=name, branch=branch)
        raise UnknownTableError(
            f"{table}: unknown branch {branch!r}; expected one of: {', '.join(branches)}",
            exists=True,
        )
    if _PAST.fullmatch(selector):
        raise UnknownTableError(
            f"{table} is a past snapshot; pass the table or a branch", exists=True
        )
    if selector.lower() == "changes":
        raise UnknownTableError(f"{table} is a changelog; pass the table itself", exists=True)
    return None


def _load_table(jvm: Jvm, table: str, name: NameParts) -> JavaObject | None:
    catalog = jvm.session.sessionState().catalogManager().catalog(name[0])
    try:
        loaded = catalog.icebergCatalog().loadTable(jvm.table_identifier(name[1:]))
        loaded.refresh()
    except Exception as error:
        if any(map(_ABSENT.search, causes(error))):
            return None
        raise _translate_error(jvm, table, error) from error
    return loaded


def _translate_error(jvm: Jvm, table: str, error: Exception) -> Exception:
    lines = list(causes(error))
    if any(map(_TOO_NEW.search, lines)):
        return UnsupportedError(
            f"{table}: this Iceberg version cannot read it: {first_line(error)}; use a newer one"
        )
    if any("UnsupportedFileSystemException" in line for line in lines):
        return SessionError(f"{table}: {first_line(error)}; {advise_jar(hadoop_of_jvm(jvm.root))}")
    if any("ot an iceberg table" in line.lower() for line in lines):
        return UnknownTableError(f"{table} is not an Iceberg table")
    return error


def _at_path(jvm: Jvm, table: str, path: str) -> Located:
    conf = jvm.session.sessionState().newHadoopConf()
    try:
        location = reachable(jvm.root, jvm.session, path)
        return Located(table=jvm.iceberg.hadoop.HadoopTables(conf).load(location), name=None)
    except Exception as error:
        if any(map(_ABSENT.search, causes(error))):
            raise UnknownTableError(
                f"{table}: no Iceberg table found; pass the identifier of a table in a catalog"
            ) from error
        raise _translate_error(jvm, table, error) from error


def _absent(jvm: Jvm, table: str, parts: NameParts | None) -> UnknownTableError:
    names = catalogs(jvm)
    if not names:
        return UnknownTableError(
            f"{table}: the session has no Iceberg catalog; set spark.sql.catalog.<name>"
        )
    if parts is None:
        return UnknownTableError(
            f"{table} is neither a path nor a name that Spark can read; quote the parts of the "
            "name in backticks, as in db.`my-table`"
        )
    places = [spark_names.resolve(jvm.spark, parts), *((name, parts) for name in names)]
    for catalog, name in places:
        if catalog not in names or _is_empty(jvm, catalog) or not _is_view(jvm, catalog, name):
            continue
        return UnknownTableError(
            f"{table}: it is a view in catalog {catalog}; pass its underlying table", exists=True
        )
    return UnknownTableError(
        f"{table}: table not found in the Iceberg catalogs of this session: "
        f"{_describe_catalogs(jvm, names)}"
    )


def _is_empty(jvm: Jvm, catalog: str) -> bool:
    return local_catalog.is_empty(
        jvm.spark.conf.get(f"spark.sql.catalog.{catalog}.uri", None) or ""
    )


def _describe_catalogs(jvm: Jvm, names: Sequence[str]) -> str:
    """Describe catalogs and their warehouses: the embedded one depends on the working folder."""
    warehouses = [jvm.spark.conf.get(f"spark.sql.catalog.{name}.warehouse", None) for name in names]
    pairs = zip(names, warehouses, strict=True)
    return ", ".join(name if folder is None else f"{name} ({folder})" for name, folder in pairs)


def _is_view(jvm: Jvm, catalog: str, name: NameParts) -> bool:
    plugin = jvm.session.sessionState().catalogManager().catalog(catalog)
    try:
        return bool(plugin.viewExists(jvm.identifier(name)))
    except spark_names.JVM_ERRORS:  # a catalog without views, or without the namespace
        return False


def ancestors(
    table: JavaObject, snapshot_id: int | None, since: int | None
) -> Iterator[JavaObject]:
    """Yield a snapshot and its ancestors, down to and excluding *since*.

    The iteration ends early at an expired snapshot.
    """
    while snapshot_id is not None and snapshot_id != since:
        snapshot = table.snapshot(snapshot_id)
        if snapshot is None:
            return  # expired
        yield snapshot
        snapshot_id = snapshot.parentId()


def find_newer(table: JavaObject, snapshot_id: int | None, since: int | None) -> list[JavaObject]:
    """Return a snapshot and all its ancestors that are newer than *since*.

    Raises:
        ConflictError: Some have expired, so their changes are unknown.
    """
    snapshots = list(ancestors(table, snapshot_id, since))
    first = snapshots[-1].parentId() if snapshots else snapshot_id
    if first is not None and first != since:
        raise ConflictError(
            f"snapshot {first} of {table.name()} has expired, so later commits are unknown; "
            "nothing was committed. Set the snapshot retention longer than a run takes"
        )
    return snapshots
