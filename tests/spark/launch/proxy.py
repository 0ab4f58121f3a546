"""A proxy for HTTPS, which asks for a user and a password."""

import base64
import socket
import socketserver
import threading
from contextlib import contextmanager, suppress

REFUSAL = (
    b"HTTP/1.1 407 Proxy Authentication Required\r\n"
    b'Proxy-Authenticate: Basic realm="Company"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
)


@contextmanager
def running(credentials):
    """Yield the port of a proxy and the hosts that it has connected to."""
    hosts = []
    expected = base64.b64encode(credentials.encode())

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            lines = [*iter(lambda: self.rfile.readline().strip(), b"")]
            headers = {
                name.lower(): value for name, _, value in (line.partition(b": ") for line in lines)
            }
            given = headers.get(b"proxy-authorization", b"")
            if given.partition(b" ")[2] != expected:
                self.wfile.write(REFUSAL)
                return
            host, _, port = lines[0].split()[1].decode().rpartition(":")
            hosts.append(host)
            with socket.create_connection((host, int(port))) as server:
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=pump, args=(server, self.connection))
                back.start()
                pump(self.connection, server)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], hosts
        finally:
            server.shutdown()
            thread.join()


def pump(source, target):
    """Copy bytes until the source ends."""
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
