"""Start and check of Spark sessions that support the table formats."""

import importlib.metadata
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from typing import Any

import pyspark
from py4j.java_gateway import JavaClass
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from zadapter.backend import plugins
from zadapter.errors import SessionError, UsageError
from zadapter.spark import java, object_stores, settings
from zadapter.spark.settings import CATALOG, EXTENSIONS, PACKAGES, SPARK
from zadapter.table.format import Format, Library

_NO_CONNECT = (
    "Spark Connect sessions are not supported, since zadapter commits through the session's JVM; "
    "start a classic session, for example with zadapter.spark.session()"
)


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
    memory, at most 4 GiB, for the driver; Python workers run this Python. Spark downloads packages
    on first use.

    For S3 it gets Hadoop's S3A, which reads ``s3://`` and ``s3a://``. Credentials come from
    ``fs.s3a.*``, the environment, a profile or the machine, in this order. If ``AWS_ENDPOINT_URL``
    is set, that server is used, with the bucket in the path.

    Args:
        conf: Spark settings. They take precedence; lists are extended.
        formats: Formats to load, such as ``"delta"``; None: those whose extra is installed, or
            every format if none is. A session with fewer formats starts faster.
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
    required = installed(available) if formats is None else [available[name] for name in formats]
    if unknown := set(stores) - {object_stores.S3}:
        raise UsageError(f"unknown store {min(unknown)!r}; expected one of: {object_stores.S3}")
    active = running()
    spark = active or _start(dict(conf or {}), required, stores)
    for form in required:
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
    stores = object_stores.named([table])
    chosen = spark or running() or _start({}, [form], stores)
    _check(chosen, form)
    for name in stores:
        object_stores.check(chosen, name)
    return chosen


def check(spark: SparkSession, table_format: str) -> None:
    """Refuse a session that does not support *table_format*.

    Raises:
        MissingBackendError: No backend of the format is installed.
        SessionError: It is a Spark Connect session or stopped, it runs another version of Spark or
            of the format, or jars, extensions or Delta's catalog are missing; the message lists
            the missing settings.
    """
    _check(spark, plugins.load(table_format).format)


def _check(spark: SparkSession, form: Format) -> None:
    if not isinstance(spark, SparkSession):
        raise SessionError(_NO_CONNECT)
    if spark.sparkContext._jsc is None:  # noqa: SLF001 - there is no public way
        raise SessionError("this Spark session is stopped; pass a running session, or none")
    _refuse_version("Spark", spark.version, SPARK, "pip install 'pyspark>=4.1,<4.2'")
    if form.library is None:
        return
    jvm = spark._jvm  # noqa: SLF001 - the JVM has no public door
    loaded = isinstance(attrgetter(form.library.probe)(jvm), JavaClass)
    if missing := _missing(spark, form.library, loaded=loaded):
        raise SessionError(
            f"this Spark session does not support {form.name}: it lacks {', '.join(missing)}. "
            "Spark reads these settings at startup: in a new process, set in the builder, or with "
            "--conf of spark-submit,\n"
            f"{settings.config_lines(missing)}"
        )
    _refuse_loaded(jvm, form.name, form.library)


def _missing(spark: SparkSession, library: Library, *, loaded: bool) -> dict[str, str]:
    keys = (PACKAGES, EXTENSIONS, CATALOG)
    stated = {key: str(spark.conf.get(key, "")) for key in keys}
    if stated[CATALOG] in {"", "builtin"}:
        del stated[CATALOG]
    lacking = settings.additions(stated, [library])
    lacking.pop(PACKAGES, None) if loaded else lacking.setdefault(PACKAGES, stated[PACKAGES])
    return {key: lacking[key] for key in keys if key in lacking}


def _refuse_loaded(jvm: Any, name: str, library: Library) -> None:
    version = attrgetter(library.version_method)(jvm)()
    packages = {PACKAGES: ",".join(library.packages)}
    line = settings.config_lines(packages).strip()
    _refuse_version(name, version, library.version, f"in a new process, {line}")


