"""Spark sessions and their settings, files in Spark's stores, samples and checksums."""

from zadapter.base.distribution import install_command
from zadapter.errors import MissingBackendError

try:
    from zadapter.spark.sessions import check, ensure, session
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] not in {"pyspark", "py4j"}:
        raise
    raise MissingBackendError(
        f"zadapter.spark requires PySpark; {install_command('delta')}"
    ) from error

__all__ = ["check", "ensure", "session"]
