"""The session of a command, which no other call follows."""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from zadapter.backend.plugins import load
from zadapter.spark import object_stores
from zadapter.spark.sessions import default, session


def start_for_one_call(
    conf: Mapping[str, str], backend: str | None, tables: Sequence[str]
) -> SparkSession:
    """Return the running session, or start one.

    Args:
        conf: Spark settings.
        backend: The format to support; None: every installed format.
        tables: Paths and identifiers of tables. The session supports their object stores.

    Raises:
        MissingBackendError: The backend is not installed.
        SessionError: No suitable session can be started.
    """
    stores = object_stores.find_stores(tables)
    if backend is None:
        return default(conf, None, stores)
    return session(conf, formats=[load(backend).format.name], stores=stores)
