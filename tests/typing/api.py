"""Pins the types of what users call; mypy reads this, nothing runs it."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession
from typing_extensions import assert_type

import zadapter
from zadapter import Analysis, Audit, Backoff, Curve, Explanation, Layout, Plan, Report
from zadapter.backend.contract import Factory
from zadapter.backend.plugins import load
from zadapter.errors import StaleRewriteError, UnknownOutcomeError, UsageError, ZadapterError


def shortest() -> None:
    """Call it the way the README does."""
    assert_type(zadapter.optimize("t", by="ts"), Report)
    assert_type(zadapter.plan("t", by=["ts", "user.id"]), Plan)


def everything(spark: SparkSession) -> None:
    """Give every argument."""
    report = zadapter.optimize(
        "sales.orders",
        by={"ts": 2.0, "user.id": 1},
        backend="delta",
        where="day >= '2024-01-01'",
        curve="hilbert",
        target_file_size="128MB",
        row_groups=4,
        price={"put": 0.005, "core_hour": 1},
        max_job_bytes=1 << 40,
        collect_stats=True,
        force=True,
        backoff=Backoff(attempts=3, initial=0.5, longest=5, deadline=60.0),
        spark=spark,
    )
    assert_type(report, Report)
    plan = zadapter.plan(
        "sales.orders",
        by=("ts",),
        bloom_filters=("user.id",),
        backend=load("delta"),
        where=None,
        curve=Curve.LINEAR,
        target_file_size=1 << 27,
        row_groups=8,
        price="put=0.005",
        max_job_bytes="256GB",
        collect_stats=False,
        force=False,
        spark=None,
    )
    assert_type(plan, Plan)


def seen() -> None:
    """Look at a table."""
    assert_type(zadapter.analyze("t", by="ts", queries=["a = 1"], row_groups=True), Analysis)
    assert_type(zadapter.analyze("t", queries=[("a = 1", 2.0)], matches=True), Analysis)
    assert_type(zadapter.explain("t", "a = 1", sample_files=3), Explanation)
    assert_type(zadapter.audit("t", deep=True, repair=True), Audit)


def refused() -> None:
    """Make calls that must not type-check: an unused ignore is an error."""
    zadapter.optimize("t", "ts")  # type: ignore[call-arg]
    zadapter.optimize("t", by="ts", curves="linear")  # type: ignore[call-arg]
    zadapter.plan("t", by="ts", backoff=Backoff())  # type: ignore[call-arg]
    Backoff(3)  # type: ignore[call-arg]
    Backoff().attempts = 4  # type: ignore[misc]


def report(done: Report) -> None:
    """Read a report."""
    assert_type(done.plan, Plan)
    assert_type(done.versions, tuple[int | None, ...])
    assert_type(done.files_removed, int)
    assert_type(done.files_added, int)
    assert_type(done.bytes_removed, int)
    assert_type(done.bytes_added, int)
    assert_type(done.price, float | None)
    assert_type(done.rows_added, int)
    assert_type(done.share_before, float)
    assert_type(done.share_after, float)
    assert_type(done.stale, tuple[str, ...])
    assert_type(done.seconds, Mapping[str, float])
    assert_type(str(done), str)


def plan(ahead: Plan) -> None:
    """Read a plan."""
    assert_type(ahead.table, str)
    assert_type(ahead.format, str)
    assert_type(ahead.version, int | None)
    assert_type(ahead.columns, tuple[str, ...])
    assert_type(ahead.curve, str)
    assert_type(ahead.groups, int)
    assert_type(ahead.files_before, int)
    assert_type(ahead.files_rewritten, int)
    assert_type(ahead.files_written, int)
    assert_type(ahead.bytes_rewritten, int)
    assert_type(ahead.rows, int | None)
    assert_type(ahead.share_before, float)
    assert_type(ahead.share_after, float)
    assert_type(ahead.nothing_to_do, bool)
    assert_type(ahead.run(), Report)


def layout(text: str) -> None:
    """Read a layout that is kept with a table."""
    found = Layout.from_json(text)
    assert_type(found, Layout)
    assert_type(found.id, str)
    assert_type(found.files, int)
    assert_type(found.to_json(), str)
    assert_type(found.request.columns, tuple[tuple[str, ...], ...])
    assert_type(found.request.curve, Curve)


def values(column: pa.Array) -> None:
    """Compute z-values; pyarrow has no types to compare them with."""
    zadapter.zvalue([column], width=8, nulls="last")
    zadapter.zvalue([column], nulls=None)
    zadapter.zvalue([column], nulls="middle")  # type: ignore[arg-type]


def errors(raised: ZadapterError) -> None:
    """Tell errors apart."""
    assert_type(load("delta"), Factory)
    if isinstance(raised, StaleRewriteError):
        assert_type(raised.gone, tuple[str, ...])
    if isinstance(raised, UnknownOutcomeError):
        assert_type(raised.commit_id, str)
    if isinstance(raised, UsageError):
        value_error: ValueError = raised
        del value_error
