"""Cluster Delta Lake, Apache Iceberg and Parquet tables so that filters open few files."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from zadapter.base.distribution import install_command
from zadapter.errors import MissingBackendError

if TYPE_CHECKING:
    from zadapter.api.advise import advise
    from zadapter.api.analyze import analyze
    from zadapter.api.audit import audit
    from zadapter.api.dml import append, delete, overwrite
    from zadapter.api.explain import explain
    from zadapter.api.history import history, publish, restore, vacuum
    from zadapter.api.migrate import migrate
    from zadapter.api.optimize import optimize, plan
    from zadapter.api.procedures import register_procedures
    from zadapter.api.read import files, read
    from zadapter.base.commit_attempts import Backoff
    from zadapter.inspection.advice import Advice
    from zadapter.inspection.analysis import Analysis
    from zadapter.inspection.explanation import Explanation
    from zadapter.inspection.stats_audit import Audit
    from zadapter.lake.maintain import maintain
    from zadapter.lake.report import LakeReport
    from zadapter.lake.settings import Lake
    from zadapter.layout.filters import Keys
    from zadapter.layout.layout import Curve, Layout
    from zadapter.layout.zvalue import zvalue
    from zadapter.report.migration_report import Migration
    from zadapter.report.optimize_report import Report
    from zadapter.report.plan import Plan
    from zadapter.report.progress import progress
    from zadapter.report.write_result import Cleanup, Deletion, Publication, WriteResult
    from zadapter.table.snapshot import Commit

__all__ = [
    "Advice",
    "Analysis",
    "Audit",
    "Backoff",
    "Cleanup",
    "Commit",
    "Curve",
    "Deletion",
    "Explanation",
    "Keys",
    "Lake",
    "LakeReport",
    "Layout",
    "Migration",
    "Plan",
    "Publication",
    "Report",
    "WriteResult",
    "advise",
    "analyze",
    "append",
    "audit",
    "delete",
    "explain",
    "files",
    "history",
    "maintain",
    "migrate",
    "optimize",
    "overwrite",
    "plan",
    "progress",
    "publish",
    "read",
    "register_procedures",
    "restore",
    "vacuum",
    "zvalue",
]

_HOME = {
    "Advice": "zadapter.inspection.advice",
    "advise": "zadapter.api.advise",
    "Keys": "zadapter.layout.filters",
    "Lake": "zadapter.lake.settings",
    "LakeReport": "zadapter.lake.report",
    "maintain": "zadapter.lake.maintain",
    "Analysis": "zadapter.inspection.analysis",
    "Explanation": "zadapter.inspection.explanation",
    "Audit": "zadapter.inspection.stats_audit",
    "audit": "zadapter.api.audit",
    "analyze": "zadapter.api.analyze",
    "explain": "zadapter.api.explain",
    "Backoff": "zadapter.base.commit_attempts",
    "Commit": "zadapter.table.snapshot",
    "Curve": "zadapter.layout.layout",
    "Layout": "zadapter.layout.layout",
    "Migration": "zadapter.report.migration_report",
    "Plan": "zadapter.report.plan",
    "Cleanup": "zadapter.report.write_result",
    "Deletion": "zadapter.report.write_result",
    "Publication": "zadapter.report.write_result",
    "WriteResult": "zadapter.report.write_result",
    "Report": "zadapter.report.optimize_report",
    "append": "zadapter.api.dml",
    "delete": "zadapter.api.dml",
    "files": "zadapter.api.read",
    "history": "zadapter.api.history",
    "migrate": "zadapter.api.migrate",
    "optimize": "zadapter.api.optimize",
    "overwrite": "zadapter.api.dml",
    "progress": "zadapter.report.progress",
    "publish": "zadapter.api.history",
    "read": "zadapter.api.read",
    "register_procedures": "zadapter.api.procedures",
    "restore": "zadapter.api.history",
    "vacuum": "zadapter.api.history",
    "plan": "zadapter.api.optimize",
    "zvalue": "zadapter.layout.zvalue",
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
        raise MissingBackendError(
            f"zadapter.{name} requires PySpark; {install_command('delta')}"
        ) from error
    return getattr(module, name)
