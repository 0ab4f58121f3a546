"""Settings of a Spark session: requirements of each format, and the user's configuration.

The user's configuration takes precedence. Lists are extended, never replaced.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home

from zadapter.backend.format import Library

PACKAGES = "spark.jars.packages"
EXCLUDES = "spark.jars.excludes"
EXTENSIONS = "spark.sql.extensions"
CATALOG = "spark.sql.catalog.spark_catalog"
JARS = "spark.jars"
JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
MASTER = "spark.master"
MEMORY = "spark.driver.memory"
EXTRA_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
JAVA_OPTION_KEYS = (JAVA_OPTIONS, EXTRA_JAVA_OPTIONS)
CLASS_PATH = "spark.driver.extraClassPath"
JAVA_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
READ_AT_LAUNCH = frozenset({PACKAGES, EXCLUDES, MEMORY})
"""Settings that a running JVM ignores."""

_SUBMIT_FLAGS = {
    "--master": MASTER,
    "--driver-memory": MEMORY,
    "--driver-java-options": EXTRA_JAVA_OPTIONS,
    "--driver-class-path": CLASS_PATH,
    "--jars": JARS,
    "--packages": PACKAGES,
}
_SUBMIT_VARIABLES = {MASTER: "MASTER", MEMORY: "SPARK_DRIVER_MEMORY"}
_PROPERTY = re.compile(r"\s*([^\s=:#!][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*?)\s*")


def additions(stated: Mapping[str, str], libraries: Sequence[Library]) -> dict[str, str]:
    """Return the settings that *libraries* require and *stated* lacks.

    A package is not added if *stated* has its artifact, in any version, in ``spark.jars.packages``
    or as a file in ``spark.jars``. A configured ``spark_catalog`` is not replaced.
    """
    packages = [p for library in libraries for p in library.packages if not has_package(stated, p)]
    excludes = [e for library in libraries for e in library.excludes] if packages else []
    catalogs = (library.catalog for library in libraries if library.catalog)
    merged = {
        PACKAGES: add_items(stated, PACKAGES, packages),
        EXCLUDES: add_items(stated, EXCLUDES, excludes),
        EXTENSIONS: add_items(stated, EXTENSIONS, [library.extension for library in libraries]),
        CATALOG: stated.get(CATALOG) or next(iter(catalogs), ""),
    }
    return {key: value for key, value in merged.items() if value != stated.get(key, "")}


def local_defaults(stated: Mapping[str, str], libraries: Sequence[Library] = ()) -> dict[str, str]:
    """Return settings for a single machine, or none if the master is a cluster.

    Spark's defaults suit a cluster: 200 shuffle partitions, and 1 GiB for the driver, which does
    all the work on a local master.
    """
    master = stated.get(MASTER, "local[*]")
    if not master.startswith("local"):
        return {}
    cores = _cores(master)
    defaults = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(2 * cores),
        MEMORY: f"{_memory_mib()}m",
    }
    if options := _java_options(stated):
        defaults[JAVA_OPTIONS] = " ".join(options)
    for library in libraries:
        defaults |= library.local_settings(stated, cores)
    return {key: value for key, value in defaults.items() if key not in stated}


def _java_options(stated: Mapping[str, str]) -> list[str]:
    """Return JVM options that favour throughput over latency."""
    # rows are sorted in place: page look-ups take a tenth of a rewrite
    options = ["-XX:+UseTransparentHugePages"] if _huge_pages_on_request() else []
    given = [stated.get(EXTRA_JAVA_OPTIONS, ""), *map(os.environ.get, JAVA_VARIABLES)]
    if not any(_COLLECTOR.search(text or "") for text in given):  # a JVM rejects two collectors
        # G1, the default, makes each write of a reference slower, for shorter pauses
        options.append("-XX:+UseParallelGC")
    return options


def read_user_settings() -> dict[str, str]:
    """Return the user's configuration from files, variables and ``spark-submit``.

    It is read from the JVM if there is one, otherwise from the sources that the JVM will read.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # started by spark-submit, not yet connected
        SparkContext._ensure_initialized()  # noqa: SLF001 - there is no public way
    return dict(SparkConf().getAll()) or {**_variables(), **_defaults_file(), **submit_args()}


def submit_args() -> dict[str, str]:
    """Return the settings in ``PYSPARK_SUBMIT_ARGS``, which take precedence at launch."""
    conf: dict[str, str] = {}
    for flag, value in pairwise(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))):
        if flag in {"--conf", "-c"}:
            key, _, value_of_key = value.partition("=")
            conf[key] = value_of_key
        elif flag in _SUBMIT_FLAGS:
            conf[_SUBMIT_FLAGS[flag]] = value
    return conf


def config_lines(settings: Mapping[str, str]) -> str:
    """Return *settings* as lines of code for a session's builder."""
    return "\n".join(f'    .config("{key}", "{value}")' for key, value in settings.items())


def add_items(stated: Mapping[str, str], key: str, required: Sequence[str]) -> str:
    """Return the list setting *key* with the missing items of *required* added."""
    items = _items(stated, key)
    lacking = [item for item in required if item not in items]
    return ",".join([*items, *lacking]) if lacking else stated.get(key, "")


def _items(stated: Mapping[str, str], key: str) -> Sequence[str]:
    return [item.strip() for item in stated.get(key, "").split(",") if item.strip()]


def has_package(stated: Mapping[str, str], package: str) -> bool:
    """Return whether *stated* has the artifact of *package*, in any version, or its jar."""
    artifact, _, _ = package.rpartition(":")
    jar = f"{artifact.partition(':')[2]}-"
    return any(item.startswith(f"{artifact}:") for item in _items(stated, PACKAGES)) or any(
        jar in item.rpartition("/")[2] for item in _items(stated, JARS)
    )


def _cores(master: str) -> int:
    given = re.match(r"local\[(\d+)", master)
    if given:
        return int(given[1])
    return 1 if master == "local" else os.cpu_count() or 1


def _huge_pages_on_request() -> bool:
    try:
        return "[madvise]" in _HUGE_PAGES.read_text(encoding="utf-8")
    except OSError:  # not on this system
        return False


def _memory_mib() -> int:
    """Return half of the machine's memory, at most 4 GiB, at least Spark's default of 1 GiB."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (AttributeError, ValueError):  # not on this system
        return 1024
    return max(1024, min(4096, physical // 2))


def _variables() -> dict[str, str]:
    return {key: os.environ[name] for key, name in _SUBMIT_VARIABLES.items() if name in os.environ}


def conf_folder() -> Path:
    """Return the folder of the user's ``spark-defaults.conf`` and ``log4j2.properties``."""
    return Path(os.environ.get("SPARK_CONF_DIR") or _home() / "conf")


def jars_folder() -> Path:
    """Return the folder of the jars of the Spark that a new session will run."""
    return _home() / "jars"


def _home() -> Path:
    return Path(str(_find_spark_home()))  # type: ignore[no-untyped-call]


def _defaults_file() -> dict[str, str]:
    path = conf_folder() / "spark-defaults.conf"
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {match[1]: match[2] for line in lines if (match := _PROPERTY.fullmatch(line))}
