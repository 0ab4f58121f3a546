"""The page for dbt: a project of one model, whose table is clustered in three ways."""

import os
import shlex
import signal
import subprocess
from contextlib import contextmanager

from integration.kit.servers import answers, free_port, wait_for
from tests.kit.documents import code

DOCUMENT = "zadapter/docs/how-to/dbt.md"
HOOK, NIGHT, SCRIPT = "A hook in SQL", "Every night", "A script"
PROJECT = """
name: lake
version: "1.0"
profile: lake
"""
PORT = "10000"


def dbt(folder, python, number):
    """Prepare a way of the page, and return its last command; the table is in the warehouse."""
    environment = os.environ | {"DO_NOT_TRACK": "1"}
    if number < 2:
        project(folder, code(DOCUMENT, SCRIPT, "sql"), code(DOCUMENT, SCRIPT, "yaml"))
        script = folder / "build.py"
        script.write_text(code(DOCUMENT, SCRIPT, "python", number))
        return [python, script], environment
    environment["PATH"] = f"{python.parent}:/usr/bin:/bin"
    (folder / "lake.toml").write_text(code(DOCUMENT, NIGHT, "toml"))
    with served(folder, environment) as port:
        place = folder / "project"
        profile = code(DOCUMENT, HOOK, "yaml").replace(PORT, str(port))
        project(place, code(DOCUMENT, HOOK, "sql", 1), profile)
        (place / "macros").mkdir()
        (place / "macros" / "zadapter.sql").write_text(code(DOCUMENT, HOOK, "sql"))
        try:
            subprocess.run(by_cron(0), check=True, env=environment, cwd=place)
        finally:
            print((place / "dbt.log").read_text())
    return by_cron(1), environment


def project(folder, model, profile):
    """Write a project of the model ``events``."""
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "events.sql").write_text(model)
    (folder / "dbt_project.yml").write_text(PROJECT)
    (folder / "profiles.yml").write_text(profile)


def by_cron(number):
    """Return the command of a line for cron, without its folder."""
    _, _, line = code(DOCUMENT, NIGHT, "cron", number).strip().partition(" && ")
    return ["/bin/sh", "-c", line]


@contextmanager
def served(folder, environment):
    """Run the server of the page at a free port, until Ctrl-C."""
    port = free_port()
    command = [*shlex.split(code(DOCUMENT, HOOK, "sh")), "--port", str(port)]
    with subprocess.Popen(command, cwd=folder, env=environment) as server:
        try:
            wait_for(server, lambda: answers(port))
            yield port
        finally:
            server.send_signal(signal.SIGINT)
