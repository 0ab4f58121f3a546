"""A standalone Spark cluster on this machine: a master and a worker, from PySpark's own jars."""

import subprocess
from contextlib import contextmanager
from functools import partial

from integration.kit.network import HOST
from integration.kit.servers import answers, free_port, wait_for

DEPLOY = "org.apache.spark.deploy"


@contextmanager
def cluster(folder, environment):
    """Run a cluster whose worker has *folder* as its own, and yield the master's address."""
    port, page = free_port(), free_port()
    master = [f"{DEPLOY}.master.Master", "--host", HOST, "--port", port, "--webui-port", page]
    with _daemon(master, folder, environment, page):
        url, page = f"spark://{HOST}:{port}", free_port()
        sizes = ["--cores", 2, "--memory", "1g", "--work-dir", folder / "work"]
        worker = [f"{DEPLOY}.worker.Worker", "--host", HOST, "--webui-port", page, *sizes, url]
        with _daemon(worker, folder, environment, page):
            yield url


@contextmanager
def _daemon(words, folder, environment, page):
    with (
        (folder / f"{words[0]}.log").open("w") as log,
        subprocess.Popen(
            ["spark-class", *map(str, words)], cwd=folder, env=environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        ) as daemon,
    ):  # fmt: skip
        try:
            wait_for(daemon, partial(answers, page))
            yield
        finally:
            daemon.terminate()
