"""An HDFS with a namenode and a datanode of its own."""

from contextlib import contextmanager
from pathlib import Path

from integration.kit.servers import free_port, java_server

PROJECT = Path(__file__).with_name("hdfs.xml")


@contextmanager
def file_system(folder):
    """Start an empty one, and yield its URI."""
    port, started = free_port(), folder / "details"
    command = [f"-Dtest.build.data={folder}", "org.apache.hadoop.test.MiniDFSClusterManager"]
    arguments = ["-format", "-datanodes", "1", "-nnport", str(port), "-writeDetails", str(started)]
    with java_server(PROJECT, folder, command + arguments, started.exists):
        yield f"hdfs://localhost:{port}"
