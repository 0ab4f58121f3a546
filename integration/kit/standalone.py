"""A standalone Spark cluster on this machine: a master and workers, from PySpark's own jars."""

import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from integration.kit.network import HOST
from integration.kit.servers import answers, free_port, wait_for

DEPLOY = "org.apache.spark.deploy"


@contextmanager
def cluster(folder, environment, cores=(2,)):
    """Run a cluster, and yield the master's address and the workers.

    Args:
        folder: The working folder of its processes.
        environment: Their environment.
        cores: The number of cores of each worker.
    """
    port, page = free_port(), free_port()
    master = [f"{DEPLOY}.master.Master", "--host", HOST, "--port", port, "--webui-port", page]
    with ExitStack() as stack:
        stack.enter_context(_daemon(master, folder, environment, page))
        url = f"spark://{HOST}:{port}"
        workers = [
            stack.enter_context(_worker(url, folder, environment, number, count))
            for number, count in enumerate(cores)
        ]
        yield url, workers


@contextmanager
def _worker(url, folder, environment, number, cores):
    page, own = free_port(), folder / f"worker-{number}"
    own.mkdir()
    # a task is never run a second time on the same host
    host = f"127.0.0.{number + 1}"
    sizes = ["--cores", cores, "--memory", "1g", "--work-dir", own / "work"]
    words = [f"{DEPLOY}.worker.Worker", "--host", host, "--webui-port", page, *sizes, url]
    port = free_port()
    options = f"-Dspark.shuffle.service.enabled=true -Dspark.shuffle.service.port={port}"
    # the shuffle service of a worker serves files under its own folders alone
    local = folder / "local"
    settings = {"SPARK_WORKER_OPTS": options, "SPARK_LOCAL_DIRS": str(local)}
    with _daemon(words, own, {**environment, **settings}, page) as daemon:
        yield Worker(daemon, port, local)


class Worker:
    """A worker and the processes of its executors.

    Attributes:
        shuffle_port: Port at which it serves the shuffle files of all executors of this machine
            whose application asks for it.
        local: Folder of the shuffle files that all executors of this machine write.
    """

    def __init__(self, daemon, shuffle_port, local):
        self.daemon = daemon
        self.shuffle_port = shuffle_port
        self.local = local

    def executors(self):
        """Return the process ids of its executors."""
        tasks = Path(f"/proc/{self.daemon.pid}/task")
        children = " ".join((each / "children").read_text() for each in tasks.iterdir())
        return [int(child) for child in children.split()]

    @contextmanager
    def executors_killed(self):
        """Kill its executors, for which it starts others."""
        self._signal(signal.SIGKILL)
        yield

    @contextmanager
    def executors_stopped(self):
        """Let its executors hang within the context."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    @contextmanager
    def shuffle_files_lost(self):
        """Delete the shuffle files that all executors of this machine have written."""
        for file in self.local.rglob("shuffle_*"):
            file.unlink(missing_ok=True)
        yield

    def _signal(self, number):
        for executor in self.executors():
            with suppress(ProcessLookupError):
                os.kill(executor, number)


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
            yield daemon
        finally:
            daemon.terminate()
