"""Servers in Java that Maven puts together, for catalogs and stores to be tested with."""

import os
import shutil
import socket
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from integration.kit.network import HOST
from zadapter.spark import java

MAVEN = shutil.which("mvn")


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@contextmanager
def java_server(project, folder, arguments, is_up, environment=()):
    """Run a Java server from the jars that *project* names, as long as the context lasts.

    Args:
        project: A file for Maven.
        folder: Where its log goes.
        arguments: Java's, after the class path.
        is_up: Tells whether it answers.
        environment: Variables, with their values.
    """
    if MAVEN is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs Debian's package maven")
    resolve = ["-q", "-f", project, "dependency:build-classpath", f"-Dmdep.outputFile={folder}/cp"]
    subprocess.run([MAVEN, *resolve], check=True, stdout=subprocess.DEVNULL)
    with (
        java.home() as home,
        Path(folder / "log").open("w") as log,
        subprocess.Popen(
            [home / "bin" / "java", "-cp", (folder / "cp").read_text(), *arguments],
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
    """Return as soon as the server answers."""
    while not is_up():
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"the server ended with {server.wait(timeout=0.1)}")


def answers(port):
    """Tell whether something accepts connections at *port*."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
