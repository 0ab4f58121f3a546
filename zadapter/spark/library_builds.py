"""The formats' libraries for the session's release of Spark, and warnings where it is untested."""

import importlib.metadata
import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from zadapter.backend import builds
from zadapter.backend.format import Format, Library
from zadapter.errors import SessionError
from zadapter.spark.jvm.gateway import JavaClass
from zadapter.spark.jvm.java_classes import java_class

VARIABLE = "ZADAPTER_UNTESTED"
"""Environment variable: ``refuse`` turns the warning about untested releases into an error."""
_logger = logging.getLogger(__name__)


def version(package: str) -> str | None:
    """Return the version of an installed Python package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def select_build(library: Library, spark: str) -> Library:
    """Return a library with the one build that goes with a release of Spark, or without any."""
    wanted = None if library.client is None else version(library.client)
    build = builds.choose_build(library.builds, spark, wanted)
    if build is None:
        return replace(library, builds=())
    local_settings = build.local_settings or library.local_settings
    return replace(library, builds=(build,), local_settings=local_settings)


def refuse_missing(form: Format, spark: str) -> None:
    """Refuse a format that has no build for a release of Spark.

    Raises:
        SessionError: It has none; the message names the releases that have one.
    """
    if form.library is not None and not select_build(form.library, spark).builds:
        others = dict.fromkeys(build.spark for build in form.library.builds)
        raise SessionError(
            f"{form.name} has no tested library for Spark {spark}; install PySpark "
            f"{' or '.join(others)}, or start a session of your own with the jar of the format"
        )


def refuse_old(spark: str) -> None:
    """Refuse a release of Spark that lacks functions.

    Raises:
        SessionError: It is too old.
    """
    if builds.is_too_old(spark):
        raise SessionError(
            f"Spark {spark} is too old: zadapter requires Spark {builds.OLDEST} or later; "
            f"pip install 'pyspark>={builds.OLDEST}'"
        )


def is_loaded(jvm: Any, library: Library) -> bool:
    """Return whether a JVM has the jars of a library."""
    return isinstance(getattr(jvm, library.probe), JavaClass)


def describe_untested(spark: SparkSession, form: Format) -> str | None:
    """Return the releases of a session that are untested, and the nearest tested ones, or None."""
    library = form.library
    if library is None:
        if builds.standing(spark.version).is_tested:
            return None
        return _format_untested(
            f"Spark {spark.version}", f"Spark {builds.nearest_spark(spark.version)}"
        )
    class_, _, method = library.version_method.rpartition(".")
    found = str(getattr(java_class(spark, class_), method)())
    if builds.is_tested(library.builds, spark.version, found):
        return None
    tested_spark, tested = builds.nearest(library.builds, spark.version, found)
    return _format_untested(
        f"Spark {spark.version} with {form.name} {found}",
        f"Spark {tested_spark} with {form.name} {tested}",
    )


def _format_untested(present: str, nearest: str) -> str:
    return f"{present} is untested; the nearest tested release is {nearest}"


def refuse_untested(spark: SparkSession, form: Format) -> None:
    """Refuse untested releases, if the user has asked for it.

    Raises:
        SessionError: The releases are untested, and ``ZADAPTER_UNTESTED`` is ``refuse``.
    """
    if os.environ.get(VARIABLE) == "refuse" and (reason := describe_untested(spark, form)):
        raise SessionError(f"{reason}; unset {VARIABLE} to use them after a self-test")


def libraries(formats: Sequence[Format], spark: str) -> list[Library]:
    """Return the libraries of *formats* that go with a release of Spark.

    Raises:
        SessionError: A format has none.
    """
    for form in formats:
        refuse_missing(form, spark)
    return [select_build(form.library, spark) for form in formats if form.library]
