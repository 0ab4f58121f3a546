"""Virtual environments of cells, outside the repository."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tomli

from tests.kit.checkout import ROOT, python_path

CACHE = Path.home() / ".cache" / "zadapter" / "matrix"
_PACKAGES = (
    *("filelock", "numpy", "pyarrow", "rich", "tomli", "typer", "obstore", "pandas"),
    *("deltalake", "pyiceberg[sql-sqlite]", "pytest", "hypothesis", "moto[server]"),
    *("setuptools", "editables"),
)
"""What zadapter and the suites import, and what an editable install needs, besides PySpark."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and its Python's minor version."""

    bin: Path
    python: str


def made(cell, folder):
    """Return the environment of a cell; it is made the first time, reused, and completed."""
    environment = Path(folder) / cell.name
    wanted = shutil.which(f"python{cell.python}")
    python = wanted if wanted and _works(wanted) else sys.executable
    programs, record = environment / "bin", environment / "complete"
    packages = (f"pyspark=={cell.spark}", *_PACKAGES, *_build_requirements())
    installed = record.read_text(encoding="utf-8") if record.exists() else None
    if installed is None:
        shutil.rmtree(environment, ignore_errors=True)
        _call(python, "-m", "venv", environment)
    if installed != "\n".join(packages):
        _call(programs / "pip", "install", "--quiet", *packages)
        record.write_text("\n".join(packages), encoding="utf-8")
    _call(
        *(programs / "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--editable", ROOT),
    )
    answer = _call(
        programs / "python", "-c", "import sys; print('{}.{}'.format(*sys.version_info))"
    )
    return Environment(programs, answer.strip())


def _build_requirements():
    """Return what zadapter's own build needs, since it is installed without build isolation."""
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return project["build-system"]["requires"]


def _works(python):
    """Return whether a program is a Python: shims of missing releases are none."""
    answer = subprocess.run([python, "-c", ""], check=False, capture_output=True)
    return answer.returncode == 0


def _call(*command):
    variables = {**os.environ, "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    answer = subprocess.run(
        list(map(str, command)), env=variables, check=False, capture_output=True, text=True
    )
    if answer.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {answer.stderr[-3_000:]}")
    return answer.stdout


def run(cell, environment, suites):
    """Run suites in an environment; return what pytest said, its exit code and the seconds."""
    files = [f"integration/matrix/suite_{suite}.py" for suite in suites]
    variables = {
        **os.environ,
        "PYTHONPATH": python_path(),
        "PATH": os.pathsep.join([str(environment.bin), os.environ["PATH"]]),
        "ZADAPTER_CELL": cell.name,
    }
    command = [
        *(environment.bin / "python", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"),
        # one process: the environment lacks what distributes tests
        *("-o", "addopts=--import-mode=importlib", "-m", "not slow"),
    ]
    start = time.monotonic()
    answer = subprocess.run(
        [*map(str, command), "--confcutdir=integration/matrix", *files],
        cwd=ROOT,
        env=variables,
        check=False,
        capture_output=True,
        text=True,
    )
    return answer.stderr + answer.stdout, answer.returncode, round(time.monotonic() - start)
