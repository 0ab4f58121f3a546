"""Start and check of Spark sessions that support the table formats."""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from zadapter.backend import plugins
from zadapter.backend.format import Format, Library
from zadapter.errors import SessionError, UsageError
from zadapter.spark import library_builds, object_stores, settings
from zadapter.spark.compat.spark_api import to_python_session
from zadapter.spark.jvm.gateway import is_stopped, java_session, jvm_of
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.spark_classes import sessions
from zadapter.spark.launch.ivy import UnresolvedError
from zadapter.spark.launch.start import (
    NO_CONNECT,
    is_supported,
    refuse_connect,
    start,
)
from zadapter.spark.settings import CATALOG, EXTENSIONS, PACKAGES

_logger = logging.getLogger(__name__)


def session(
    conf: Mapping[str, str] | None = None,
    *,
    formats: Sequence[str] | None = None,
    stores: Sequence[str] = (),
) -> SparkSession:
    """Return the running Spark session, or start one that supports *formats*.

    A running session is checked. Settings of *conf* that Spark can change at run time are applied.

    A new session gets the Maven packages and SQL extensions of *formats*, in addition to those in
    *conf*, ``spark-defaults.conf`` and similar sources. For Delta it gets Delta's
    ``spark_catalog``, unless another one is configured. In that case Delta tables are found by
    path, and by name only if that catalog supports Delta. For Iceberg, on a local master and
    without another Iceberg catalog, it gets the JDBC catalog ``iceberg`` in the SQLite file
    ``spark-warehouse-iceberg.db`` beside Spark's warehouse, which pyiceberg's ``SqlCatalog`` can
    read. On a local master, unless configured otherwise, it has no web UI, two shuffle partitions
    per core, one partition per core for the state of a Delta table, and half of the machine's
    memory, at most 4 GiB, for the driver; Python workers run this Python. It logs errors only,
    unless configured otherwise. Packages are downloaded on first use, and then named by path.

    For S3 it gets Hadoop's S3A, which reads ``s3://`` and ``s3a://``. Credentials come from
    ``fs.s3a.*``, the environment, a profile or the machine, in this order. If ``AWS_ENDPOINT_URL``
    is set, that server is used, with the bucket in the path.

    Example:
        ```python
        spark = zadapter.spark.session({"spark.sql.shuffle.partitions": "8"}, formats=["delta"])
        ```

    Args:
        conf: Spark settings. They take precedence; lists are extended.
        formats: Formats to load, such as ``"delta"``; None: Delta, and Iceberg if pyiceberg is
            installed. A JVM that runs already supports those whose jars it has.
        stores: Object stores to load, of ``"s3"``.

    Raises:
        SessionError: PySpark, delta-spark, Java or the running session are not supported.
        UsageError: A format or a store is unknown.
    """
    available = plugins.formats()
    if unknown := {*(formats or ())} - {*available}:
        raise UsageError(
            f"unknown format {min(unknown)!r}; expected one of: {', '.join(available)}"
        )
    required = [available[name] for name in formats or ()]
    if formats is None:
        required = [form for form in list_installed(available) if is_supported(form)]
    if unknown := set(stores) - {object_stores.S3}:
        raise UsageError(f"unknown store {min(unknown)!r}; expected one of: {object_stores.S3}")
    active = running()
    spark = active or start(conf or {}, required, stores)
    for form in required if formats is not None else loadable(spark, required):
        _check(spark, form)
    for name in stores:
        object_stores.check(spark, name)
    if active and conf:
        _apply(active, conf)
    return spark


def ensure(spark: SparkSession | None, table_format: str, table: str = "") -> SparkSession:
    """Return a session that supports *table_format*.

    Args:
        spark: A session; None: the running session, or a new one.
        table_format: The format.
        table: Path or identifier of a table. The session supports its object store.

    Raises:
        MissingBackendError: No backend of the format is installed.
        SessionError: The session does not support the format or the store, or no session can
            start.
    """
    return ensure_format(spark, plugins.load(table_format).format, table)


def ensure_format(spark: SparkSession | None, form: Format, table: str) -> SparkSession:
    """Return a session that supports a format, as :func:`ensure` does."""
    stores = object_stores.find_stores([table])
    chosen = spark or default({}, form, stores)
    _check(chosen, form)
    for name in stores:
        object_stores.check(chosen, name)
    return chosen


def default(conf: Mapping[str, str], form: Format | None, stores: Sequence[str]) -> SparkSession:
    """Return the running session, or start one for *form* and every installed format.

    The other formats are for later calls. Without their jars the session supports *form* alone.

    Args:
        conf: Spark settings; those that Spark can change are applied to a running session.
        form: A format; None: every installed format.
        stores: Object stores to load.

    Raises:
        SessionError: No session can start.
    """
    if active := running():
        _apply(active, conf)
        return active
    others = [each for each in list_installed(plugins.formats()) if is_supported(each)]
    own = [] if form is None else [form]
    alone = form is not None and not any(_is_installed(each) for each in others)
    every = own if alone else own + [each for each in others if each not in own]
    try:
        return start(conf, every, stores)
    except UnresolvedError as error:
        if every == own:
            raise
        _logger.warning("%s", error)
        return _start_without(conf, own, every, stores)


