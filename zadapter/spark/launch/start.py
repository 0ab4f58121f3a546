"""Start of a session for formats and stores, with the user's settings first."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from zadapter.backend.format import Format
from zadapter.errors import SessionError
from zadapter.spark import library_builds, object_stores, settings
from zadapter.spark.jvm.gateway import Py4JNetworkError, jvm_of
from zadapter.spark.launch import folders, jars, java
from zadapter.spark.settings import PACKAGES

NO_CONNECT = (
    "Spark Connect sessions are not supported, since zadapter commits through the session's JVM; "
    "start a classic session, for example with zadapter.spark.session()"
)
_LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of the JVM that assembles the command for Spark's JVM, and ends at once."""

CONFIGURATION = Path(__file__).with_name("log4j2.properties")
_PROGRESS = "spark.ui.showConsoleProgress"
_VARIABLE = "LOG4J_CONFIGURATION_FILE"


def start(
    conf: Mapping[str, str], formats: Sequence[Format], stores: Sequence[str]
) -> SparkSession:
    """Start a session with the settings, jars and catalogs of *formats* and *stores*.

    In a running JVM, such as the one of ``spark-submit``, formats without jars are left out.

    Raises:
        SessionError: Versions do not fit, the packages cannot be loaded, or Spark does not start.
        StoreError: The S3 server of the settings does not answer.
    """
    stated = {**settings.read_user_settings(), **conf}
    refuse_connect(stated)
    library_builds.refuse_old(pyspark.__version__)
    has_jvm = bool(SparkConf().getAll())
    if has_jvm:
        jvm: Any = jvm_of(SparkContext)
        every = [form.library for form in formats if form.library]
        libraries = [library for library in every if library_builds.is_loaded(jvm, library)]
    else:
        libraries = library_builds.libraries(formats, pyspark.__version__)
    added = settings.local_defaults(stated, libraries) | settings.additions(stated, libraries)
    hadoop = object_stores.hadoop_of_pyspark()
    needed = [*stores, *([] if has_jvm else object_stores.find_stated_stores(stated))]
    added |= object_stores.additions({**stated, **added}, needed, hadoop)
    if object_stores.S3 in stores:
        object_stores.check_endpoint({**stated, **added})
    if has_jvm:
        added = {key: added[key] for key in added.keys() - settings.READ_AT_LAUNCH}
    _refuse_hidden(added)
    with nullcontext() if has_jvm else _launch(stated):
        if not has_jvm:
            added = jars.resolve_jars(stated, additions(stated, added))
        with _python(stated):
            return _build_session({**conf, **added})


def _build_session(conf: Mapping[str, str]) -> SparkSession:
    try:
        return SparkSession.builder.config(map=dict(conf)).getOrCreate()
    except PySparkRuntimeError as error:
        raise SessionError(
            "Spark's JVM did not start; see the reason in its output above, for example a "
            f"failed download of {conf.get(PACKAGES) or 'a package'}"
        ) from error
    except (OSError, Py4JNetworkError) as error:  # nobody listens where it did
        raise SessionError(
            f"Spark's JVM ended before the session was made ({error}); repeat the call with "
            "spark.log.level=INFO (command line: --verbose) to see its output"
        ) from error


def refuse_connect(stated: Mapping[str, str]) -> None:
    """Refuse a process that is set up for Spark Connect.

    Raises:
        SessionError: It is.
    """
    remote = "SPARK_REMOTE" in os.environ or "spark.remote" in stated
    if remote or stated.get("spark.api.mode", os.environ.get("SPARK_API_MODE")) == "connect":
        raise SessionError(NO_CONNECT)


def is_supported(form: Format) -> bool:
    """Return whether the format's library, if it has one, has a build for the installed Spark."""
    return form.library is None or bool(
        library_builds.select_build(form.library, pyspark.__version__).builds
    )


def _refuse_hidden(added: Mapping[str, str]) -> None:
    if PACKAGES in added and PACKAGES in settings.submit_args():
        raise SessionError(
            "PYSPARK_SUBMIT_ARGS sets packages, so Spark ignores all others; "
            f"set all packages there: --packages {added[PACKAGES]}"
        )


@contextmanager
def _launch(stated: Mapping[str, str]) -> Iterator[None]:
    """Set the variables of Java for the start of a JVM."""
    options = (stated.get(key, "") for key in settings.JAVA_OPTION_KEYS)
    vector = any(java.VECTOR in text for text in options)
    program = java.choose()
    _refuse_nameless()
    folders.refuse_full(stated)
    with java.home(program, vector=vector) as home:
        launcher = os.environ.get("SPARK_LAUNCHER_OPTS", _LAUNCHER)
        variables = {"JAVA_HOME": str(home), "SPARK_LAUNCHER_OPTS": launcher}
        # Java in the C locale cannot open paths beyond ASCII, where Python can
        if os.environ.get("LC_ALL") in {"C", "POSIX"}:
            variables["LC_ALL"] = "C.UTF-8"
        with _environment(variables):
            yield


def _refuse_nameless() -> None:
    """Refuse a user whom the system does not know, as in containers with any number as user."""
    if os.name != "posix":
        return
    import pwd  # noqa: PLC0415 - not on Windows

    try:
        pwd.getpwuid(os.getuid())
    except KeyError as error:
        raise SessionError(
            f"the user with the id {os.getuid()} has no name on this machine, and Spark does not "
            "start without one; add the id to /etc/passwd, or run as a user who has a name"
        ) from error


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


def additions(stated: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return *added* with settings that silence log4j and the console's progress bar.

    Args:
        stated: The user's settings, which take precedence.
        added: Settings of the new session so far.
    """
    silent = {} if _PROGRESS in stated else {_PROGRESS: "false"}
    if not _is_configured(stated):
        before = added.get(settings.JAVA_OPTIONS, stated.get(settings.JAVA_OPTIONS, ""))
        option = f"-Dlog4j2.configurationFile={CONFIGURATION.as_uri()}"
        silent[settings.JAVA_OPTIONS] = f"{before} {option}".strip()
    return {**added, **silent}


def _is_configured(stated: Mapping[str, str]) -> bool:
    """Return whether the user has configured log4j, by an option, a variable or a file."""
    options = (stated.get(key, "") for key in (settings.JAVA_OPTIONS, settings.EXTRA_JAVA_OPTIONS))
    variables = (os.environ.get(name, "") for name in settings.JAVA_VARIABLES)
    if _VARIABLE in os.environ or any("log4j" in text for text in (*options, *variables)):
        return True
    return any(settings.conf_folder().glob("log4j2*.*[!e]"))
