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

from zadapter.errors import SessionError, UsageError
from zadapter.spark import catalogs, java, object_stores, settings
from zadapter.spark.settings import CATALOG, EXTENSIONS, FORMATS, PACKAGES, SPARK, Format

_NO_CONNECT = (
    "Spark Connect sessions are not supported, since zadapter commits through the session's JVM; "
    "start a classic session, for example with zadapter.spark.session()"
)


def session(
    conf: Mapping[str, str] | None = None,
    *,
    formats: Sequence[str] = ("delta", "iceberg"),
    stores: Sequence[str] = (),
) -> SparkSession:
    """Return the running Spark session, or start one that supports *formats*.

    A running session is checked. Settings of *conf* that Spark can change at run time are applied.

    A new session gets the Maven packages and SQL extensions of *formats*, in addition to those in
    *conf*, ``spark-defaults.conf`` and similar sources. For Delta it gets Delta's
    ``spark_catalog``, unless another one is configured. In that case Delta tables are found by
    path, and by name only if that catalog supports Delta. For Iceberg, on a local master and
    without another Iceberg catalog, it gets the JDBC catalog ``iceberg`` in the SQLite file
    ``iceberg.db`` of Spark's warehouse, which pyiceberg's ``SqlCatalog`` can read. On a local
    master, unless configured otherwise, it has no web UI, two shuffle partitions per core, one
    partition per core for the state of a Delta table, and half of the machine's memory, at most 4
    GiB, for the driver; Python workers run this Python. Spark downloads packages on first use.

    For S3 it gets Hadoop's S3A, which reads ``s3://`` and ``s3a://``. Credentials come from
    ``fs.s3a.*``, the environment, a profile or the machine, in this order. If ``AWS_ENDPOINT_URL``
    is set, that server is used, with the bucket in the path.

    Args:
        conf: Spark settings. They take precedence; lists are extended.
        formats: Formats to load, of ``"delta"``, ``"iceberg"`` and ``"parquet"``, which needs no
            packages. A session with fewer formats starts faster.
        stores: Object stores to load, of ``"s3"``.

    Raises:
        SessionError: PySpark, delta-spark, Java or the running session are not supported.
        UsageError: A format or a store is unknown.
    """
    if unknown := set(formats) - {*FORMATS, "parquet"}:
        raise UsageError(
            f"unknown format {min(unknown)!r}; expected one of: delta, iceberg, parquet"
        )
    if unknown := set(stores) - {object_stores.S3}:
        raise UsageError(f"unknown store {min(unknown)!r}; expected one of: {object_stores.S3}")
    there = running()
    found = there or _start(dict(conf or {}), formats, stores)
    for name in formats:
        check(found, name)
    for name in stores:
        object_stores.check(found, name)
    if there and conf:
        _apply(there, conf)
    return found


def ensure(spark: SparkSession | None, table_format: str, table: str = "") -> SparkSession:
    """Return a session that supports *table_format*.

    Args:
        spark: A session; None: the running session, or a new one.
        table_format: The format.
        table: Path or identifier of a table. The session supports its object store.

    Raises:
        SessionError: The session does not support the format or the store, or no session can
            start.
    """
    formats = [table_format] if table_format in FORMATS else []
    stores = object_stores.named([table])
    found = spark or running() or session(formats=formats, stores=stores)
    check(found, table_format)
    for name in stores:
        object_stores.check(found, name)
    return found


