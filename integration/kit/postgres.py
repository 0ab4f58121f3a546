"""PostgreSQL server of our own, from Debian's package."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.kit.network import HOST
from integration.kit.servers import free_port

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
USER = "zadapter"


@contextmanager
def postgres_server(folder):
    """Run a server with its data in *folder*, and yield its port; its user needs no password."""
    if PROGRAMS is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs Debian's package postgresql")
    _let_in(folder)
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    port, data = free_port(), ["-D", f"{folder}/data"]
    _run("initdb", *data, "-A", "trust", "-U", USER)
    options = f"-p {port} -c listen_addresses={HOST} -c unix_socket_directories={folder}"
    data += ["-t", "300"]  # seconds, should the machine be busy
    _run("pg_ctl", *data, "-w", "-l", f"{folder}/log", "-o", options, "start")
    try:
        yield port
    finally:
        _let_in(folder)
        _run("pg_ctl", *data, "-m", "fast", "stop")


def _let_in(folder):
    """Open the folders above to the server's user; other runs of pytest close them again."""
    for path in (folder, *list(folder.parents)[:-2]):
        path.chmod(0o755)


def _run(program, *arguments):
    """Run one of PostgreSQL's programs, which refuse to be root."""
    owner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    command = [*owner, str(PROGRAMS / program), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")
