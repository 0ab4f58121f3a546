"""Cluster Delta Lake, Apache Iceberg and Parquet tables so that filters open few files."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from zadapter.errors import MissingBackendError, extra

if TYPE_CHECKING:
    from zadapter.base.commit_attempts import Backoff
    from zadapter.insight.advice import Advice
    from zadapter.insight.analysis import Analysis
    from zadapter.insight.audit import Audit
    from zadapter.insight.explanation import Explanation
    from zadapter.inspection.advise import advise
    from zadapter.inspection.analyze import analyze
    from zadapter.inspection.audit import audit
    from zadapter.inspection.explain import explain
    from zadapter.layout.filters import Keys
    from zadapter.layout.layout import Curve, Layout
    from zadapter.migration.migrate import migrate
    from zadapter.reports.migration import Migration
    from zadapter.reports.optimize import Report
    from zadapter.reports.plan import Plan
    from zadapter.reports.progress import progress
    from zadapter.rewrite.optimize import optimize, plan
    from zadapter.table.snapshot import Commit, Publication
    from zadapter.tables.dml import append, delete, overwrite
    from zadapter.tables.history import history, publish, restore, vacuum
    from zadapter.tables.read import files, read
    from zadapter.zvalues.zvalue import zvalue

__all__ = [
    "Advice",
    "Analysis",
    "Audit",
    "Backoff",
    "Commit",
    "Curve",
    "Explanation",
    "Keys",
    "Layout",
    "Migration",
    "Plan",
    "Publication",
    "Report",
    "advise",
    "analyze",
    "append",
    "audit",
    "delete",
    "explain",
    "files",
    "history",
    "migrate",
    "optimize",
    "overwrite",
    "plan",
    "progress",
    "publish",
    "read",
    "restore",
    "vacuum",
    "zvalue",
]

_HOME = {
    "Advice": "zadapter.insight.advice",
    "advise": "zadapter.inspection.advise",
    "Keys": "zadapter.layout.filters",
    "Analysis": "zadapter.insight.analysis",
    "Explanation": "zadapter.insight.explanation",
    "Audit": "zadapter.insight.audit",
    "audit": "zadapter.inspection.audit",
    "analyze": "zadapter.inspection.analyze",
    "explain": "zadapter.inspection.explain",
    "Backoff": "zadapter.base.commit_attempts",
    "Commit": "zadapter.table.snapshot",
    "Curve": "zadapter.layout.layout",
    "Layout": "zadapter.layout.layout",
    "Migration": "zadapter.reports.migration",
    "Plan": "zadapter.reports.plan",
    "Publication": "zadapter.table.snapshot",
    "Report": "zadapter.reports.optimize",
    "append": "zadapter.tables.dml",
    "delete": "zadapter.tables.dml",
    "files": "zadapter.tables.read",
    "history": "zadapter.tables.history",
    "migrate": "zadapter.migration.migrate",
    "optimize": "zadapter.rewrite.optimize",
    "overwrite": "zadapter.tables.dml",
    "progress": "zadapter.reports.progress",
    "publish": "zadapter.tables.history",
    "read": "zadapter.tables.read",
    "restore": "zadapter.tables.history",
    "vacuum": "zadapter.tables.history",
    "plan": "zadapter.rewrite.optimize",
    "zvalue": "zadapter.zvalues.zvalue",
}

logging.getLogger("zadapter").addHandler(logging.NullHandler())


def __dir__() -> list[str]:
    """Return the public names, which are imported on first use."""
    return sorted([*__all__, "errors"])


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that the pure core needs no PySpark.

    Raises:
        MissingBackendError: The name needs PySpark, which is not installed.
    """
    if name not in _HOME:
        raise AttributeError(f"module 'zadapter' has no attribute {name!r}")
    try:
        module = import_module(_HOME[name])
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in {"pyspark", "py4j"}:
            raise
        raise MissingBackendError(f"zadapter.{name} requires PySpark; {extra('delta')}") from error
    return getattr(module, name)
