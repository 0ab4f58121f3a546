"""A REST catalog of our own, and a network between it and us that loses answers."""

import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections import deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from zadapter.spark import java

MAVEN = shutil.which("mvn")
PROJECT = Path(__file__).with_name("rest-catalog.xml")
HOST = "127.0.0.1"


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


class Network(ThreadingHTTPServer):
    """Passes requests on to a catalog. The fate of each commit is what ``fates`` says, in turn.

    "refused" is the catalog's no, "outrun" says that another writer was faster; with "lost" the
    answer never arrives, with "late" neither does the request, until ``deliver`` is called.
    """

    daemon_threads = True

    def __init__(self, port):
        super().__init__((HOST, 0), Handler)
        self.fates, self.held, self.upstream = deque(), [], f"http://{HOST}:{port}"
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def uri(self):
        return f"http://{HOST}:{self.server_address[1]}"

    def deliver(self):
        """Pass on the commits that were held back, and return the answers' codes."""
        return [send(request)[0] for request in self.held]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def log_message(self, *said):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        kept = {key: value for key, value in self.headers.items() if key.lower() != "host"}
        request = urllib.request.Request(
            self.server.upstream + self.path, body, kept, method=self.command
        )
        code, headers, content = self.fated(request)
        self.send_response(code)
        for key, value in headers.items():
            if key.lower() not in {"transfer-encoding", "connection", "content-length"}:
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815 - BaseHTTPRequestHandler's names

    def fated(self, request):
        of_table = self.command == "POST" and "/tables/" in self.path
        is_commit = of_table and not self.path.endswith("/metrics")
        fate = self.server.fates.popleft() if is_commit and self.server.fates else None
        if fate == "lost":
            send(request)
        if fate == "late":
            self.server.held.append(request)
        code, kind = {
            "refused": (403, "ForbiddenException"),
            "outrun": (409, "CommitFailedException"),
            "lost": (504, "ServiceFailureException"),
            "late": (504, "ServiceFailureException"),
        }.get(fate, (None, None))
        if code is None:
            return send(request)
        said = f'{{"error": {{"message": "{fate}", "type": "{kind}", "code": {code}}}}}'
        return code, {"Content-Type": "application/json"}, said.encode()


def send(request):
    """Return code, headers and content of the answer."""
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()