def check(spark: SparkSession, table_format: str) -> None:
    """Refuse a session that does not support *table_format*.

    Formats unknown to zadapter require only a classic session.

    Raises:
        SessionError: It is a Spark Connect session or stopped, it runs another version of Spark or
            of the format, or jars, extensions or Delta's catalog are missing; the message lists
            the missing settings.
    """
    if not isinstance(spark, SparkSession):
        raise SessionError(_NO_CONNECT)
    if spark.sparkContext._jsc is None:  # noqa: SLF001 - there is no public way
        raise SessionError("this Spark session is stopped; pass a running session, or none")
    _refuse_version("Spark", spark.version, SPARK, "pip install 'pyspark>=4.1,<4.2'")
    if table_format not in FORMATS:
        return
    form = FORMATS[table_format]
    jvm = spark._jvm  # noqa: SLF001 - the JVM has no public door
    loaded = isinstance(attrgetter(form.probe)(jvm), JavaClass)
    if missing := _missing(spark, table_format, loaded=loaded):
        raise SessionError(
            f"this Spark session does not support {table_format}: it lacks {', '.join(missing)}. "
            "Spark reads these settings at startup: in a new process, set in the builder, or with "
            "--conf of spark-submit,\n"
            f"{settings.config_lines(missing)}"
        )
    _refuse_loaded(jvm, table_format, form)


def _missing(spark: SparkSession, table_format: str, *, loaded: bool) -> dict[str, str]:
    keys = (PACKAGES, EXTENSIONS, CATALOG)
    stated = {key: str(spark.conf.get(key, "")) for key in keys}
    if stated[CATALOG] in {"", "builtin"}:
        del stated[CATALOG]
    lacking = settings.additions(stated, [table_format])
    lacking.pop(PACKAGES, None) if loaded else lacking.setdefault(PACKAGES, stated[PACKAGES])
    return {key: lacking[key] for key in keys if key in lacking}


def _refuse_loaded(jvm: Any, table_format: str, form: Format) -> None:
    version = attrgetter(form.version_method)(jvm)()
    packages = {PACKAGES: ",".join(form.packages)}
    line = settings.config_lines(packages).strip()
    _refuse_version(table_format, version, form.version, f"in a new process, {line}")


def _refuse_version(name: str, found: str, supported: str, remedy: str) -> None:
    if not settings.same_minor(found, supported):
        raise SessionError(
            f"{name} {found} is loaded, but zadapter requires {name} {supported}: {remedy}"
        )


def _refuse_installed(formats: Sequence[str]) -> None:
    _refuse_version("PySpark", pyspark.__version__, SPARK, "pip install 'pyspark>=4.1,<4.2'")
    if "delta" not in formats:
        return
    try:
        found = importlib.metadata.version("delta-spark")
    except importlib.metadata.PackageNotFoundError:
        return  # only its jar is required
    _refuse_version(
        "delta-spark", found, FORMATS["delta"].version, "pip install 'delta-spark>=4.4,<4.5'"
    )


def running() -> SparkSession | None:
    """Return the running session, or None if there is none.

    Raises:
        SessionError: The running session is a Spark Connect session.
    """
    try:
        found = SparkSession.active()
    except PySparkRuntimeError:
        return None
    if not isinstance(found, SparkSession):
        raise SessionError(_NO_CONNECT)
    stopped = SparkContext._active_spark_context is None  # noqa: SLF001 - there is no public way
    return None if stopped else found


def _has_jvm() -> bool:
    return bool(SparkConf().getAll())


def _apply(running: SparkSession, conf: Mapping[str, str]) -> None:
    for key, value in conf.items():
        if running.conf.isModifiable(key):
            running.conf.set(key, value)


def _start(conf: dict[str, str], formats: Sequence[str], stores: Sequence[str]) -> SparkSession:
    _refuse_installed(formats)
    stated = {**settings.stated_outside(), **conf}
    remote = "SPARK_REMOTE" in os.environ or "spark.remote" in stated
    if remote or stated.get("spark.api.mode", os.environ.get("SPARK_API_MODE")) == "connect":
        raise SessionError(_NO_CONNECT)
    added = {**settings.local_defaults(stated), **settings.additions(stated, formats)}
    added |= object_stores.additions({**stated, **added}, stores)
    if "iceberg" in formats and stated.get(settings.MASTER, "local").startswith("local"):
        embedded = catalogs.embedded(stated)
        added |= embedded
        if embedded:
            catalogs.make_folder(stated)
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
