"""Maven packages, which Spark has Ivy download, in a process of its own, with the user's proxy."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from urllib.parse import SplitResult, unquote, urlparse, urlsplit
from urllib.request import getproxies

from zadapter.errors import SessionError
from zadapter.spark import settings
from zadapter.spark.launch import folders

FOLDER = "spark.jars.ivy"
_SILENCE = 20.0
"""Seconds between two looks at a download, which is given up if nothing arrives in between."""
_CACHE = re.compile(r"^Ivy Default Cache set to: (.*)$", re.MULTILINE)
_RESOLVE = """
from pyspark import SparkConf, SparkContext
SparkContext._ensure_initialized()
print(SparkConf().get("spark.jars"))
"""
_TOOL_OPTIONS = "JAVA_TOOL_OPTIONS"
_MISSING = re.compile(r"\[(?:unresolved dependency|download failed): .*\]")
_FULL = "No space left on device"
_CAUSES = (
    re.compile(_FULL),
    re.compile(r"Your proxy requires authentication"),
    re.compile(r"Server access error at url .*"),
    re.compile(r"Host \S+ not found"),
)
"""What Ivy prints of a reason, the most telling first."""
_UNTRUSTED = "unable to find valid certification path"

_SCHEMES = ("https", "http")
_HOST = re.compile(r"[\w.-]+")
_NEVER = ("localhost", "127.*", "[::1]")
"""Hosts without a proxy by Java's default, which a list of hosts replaces."""
_BASIC = "-Djdk.http.auth.tunneling.disabledSchemes="
"""Schemes that Java does not send to proxies of HTTPS: none, where its default is ``Basic``."""


class UnresolvedError(SessionError):
    """Packages cannot be resolved."""


def home(stated: Mapping[str, str]) -> Path:
    """Return the folder in which Ivy keeps what it downloads.

    Raises:
        SessionError: The user has no home.
    """
    if stated.get(FOLDER):
        return Path(stated[FOLDER])
    try:
        return Path.home() / ".ivy2.5.2"
    except RuntimeError as error:
        raise SessionError(
            "the user has no home folder to keep Spark's jars in; "
            f"set the variable HOME, or the setting {FOLDER}, to a folder that can be written"
        ) from error


def resolve(stated: Mapping[str, str], packages: str, excludes: str) -> Sequence[str]:
    """Return the paths of the packages' jars and of all jars that these depend on.

    Raises:
        SessionError: Ivy's folder cannot be written.
        UnresolvedError: A package was not found, or no repository answers.
    """
    kept = home(stated)
    if fault := folders.find_fault(kept):
        raise SessionError(
            f"Spark's jars cannot be kept in {kept}: {fault}; "
            f"set {FOLDER} to a folder that can be written"
        )
    jars = {key: value for key, value in stated.items() if key.startswith("spark.jars.")}
    java = {key: stated[key] for key in settings.JAVA_OPTION_KEYS if key in stated}
    wanted = {settings.PACKAGES: packages, settings.EXCLUDES: excludes}
    conf = [f"{key}={value}" for key, value in {**jars, **java, **wanted}.items() if value]
    # the user's own jars are not those of the packages
    conf.append(f"{settings.JARS}=")
    arguments = [word for pair in conf for word in ("--conf", pair)]
    arguments += ["--master", "local", "pyspark-shell"]
    variables = {"PYSPARK_SUBMIT_ARGS": shlex.join(arguments), _TOOL_OPTIONS: _tool_options()}
    command = [sys.executable, "-c", _RESOLVE]
    try:
        code, output, errors = _run(command, {**os.environ, **variables})
    except TimeoutError:
        silent = f"nothing has arrived for {_SILENCE:.0f} seconds"
        raise UnresolvedError(message(packages, [silent])) from None
    found = output.strip().splitlines()
    if code or not found:
        raise UnresolvedError(message(packages, reasons(errors)))
    return [_local(name) for name in found[-1].split(",")]


def _tool_options() -> str:
    """Return what the JVM reads before its command line, where the user's own options are.

    Java takes the home from the system's list of users, where containers often have none.
    """
    options = [f"-Duser.home={Path.home()}", *java_options()]
    return " ".join([*map(shlex.quote, options), os.environ.get(_TOOL_OPTIONS, "")])


