"""A REST catalog of our own."""

import os
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.network import HOST
from zadapter.spark import java

MAVEN = shutil.which("mvn")
PROJECT = Path(__file__).with_name("rest-catalog.xml")


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@contextmanager
def catalog_server(folder):
    """Run Iceberg's own REST catalog server on *folder*, and yield its port."""
    if MAVEN is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs Debian's package maven")
    resolve = ["-q", "-f", PROJECT, "dependency:build-classpath", f"-Dmdep.outputFile={folder}/cp"]
    subprocess.run([MAVEN, *resolve], check=True, stdout=subprocess.DEVNULL)
    port = free_port()
    said = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_WAREHOUSE": f"file://{folder}/warehouse",
    }
    arguments = ["-cp", (folder / "cp").read_text(), "org.apache.iceberg.rest.RESTCatalogServer"]
    with (
        java.home() as home,
        Path(folder / "log").open("w") as log,
        subprocess.Popen([home / "bin" / "java", *arguments], env=os.environ | said,
                         stdout=log, stderr=subprocess.STDOUT) as server,
    ):  # fmt: skip
        try:
            wait_for(server, port)
            yield port
        finally:
            server.terminate()


def wait_for(server, port):
    """Return as soon as the server accepts connections."""
    while server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
    raise AssertionError("the REST catalog's server did not start")
