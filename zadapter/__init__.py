"""Cluster Delta Lake, Apache Iceberg and Parquet tables so that filters open few files."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zadapter.errors import MissingBackendError

if TYPE_CHECKING:
    from zadapter.commit import Backoff
    from zadapter.layout import Curve, Layout
    from zadapter.migration import Migration
    from zadapter.report import Plan, Report
    from zadapter.table import Commit, Publication
    from zadapter.verbs.changing import append, delete, overwrite
    from zadapter.verbs.migrating import migrate
    from zadapter.verbs.optimizing import optimize, plan
    from zadapter.verbs.reading import files, read
    from zadapter.verbs.versions import history, publish, restore, vacuum
    from zadapter.zvalues import zvalue

__all__ = [
    "Backoff",
    "Commit",
    "Curve",
    "Layout",
    "Migration",
    "Plan",
    "Publication",
    "Report",
    "append",
    "delete",
    "files",
    "history",
    "migrate",
    "optimize",
    "overwrite",
    "plan",
    "publish",
    "read",
    "restore",
    "vacuum",
    "zvalue",
]

_HOME = {
    "Backoff": "zadapter.commit",
    "Commit": "zadapter.table",
    "Curve": "zadapter.layout",
    "Layout": "zadapter.layout",
    "Migration": "zadapter.migration",
    "Plan": "zadapter.report",
    "Publication": "zadapter.table",
    "Report": "zadapter.report",
    "append": "zadapter.verbs.changing",
    "delete": "zadapter.verbs.changing",
    "files": "zadapter.verbs.reading",
    "history": "zadapter.verbs.versions",
    "migrate": "zadapter.verbs.migrating",
    "optimize": "zadapter.verbs.optimizing",
    "overwrite": "zadapter.verbs.changing",
    "publish": "zadapter.verbs.versions",
    "read": "zadapter.verbs.reading",
    "restore": "zadapter.verbs.versions",
    "vacuum": "zadapter.verbs.versions",
    "plan": "zadapter.verbs.optimizing",
    "zvalue": "zadapter.zvalues",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that the pure core needs no PySpark.

    Raises:
        MissingBackendError: It needs PySpark, which is not installed.
    """
    if name not in _HOME:
        raise AttributeError(f"module 'zadapter' has no attribute {name!r}")
    try:
        module = import_module(_HOME[name])
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in {"pyspark", "py4j"}:
            raise
        raise MissingBackendError(
            f"zadapter.{name} needs PySpark; install zadapter with its extra 'delta'"
        ) from error
    return getattr(module, name)
