"""The default Iceberg catalog of a local session, for users who have not configured one.

It is a JDBC catalog in a SQLite file, with the database tables of pyiceberg's ``SqlCatalog``.
Several processes can use it without a server.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

NAME = "iceberg"
"""Name of the catalog in Spark; ``iceberg.db.events`` is a table."""

_CATALOG = re.compile(r"spark\.sql\.catalog\.[^.]+")
_CLASS = "org.apache.iceberg.spark.SparkCatalog"
_SQLITE = "jdbc:sqlite:"
_WAREHOUSE = "spark.sql.warehouse.dir"


def _has_catalog(conf: Mapping[str, str]) -> bool:
    """Return whether the user has configured an Iceberg catalog, or any catalog of this name."""
    classes = (value for key, value in conf.items() if _CATALOG.fullmatch(key))
    return f"spark.sql.catalog.{NAME}" in conf or any(".iceberg." in name for name in classes)


def _folder(conf: Mapping[str, str]) -> Path | None:
    """Return the folder of Spark's warehouse, or None if it is not on this machine."""
    parsed = urlparse(conf.get(_WAREHOUSE, "spark-warehouse"))
    return Path(unquote(parsed.path)).absolute() if parsed.scheme in {"", "file"} else None


def settings(conf: Mapping[str, str], _cores: int) -> dict[str, str]:
    """Return the settings of the default catalog.

    The tables are in ``iceberg/`` of Spark's warehouse. The SQLite file lies beside the warehouse,
    since SQLite creates its file, but no folder: so nothing exists before the catalog is used.
    There are no settings if the user has configured a catalog or the warehouse is remote.
    """
    folder = _folder(conf)
    if folder is None or _has_catalog(conf):
        return {}
    database = folder.with_name(f"{folder.name}-iceberg.db")
    former = folder / "iceberg.db"  # of an earlier version
    if former.exists() and not database.exists():
        database = former
    with suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
    return _prefix_keys(
        {
            "": _CLASS,
            ".type": "jdbc",
            ".uri": f"{_SQLITE}{database}",
            ".jdbc.schema-version": "V1",
            ".warehouse": (folder / "iceberg").as_uri(),
        }
    )


def hadoop_settings(conf: Mapping[str, str], _cores: int) -> dict[str, str]:
    """Return the settings of a Hadoop catalog, for Iceberg 1.10.

    Its JDBC catalog leaves result sets open, so that a session locks SQLite's file for every other
    session, also for that of the same call. Iceberg 1.11 closes them.
    """
    folder = _folder(conf)
    if folder is None or _has_catalog(conf):
        return {}
    return _prefix_keys(
        {"": _CLASS, ".type": "hadoop", ".warehouse": (folder / "iceberg").as_uri()}
    )


def _prefix_keys(options: Mapping[str, str]) -> dict[str, str]:
    return {f"spark.sql.catalog.{NAME}{key}": value for key, value in options.items()}


def is_empty(uri: str) -> bool:
    """Return whether a catalog has no tables, since its SQLite file does not exist yet.

    Loading such a catalog would create the file.

    Args:
        uri: The catalog's setting ``uri``; empty: not set.
    """
    path = uri.removeprefix(_SQLITE)
    return uri != path and path.startswith("/") and not Path(path.partition("?")[0]).exists()
