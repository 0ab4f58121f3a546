"""Lookup of Iceberg tables, and refusal of tables that cannot be rewritten safely."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zadapter.base.java_errors import causes, first_line
from zadapter.base.locations import reachable, warehouse_not_created
from zadapter.base.names import Parts, quote, split
from zadapter.errors import ConflictError, SessionError, UnknownTableError, UnsupportedError
from zadapter.releases.s3a import connector, hadoop_of_jvm
from zadapter.releases.spark_api import settings as all_settings
from zadapter_iceberg import local_catalog
from zadapter_iceberg.columns import FUNCTIONS
from zadapter_iceberg.jvm import JavaObject, Jvm

NEWEST = 3
"""Highest supported format version of the Iceberg spec."""

_BY_PATH = re.compile(r"(?i)iceberg\.`(?P<path>.+)`\Z")
_CATALOG = re.compile(r"spark\.sql\.catalog\.([^.]+)\Z")
_INTERNAL_CATALOGS = {"default_iceberg", "default_rewrite_catalog", FUNCTIONS}
"""Catalogs that Iceberg and zadapter define for paths, staged tables and functions."""
_ABSENT = re.compile(
    r"NoSuch(Table|Namespace|Database|Catalog)|(TABLE|SCHEMA)\w*_NOT_FOUND|REQUIRES_SINGLE_PART"
)
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
    name: Parts | None
    branch: str | None = None

    def metadata(self, kind: str) -> str:
        """Return the name or path by which Spark loads a metadata table."""
        if self.name is None:
            return f"{self.table.location()}#{kind}"
        return quote((*self.name, kind))


def locate(jvm: Jvm, table: str) -> Located:
    """Find *table*: a path, ``iceberg.`path```, or an identifier, optionally ``.branch_<name>``.

    Raises:
        UnknownTableError: There is no such table or branch, it is no Iceberg table, or several
            catalogs have it.
        UnsupportedError: This Iceberg version does not support its format version.
        SessionError: The session lacks the jar of a file system.
    """
    path = by_path(table)
    if path is not None:
        return _at_path(jvm, table, path)
    parts = split(table)
    with warehouse_not_created(jvm.spark):
        parent = _named(jvm, table, parts[:-1]) if len(parts) > 1 else None
        located = _named(jvm, table, parts) if parent is None else None
    if parent is not None:
        return _branch_of(jvm, table, parts[-1], parent)
    if located is None:
        raise _absent(jvm, table, parts)
    return located


def again(jvm: Jvm, table: str, located: Located) -> Located:
    """Reload a table past its catalog's cache: another table may have replaced it."""
    if located.name is not None:
        catalog = jvm.session.sessionState().catalogManager().catalog(located.name[0])
        catalog.invalidateTable(jvm.identifier(located.name[1:]))
    return locate(jvm, table)


def by_path(table: str) -> str | None:
    """Return the path that *table* names, or None if it is an identifier."""
    match = _BY_PATH.match(table)
    if match:
        return match["path"]
    return table if re.search(r"[/\\:]", table) else None


def _branch_of(jvm: Jvm, table: str, last: str, parent: Located) -> Located:
    if last.startswith("branch_"):
        branch = last.removeprefix("branch_")
        refs = dict(parent.table.refs())
        branches = sorted(name for name, ref in refs.items() if ref.isBranch())
        if branch in branches:
            return Located(table=parent.table, name=parent.name, branch=branch)
        raise UnknownTableError(
            f"{table}: unknown branch {branch!r}; expected one of: {', '.join(branches)}",
            exists=True,
        )
    if last.startswith(("tag_", "snapshot_id_", "at_timestamp_")):
        raise UnknownTableError(
            f"{table} is a past snapshot; pass the table or a branch", exists=True
        )
    if getattr(jvm.iceberg.MetadataTableType, "from")(last) is not None:
        raise UnknownTableError(f"{table} is a metadata table; pass the table itself", exists=True)
    raise UnknownTableError(f"{table}: table not found")


def catalogs(jvm: Jvm) -> list[str]:
    """Return the session's Iceberg catalogs, the current one first."""
    settings = dict(jvm.spark.sparkContext.getConf().getAll()) | all_settings(jvm.spark)
    names = [
        name[1]
        for key, value in sorted(settings.items())
        if (name := _CATALOG.match(key))
        and name[1] not in _INTERNAL_CATALOGS
        and value.startswith("org.apache.iceberg.spark.Spark")
    ]
    current = jvm.session.sessionState().catalogManager().currentCatalog().name()
    return sorted(names, key=lambda name: (name != current, name))


