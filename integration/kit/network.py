"""Proxy that refuses requests and loses answers."""

import urllib.error
import urllib.request
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

HOST = "127.0.0.1"
DROPPED = {"transfer-encoding", "connection", "content-length"}


class Network(ThreadingHTTPServer):
    """HTTP proxy; ``fates`` lists the fates of the next commits.

    "lost" drops the answer, "late" holds the request until ``deliver``, and "cut" closes the
    connection. Other fates are answered from *answers*, without passing the request on.

    Args:
        port: Port of the server on this machine.
        is_commit: Returns whether a request is a commit, by method, path and headers.
        answers: Code and content by fate.
    """

    daemon_threads = True

    def __init__(self, port, is_commit, answers):
        super().__init__((HOST, 0), Handler)
        self.is_commit, self.answers = is_commit, answers
        self.fates, self.held, self.upstream = deque(), [], f"http://{HOST}:{port}"
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def uri(self):
        return f"http://{HOST}:{self.server_address[1]}"

    def fate(self, method, path, headers):
        """Return the fate of a request; None: it is passed on."""
        is_commit = self.is_commit(method, path, headers)
        return self.fates.popleft() if is_commit and self.fates else None

    def passed_on(self, request):
        """Return the server's code, headers and content."""
        return send(request)

    def deliver(self):
        """Pass on the held commits, and return the status codes."""
        return [send(request)[0] for request in self.held]


class Handler(BaseHTTPRequestHandler):
    """Handler of one request, or of all requests of a persistent connection."""

    protocol_version = "HTTP/1.1"  # HTTP/1.0 lacks "100 Continue", for which S3A would wait seconds
    disable_nagle_algorithm = True

    def log_message(self, *said):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # urllib would add a form's content type
        kept = {"Content-Type": "application/octet-stream"} | {
            key.title(): value for key, value in self.headers.items() if key.lower() != "host"
        }
        request = urllib.request.Request(
            self.server.upstream + self.path, body or None, kept, method=self.command
        )
        answered = self.fated(request)
        if answered is None:
            self.close_connection = True
            return
        code, headers, content = answered
        size = headers.get("Content-Length", "0") if self.command == "HEAD" else len(content)
        self.send_response(code)
        for key, value in headers.items():
            if key.lower() not in DROPPED:
                self.send_header(key, value)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        if self.command != "HEAD":  # what is sent here is taken for the start of the next answer
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer  # noqa: N815 - the base class's names

    def fated(self, request):
        server = self.server
        fate = server.fate(self.command, self.path, self.headers)
        if fate == "lost":
            send(request)
        if fate == "late":
            server.held.append(request)
        if fate is None:
            return server.passed_on(request)
        if fate == "cut":
            return None
        code, content = server.answers[fate]
        return code, {"Content-Type": "application/json"}, content.encode()


def send(request):
    """Send a request, and return code, headers and content of the answer."""
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()