def _start_without(
    conf: Mapping[str, str],
    own: Sequence[Format],
    every: Sequence[Format],
    stores: Sequence[str],
) -> SparkSession:
    """Start a session for *own* formats, or for the first of *every* whose jars can be had."""
    for formats in [own] if own else [*([each] for each in every), []]:
        try:
            spark = start(conf, formats, stores)
        except UnresolvedError as error:
            last = error
            continue
        names = " and ".join(each.name for each in formats) or "plain Parquet"
        _logger.warning("the session supports %s alone", names)
        return spark
    raise last


def loadable(spark: SparkSession, formats: Iterable[Format]) -> list[Format]:
    """Return the formats whose jars a session has, or that need none."""
    jvm = jvm_of(_check_running(spark))
    return [
        form
        for form in formats
        if form.library is None or library_builds.is_loaded(jvm, form.library)
    ]


def check(spark: SparkSession, table_format: str) -> None:
    """Refuse a session that does not support *table_format*.

    Raises:
        MissingBackendError: No backend of the format is installed.
        SessionError: It is a Spark Connect session or stopped, Spark is too old, or jars,
            extensions or Delta's catalog are missing; the message lists the missing settings.
    """
    _check(spark, plugins.load(table_format).format)


def check_usable(spark: SparkSession) -> SparkSession:
    """Return a session that supports any formats.

    Raises:
        SessionError: It is a Spark Connect session or stopped, or Spark is too old.
    """
    library_builds.refuse_old(_check_running(spark).version)
    return spark


def _check(spark: SparkSession, form: Format) -> None:
    check_usable(spark)
    if form.library is not None:
        _refuse_lacking(spark, form, form.library)
    library_builds.refuse_untested(spark, form)


def _refuse_lacking(spark: SparkSession, form: Format, library: Library) -> None:
    has_jar = library_builds.is_loaded(jvm_of(spark), library)
    if not has_jar:
        _refuse_databricks(form)
        library_builds.refuse_missing(form, spark.version)
    if missing := _missing(
        spark, library_builds.select_build(library, spark.version), loaded=has_jar
    ):
        raise SessionError(
            f"this Spark session does not support {form.name}: it lacks {', '.join(missing)}. "
            "Spark reads these settings at startup: in a new process, set in the builder, or with "
            "--conf of spark-submit,\n"
            f"{settings.config_lines(missing)}"
        )


def _refuse_databricks(form: Format) -> None:
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        raise SessionError(
            f"Databricks Runtime has no {form.name} library that zadapter can use: it ships its "
            "own Delta implementation. Run zadapter on Apache Spark with the table's path in the "
            "object store; only tables that no catalog manages can be rewritten from there"
        )


def _check_running(spark: SparkSession) -> SparkSession:
    if not isinstance(spark, SparkSession):
        raise SessionError(NO_CONNECT)
    if is_stopped(spark.sparkContext):
        raise SessionError("this Spark session is stopped; pass a running session, or none")
    return spark


def _missing(spark: SparkSession, library: Library, *, loaded: bool) -> dict[str, str]:
    keys = (PACKAGES, EXTENSIONS, CATALOG)
    stated = {key: str(spark.conf.get(key, "")) for key in keys}
    if stated[CATALOG] in {"", "builtin"}:
        del stated[CATALOG]
    lacking = settings.additions(stated, [library])
    lacking.pop(PACKAGES, None) if loaded else lacking.setdefault(PACKAGES, stated[PACKAGES])
    return {key: lacking[key] for key in keys if key in lacking}


def list_installed(formats: Mapping[str, Format]) -> list[Format]:
    """Return the formats that need no Python package, or whose package is installed."""
    return [form for form in formats.values() if _is_installed(form)]


def _is_installed(form: Format) -> bool:
    if form.library is None:
        return False
    package = form.library.python_package
    return package is None or library_builds.version(package) is not None


def running() -> SparkSession | None:
    """Return the session that is active in this thread or else the first one, or None.

    Raises:
        SessionError: The running session is a Spark Connect session.
    """
    refuse_connect({})
    try:
        active = SparkSession.active()
    except PySparkRuntimeError:
        return None
    if not isinstance(active, SparkSession):
        raise SessionError(NO_CONNECT)
    stopped = SparkContext._active_spark_context is None  # noqa: SLF001 - there is no public way
    return None if stopped else _session_of_thread(active)


def _session_of_thread(active: SparkSession) -> SparkSession:
    """Return the session that is active in this thread, or *active* if there is none.

    Java has an active session a thread. PySpark has one a process: the last session that created
    a DataFrame, in any thread.
    """
    in_java = sessions(java_classes(active)).getActiveSession()
    if not in_java.isDefined() or in_java.get().sparkContext().isStopped():
        return active
    first: SparkSession | None = SparkSession._instantiatedSession  # noqa: SLF001 - as above
    for known in (active, first):
        if known is not None and java_session(known).equals(in_java.get()):
            return known
    return to_python_session(active.sparkContext, in_java.get())


def _apply(running: SparkSession, conf: Mapping[str, str]) -> None:
    for key, value in conf.items():
        if running.conf.isModifiable(key):
            running.conf.set(key, value)
