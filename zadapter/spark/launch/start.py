"""Start of a session for formats and stores, with the user's settings first."""

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

from zadapter.errors import SessionError
from zadapter.spark import object_stores, settings
from zadapter.spark.launch import archive, jars, java, quiet
from zadapter.spark.launch.java import Java
from zadapter.spark.settings import PACKAGES, SPARK
from zadapter.table.format import Format, Library

NO_CONNECT = (
    "Spark Connect sessions are not supported, since zadapter commits through the session's JVM; "
    "start a classic session, for example with zadapter.spark.session()"
)
_LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of the JVM that assembles the command for Spark's JVM, and ends at once."""


def start(
    conf: Mapping[str, str], formats: Sequence[Format], stores: Sequence[str]
) -> SparkSession:
    """Start a session with the settings, jars and catalogs of *formats* and *stores*.

    In a JVM that runs already, such as that of ``spark-submit``, formats without jars are left out.

    Raises:
        SessionError: Versions do not fit, the packages cannot be loaded, or Spark does not start.
    """
    stated = {**settings.stated_outside(), **conf}
    refuse_connect(stated)
    libraries = [form.library for form in formats if form.library]
    has_jvm = bool(SparkConf().getAll())
    if has_jvm:
        jvm: Any = SparkContext._jvm  # noqa: SLF001 - the JVM has no public door
        libraries = [library for library in libraries if loaded(jvm, library)]
    _refuse_installed(libraries)
    added = settings.local_defaults(stated, libraries) | settings.additions(stated, libraries)
    added |= object_stores.additions({**stated, **added}, stores)
    if has_jvm:
        added = {key: added[key] for key in added.keys() - settings.READ_AT_LAUNCH}
    _refuse_hidden(added)
    with nullcontext() if has_jvm else _launch(stated) as program:
        if program is not None:
            added = jars.by_path(stated, quiet.additions(stated, added))
            added = archive.additions(stated, added, program)
        with _python(stated):
            return _built({**conf, **added})


def _built(conf: Mapping[str, str]) -> SparkSession:
    try:
        return SparkSession.builder.config(map=dict(conf)).getOrCreate()
    except PySparkRuntimeError as error:
        raise SessionError(
            "Spark's JVM did not start; see the reason in its output above, for example a "
            f"failed download of {conf.get(PACKAGES) or 'a package'}"
        ) from error


def refuse_connect(stated: Mapping[str, str]) -> None:
    """Refuse a process that is set up for Spark Connect.

    Raises:
        SessionError: It is.
    """
    remote = "SPARK_REMOTE" in os.environ or "spark.remote" in stated
    if remote or stated.get("spark.api.mode", os.environ.get("SPARK_API_MODE")) == "connect":
        raise SessionError(NO_CONNECT)


def loaded(jvm: Any, library: Library) -> bool:
    """Return whether a JVM has the jars of a library."""
    return isinstance(attrgetter(library.probe)(jvm), JavaClass)


def version(package: str) -> str | None:
    """Return the version of an installed Python package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def refuse_version(name: str, found: str, supported: str, remedy: str) -> None:
    """Refuse another minor version than the supported one.

    Raises:
        SessionError: The versions differ.
    """
    if not settings.same_minor(found, supported):
        raise SessionError(
            f"{name} {found} is loaded, but zadapter requires {name} {supported}: {remedy}"
        )


def _refuse_installed(libraries: Sequence[Library]) -> None:
    refuse_version("PySpark", pyspark.__version__, SPARK, "pip install 'pyspark>=4.1,<4.2'")
    for library in libraries:
        found = version(library.python_package)
        # without the package, its jar suffices
        if library.requirement is not None and found is not None:
            remedy = f"pip install '{library.requirement}'"
            refuse_version(library.python_package, found, library.version, remedy)


def supported(form: Format) -> bool:
    """Return whether the installed Python package of a format, if any, has a supported version."""
    library = form.library
    found = version(library.python_package) if library else None
    if library is None or library.requirement is None or found is None:
        return True
    return settings.same_minor(found, library.version)


def _refuse_hidden(added: Mapping[str, str]) -> None:
    if PACKAGES in added and PACKAGES in settings.submit_args():
        raise SessionError(
            "PYSPARK_SUBMIT_ARGS sets packages, so Spark ignores all others; "
            f"set all packages there: --packages {added[PACKAGES]}"
        )


@contextmanager
def _launch(stated: Mapping[str, str]) -> Iterator[Java]:
    """Set the variables of Java for the start of a JVM, and yield the Java."""
    options = (stated.get(key, "") for key in settings.JAVA_OPTION_KEYS)
    vector = any(java.VECTOR in text for text in options)
    program = java.chosen()
    with java.home(program, vector=vector) as home:
        launcher = os.environ.get("SPARK_LAUNCHER_OPTS", _LAUNCHER)
        with _environment({"JAVA_HOME": str(home), "SPARK_LAUNCHER_OPTS": launcher}):
            yield program


@contextmanager
def _python(stated: Mapping[str, str]) -> Iterator[None]:
    """On a local master, let workers run this Python."""
    is_local = stated.get(settings.MASTER, "local").startswith("local")
    program = os.environ.get("PYSPARK_PYTHON", sys.executable)
    with _environment({"PYSPARK_PYTHON": program} if is_local else {}):
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