def _refuse_version(name: str, version: str, supported: str, remedy: str) -> None:
    if not settings.same_minor(version, supported):
        raise SessionError(
            f"{name} {version} is loaded, but zadapter requires {name} {supported}: {remedy}"
        )


def installed(formats: Mapping[str, Format]) -> list[Format]:
    """Return the formats whose Python package is installed, or all formats if none is."""
    packages = {form.name: form.library.python_package for form in formats.values() if form.library}
    installed_names = {name for name, package in packages.items() if _version(package) is not None}
    return [form for name, form in formats.items() if name in (installed_names or packages)]


def _version(package: str) -> str | None:
    """Return the version of an installed Python package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _refuse_installed(libraries: Sequence[Library]) -> None:
    _refuse_version("PySpark", pyspark.__version__, SPARK, "pip install 'pyspark>=4.1,<4.2'")
    for library in libraries:
        version = _version(library.python_package)
        # without the package, its jar suffices
        if library.requirement is not None and version is not None:
            remedy = f"pip install '{library.requirement}'"
            _refuse_version(library.python_package, version, library.version, remedy)


def running() -> SparkSession | None:
    """Return the running session, or None if there is none.

    Raises:
        SessionError: The running session is a Spark Connect session.
    """
    try:
        active = SparkSession.active()
    except PySparkRuntimeError:
        return None
    if not isinstance(active, SparkSession):
        raise SessionError(_NO_CONNECT)
    stopped = SparkContext._active_spark_context is None  # noqa: SLF001 - there is no public way
    return None if stopped else active


def _has_jvm() -> bool:
    return bool(SparkConf().getAll())


def _apply(running: SparkSession, conf: Mapping[str, str]) -> None:
    for key, value in conf.items():
        if running.conf.isModifiable(key):
            running.conf.set(key, value)


def _start(conf: dict[str, str], formats: Sequence[Format], stores: Sequence[str]) -> SparkSession:
    libraries = [form.library for form in formats if form.library]
    _refuse_installed(libraries)
    stated = {**settings.stated_outside(), **conf}
    remote = "SPARK_REMOTE" in os.environ or "spark.remote" in stated
    if remote or stated.get("spark.api.mode", os.environ.get("SPARK_API_MODE")) == "connect":
        raise SessionError(_NO_CONNECT)
    added = settings.local_defaults(stated, libraries) | settings.additions(stated, libraries)
    added |= object_stores.additions({**stated, **added}, stores)
    if _has_jvm():
        added = {key: added[key] for key in added.keys() - settings.READ_AT_LAUNCH}
    _refuse_hidden(added)
    builder = SparkSession.builder.config(map={**conf, **added})
    with _launch(stated):
        try:
            return builder.getOrCreate()
        except PySparkRuntimeError as error:
            raise SessionError(
                "Spark's JVM did not start; see the reason in its output above, for example a "
                f"failed download of {added.get(PACKAGES) or 'a package'}"
            ) from error


def _refuse_hidden(added: Mapping[str, str]) -> None:
    if PACKAGES in added and PACKAGES in settings.submit_args():
        raise SessionError(
            "PYSPARK_SUBMIT_ARGS sets packages, so Spark ignores all others; "
            f"set all packages there: --packages {added[PACKAGES]}"
        )


@contextmanager
def _launch(stated: Mapping[str, str]) -> Iterator[None]:
    """Set the variables of Java and, on a local master, of the workers' Python for the start."""
    is_local = stated.get(settings.MASTER, "local").startswith("local")
    variables = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    with nullcontext() if _has_jvm() else java.home() as home:
        chosen = {"JAVA_HOME": str(home)} if home else {}
        with _environment({**(variables if is_local else {}), **chosen}):
            yield


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Temporarily set environment variables; variables that Spark sets meanwhile are kept."""
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update(before)
