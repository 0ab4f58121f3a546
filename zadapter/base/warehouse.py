"""Spark's warehouse folder, which look-ups of tables create."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


@contextmanager
def not_created(spark: Any) -> Iterator[None]:
    """Remove Spark's warehouse folder if the block has created it, and it is empty.

    Spark creates it when its built-in catalog is first asked for a table, and again for the first
    table.

    Args:
        spark: The session.
    """
    location = urlsplit(str(spark.conf.get("spark.sql.warehouse.dir", "")))
    folder = Path(unquote(location.path)) if location.scheme in {"", "file"} else None
    is_new = folder is not None and not folder.exists()
    try:
        yield
    finally:
        if folder is not None and is_new:
            with suppress(OSError):  # it holds a table, or was never created
                folder.rmdir()