def _named(jvm: Jvm, table: str, parts: Parts) -> Located | None:
    """Look up a table in the catalog that *parts* names, or in all Iceberg catalogs."""
    names = catalogs(jvm)
    candidates = [parts] if parts[0] in names else [(name, *parts) for name in names]
    candidates = [name for name in candidates if not _is_empty(jvm, name[0])]
    tables = [
        Located(table=loaded, name=name)
        for name in candidates
        if (loaded := _loaded(jvm, table, name)) is not None
    ]
    if len(tables) > 1:
        homes = ", ".join(str(located.name[0]) for located in tables if located.name)
        raise UnknownTableError(
            f"{table}: catalogs {homes} have such a table; qualify it with the catalog's name",
            exists=True,
        )
    return tables[0] if tables else None


def _loaded(jvm: Jvm, table: str, name: Parts) -> JavaObject | None:
    try:
        loaded = jvm.iceberg.spark.Spark3Util.loadIcebergTable(jvm.session, quote(name))
        loaded.refresh()
    except Exception as error:
        if any(map(_ABSENT.search, causes(error))):
            return None
        raise _refused(jvm, table, error) from error
    return loaded


def _refused(jvm: Jvm, table: str, error: Exception) -> Exception:
    lines = list(causes(error))
    if any(map(_TOO_NEW.search, lines)):
        return UnsupportedError(
            f"{table}: this Iceberg version cannot read it: {first_line(error)}"
        )
    if any("UnsupportedFileSystemException" in line for line in lines):
        return SessionError(
            f"{table}: {first_line(error)}; add the file system's jar to the session, for S3 "
            f"spark.jars.packages={connector(hadoop_of_jvm(jvm.root)).packages[0]}"
        )
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
        raise _refused(jvm, table, error) from error


def _absent(jvm: Jvm, table: str, parts: Parts) -> UnknownTableError:
    names = catalogs(jvm)
    if not names:
        return UnknownTableError(
            f"{table}: the session has no Iceberg catalog; set spark.sql.catalog.<name>"
        )
    views = [name for name in names if not _is_empty(jvm, name) and _is_view(jvm, name, parts)]
    if views:
        return UnknownTableError(
            f"{table}: it is a view in catalog {views[0]}; pass its underlying table", exists=True
        )
    return UnknownTableError(
        f"{table}: table not found in the Iceberg catalogs of this session: "
        f"{_described(jvm, names)}"
    )


def _is_empty(jvm: Jvm, catalog: str) -> bool:
    return local_catalog.is_empty(
        jvm.spark.conf.get(f"spark.sql.catalog.{catalog}.uri", None) or ""
    )


def _described(jvm: Jvm, names: Sequence[str]) -> str:
    """Describe catalogs and their warehouses: the embedded one depends on the working folder."""
    warehouses = [jvm.spark.conf.get(f"spark.sql.catalog.{name}.warehouse", None) for name in names]
    pairs = zip(names, warehouses, strict=True)
    return ", ".join(name if folder is None else f"{name} ({folder})" for name, folder in pairs)


def _is_view(jvm: Jvm, catalog: str, parts: Parts) -> bool:
    name = parts[1:] if parts[0] == catalog else parts
    plugin = jvm.session.sessionState().catalogManager().catalog(catalog)
    try:
        return bool(plugin.viewExists(jvm.identifier(name)))
    except Exception:  # noqa: BLE001 - a catalog without views, or without the namespace
        return False


def refuse_other_branch(jvm: Jvm, table: str, located: Located) -> None:
    """Refuse the main branch if Spark redirects it to another branch.

    Raises:
        UnsupportedError: The session sets ``spark.wap.branch``, and the table enables
            write-audit-publish (``SparkTableUtil.wapSession``).
    """
    branch = jvm.spark.conf.get("spark.wap.branch", None)
    enabled = located.table.properties().getOrDefault("write.wap.enabled", "false").lower()
    if branch and enabled == "true" and located.branch is None:
        raise UnsupportedError(
            f"{table}: this session has spark.wap.branch={branch}, so Spark reads and writes that "
            f"branch; pass {table}.branch_{branch}, or unset it to use the main branch"
        )


def refuse(table: str, iceberg_table: JavaObject) -> None:
    """Refuse a table with features that zadapter does not support.

    Raises:
        UnsupportedError: The table has a newer format version, is encrypted, or does not write
            Parquet files.
    """
    version = int(iceberg_table.operations().current().formatVersion())
    if version > NEWEST:
        raise UnsupportedError(
            f"{table} has format version {version}; zadapter supports versions up to {NEWEST}"
        )
    properties = iceberg_table.properties()
    if properties.containsKey("encryption.key-id"):
        raise UnsupportedError(f"{table} is encrypted; zadapter cannot verify encrypted files")
    written_as = properties.getOrDefault("write.format.default", "parquet").lower()
    if written_as != "parquet":
        raise UnsupportedError(
            f"{table} has write.format.default={written_as}; zadapter supports Parquet files only"
        )


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


def news(table: JavaObject, snapshot_id: int | None, since: int | None) -> list[JavaObject]:
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
