"""Java servers, fetched by Maven, for tests of catalogs and stores."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from integration.kit.network import HOST
from tests.kit.jvm import FAST_COMPILER
from zadapter.spark.launch import java

MAVEN = shutil.which("mvn")

# Maven keeps POMs of jars that it does not need. In its own folder, Spark would find them there and
# look for the jars nowhere else.
REPOSITORY = Path(tempfile.gettempdir(), "zadapter-maven")


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@contextmanager
def java_server(project, folder, arguments, is_up, environment=()):
    """Run a Java server from the jars of *project* within the context.

    Args:
        project: Maven project file.
        folder: Folder of its log.
        arguments: Java's arguments after the class path.
        is_up: Returns whether the server answers.
        environment: Environment variables.
    """
    if MAVEN is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs Debian's package maven")
    places = [f"-Dmaven.repo.local={REPOSITORY}", f"-Dmdep.outputFile={folder}/cp"]
    resolve = [MAVEN, "-q", "-f", project, "dependency:build-classpath", *places]
    subprocess.run(resolve, check=True, stdout=subprocess.DEVNULL)
    with (
        java.home(java.choose()) as home,
        Path(folder / "log").open("w") as log,
        subprocess.Popen(
            [home / "bin" / "java", *FAST_COMPILER, "-cp", (folder / "cp").read_text(), *arguments],
            env=os.environ | dict(environment), stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT,
        ) as server,
    ):  # fmt: skip
        try:
            wait_for(server, is_up)
            yield
        finally:
            server.terminate()


def wait_for(server, is_up):
    """Wait until the server answers."""
    while not is_up():
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"the server ended with {server.wait(timeout=0.1)}")


def answers(port):
    """Return whether a server accepts connections at *port*."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