def _run(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Run a command that downloads; return its exit code and what it prints.

    Raises:
        TimeoutError: Nothing has arrived for a while.
    """
    with (
        TemporaryFile() as output,
        TemporaryFile() as errors,
        subprocess.Popen(  # noqa: S603 - this Python
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        ) as process,
    ):
        try:
            _await(process, lambda: _count_downloaded(_read(errors)))
        except BaseException:
            _kill(process)
            raise
        return process.returncode, _read(output), _read(errors)


def _await(process: subprocess.Popen[bytes], arrived: Callable[[], int | None]) -> None:
    """Wait as long as bytes arrive. Ivy itself waits without a limit."""
    now = None
    while not _has_ended(process):
        before, now = now, arrived()
        if now is not None and now == before:
            raise TimeoutError


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=_SILENCE)
    except subprocess.TimeoutExpired:
        return False
    return True


def _count_downloaded(errors: str) -> int | None:
    """Return the bytes that are printed and in Ivy's cache, or None if Ivy has not begun."""
    cache = _CACHE.search(errors)
    if cache is None:
        return None
    size = len(errors)
    for path in Path(cache[1]).rglob("*"):
        with suppress(OSError):  # it was renamed meanwhile
            size += path.stat().st_size
    return size


def _read(errors: IO[bytes]) -> str:
    errors.seek(0)
    return errors.read().decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and the JVM that it has started."""
    if os.name == "posix":
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def reasons(output: str) -> list[str]:
    """Return why packages could not be resolved, from what Spark and Ivy have printed.

    The line with which Java repeats its options, and so a password, is left out.
    """
    lines = [line.strip() for line in output.strip().splitlines() if _TOOL_OPTIONS not in line]
    missing = [found[0] for line in lines if (found := _MISSING.search(line))]
    causes = [found[0] for each in _CAUSES for line in lines if (found := each.search(line))]
    java = [line for line in lines if line.startswith("Exception in thread")]
    return [*missing[:1], *causes[:1]] or java[:1] or lines[-3:]


def message(packages: str, why: Sequence[str]) -> str:
    """Return what to say of packages that were not downloaded: why, and what to do."""
    text = "; ".join(why)
    proxy = describe()
    if _FULL in text:
        advice = f"free space, or set {FOLDER} to a folder on another disk"
    elif _UNTRUSTED in text:
        advice = (
            f"let Java trust the certificate: set {_TOOL_OPTIONS} to "
            "-Djavax.net.ssl.trustStore=FILE, with a trust store of your network"
        )
    elif proxy:
        advice = f"check the proxy {proxy} of HTTPS_PROXY, and its user and password if it has any"
    else:
        advice = "check the network and spark.jars.repositories; behind a proxy, set HTTPS_PROXY"
    return f"Spark cannot download {packages}: {text}; {advice}, or put the jars into spark.jars"


def _local(name: str) -> str:
    """Return the path of a jar that Spark names by path or URI."""
    parsed = urlparse(name)
    return unquote(parsed.path) if parsed.scheme == "file" else name


def java_options() -> list[str]:
    """Return options with which Java uses the proxies that pip uses.

    They are those of ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, in upper or
    lower case, or of macOS and Windows. Proxies of other kinds than HTTP are left out. The options
    may include a password, so they are not for a command line, which every user can see.

    Raises:
        SessionError: A proxy is not a URL.
    """
    given = getproxies()
    options = []
    for scheme in _SCHEMES:
        if proxy := _proxy(given, scheme):
            port = proxy.port or (443 if proxy.scheme == "https" else 80)
            options += [
                f"-D{scheme}.proxyHost={proxy.hostname}",
                f"-D{scheme}.proxyPort={port}",
            ]
    user = next((proxy for scheme in _SCHEMES if (proxy := _proxy(given, scheme))), None)
    if user is not None and user.username:
        options += [
            f"-Dhttp.proxyUser={unquote(user.username)}",
            f"-Dhttp.proxyPassword={unquote(user.password or '')}",
            _BASIC,
        ]
    if options and "no" in given:
        options.append(f"-Dhttp.nonProxyHosts={'|'.join([*_NEVER, *_direct(given['no'])])}")
    return options


def describe() -> str:
    """Return the proxy of downloads without its password, or an empty text."""
    proxy = _proxy(getproxies(), "https")
    return "" if proxy is None else proxy.netloc.rpartition("@")[2]


def _proxy(given: dict[str, str], scheme: str) -> SplitResult | None:
    address = given.get(scheme) or given.get("all") or ""
    if not address:
        return None
    try:
        found = urlsplit(address if "://" in address else f"http://{address}")
        usable = found.hostname is not None and (found.port or 0) >= 0
    except ValueError:
        usable = False
    # not the address, which may have a password
    if not usable:
        raise SessionError(
            f"the proxy of {scheme.upper()}_PROXY (or ALL_PROXY) is not a URL; "
            "set it to http://HOST:PORT, or unset it"
        )
    return found if found.scheme in _SCHEMES else None


def _direct(hosts: str) -> list[str]:
    """Return Java's patterns of hosts: a host of ``NO_PROXY`` stands for its subdomains, too."""
    if "*" in hosts.split(","):
        return ["*"]
    names = [re.sub(r":\d+$", "", each).lstrip("*.") for each in re.split(r"[\s,]+", hosts)]
    return [text for name in names if _HOST.fullmatch(name) for text in (name, f"*.{name}")]
