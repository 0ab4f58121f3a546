"""The Iceberg catalog that a local session gets where the user has named none.

It is a JDBC catalog in a SQLite file, the same tables that pyiceberg's ``SqlCatalog`` reads and
writes, so that several processes can use it without a server.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

NAME = "iceberg"
"""Under this name Spark knows it; ``iceberg.db.events`` is a table."""

_CATALOG = re.compile(r"spark\.sql\.catalog\.[^.]+")
_WAREHOUSE = "spark.sql.warehouse.dir"


def names_one(stated: Mapping[str, str]) -> bool:
    """Tell whether the user has named an Iceberg catalog, or uses the name for something else."""
    classes = (value for key, value in stated.items() if _CATALOG.fullmatch(key))
    return f"spark.sql.catalog.{NAME}" in stated or any(".iceberg." in each for each in classes)


def folder(stated: Mapping[str, str]) -> Path | None:
    """Return Spark's warehouse, None where it is not on this machine."""
    parsed = urlparse(stated.get(_WAREHOUSE, "spark-warehouse"))
    return Path(unquote(parsed.path)).absolute() if parsed.scheme in {"", "file"} else None


def embedded(stated: Mapping[str, str]) -> dict[str, str]:
    """Return the catalog's settings, none where the user has named one or the warehouse is remote.

    The file is ``iceberg.db`` in Spark's warehouse, the tables lie beside it in ``iceberg/``.
    """
    place = folder(stated)
    if place is None or names_one(stated):
        return {}
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{place}/iceberg.db",
        ".jdbc.schema-version": "V1",
        ".warehouse": (place / "iceberg").as_uri(),
    }
    return {f"spark.sql.catalog.{NAME}{key}": value for key, value in settings.items()}


def make_folder(stated: Mapping[str, str]) -> None:
    """Make the warehouse's folder, where that may be: SQLite makes its file, but not the folder."""
    place = folder(stated)
    if place is not None:
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
