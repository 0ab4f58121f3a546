"""PostgreSQL server of our own, from Debian's package."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from integration.kit.network import HOST
from integration.kit.servers import free_port

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
USER = "zadapter"


@contextmanager
def postgres_server():
    """Run a server within the context, and yield its port; its user needs no password.

    Its folder is none of pytest's: each run of pytest closes these to other users, and the server,
    which refuses to be root, would end.
    """
    if PROGRAMS is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs Debian's package postgresql")
    with TemporaryDirectory(prefix="zadapter-postgres-") as folder:
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
            _run("pg_ctl", *data, "-m", "fast", "stop")


def _run(program, *arguments):
    """Run one of PostgreSQL's programs."""
    owner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    command = [*owner, str(PROGRAMS / program), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")
