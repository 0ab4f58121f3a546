"""Servers for clients of SQL, in the JVM of a session with zadapter's procedures."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from pyspark.sql import SparkSession

from zadapter.api.procedures import register_procedures
from zadapter.base.translate_errors import translate_errors
from zadapter.errors import SessionError
from zadapter.spark.jvm import servers
from zadapter.spark.procedure_calls import end_calls

_DETAILS = 3.0
"""Seconds between the ends of calls and of the servers. A client of Spark Connect asks for the
details of an error by a second request, and repeats it for ten minutes if there is no server."""


@contextmanager
def serving(spark: SparkSession, host: str, port: int, connect_port: int | None) -> Iterator[None]:
    """Register the procedures, and run servers that reach them.

    Args:
        spark: A session; clients get sessions of the same context.
        host: Address that the servers listen at.
        port: Port of the Thrift server.
        connect_port: Port of a Spark Connect server; None: there is none.

    Raises:
        SessionError: Spark is too old or lacks a server, a port is in use, or settings of Hive
            override the address.
    """
    if overrides := servers.thrift_overrides(spark):
        raise SessionError(
            f"{', '.join(overrides)} would make the Thrift server listen elsewhere than at "
            f"{host}:{port}; unset it, and pass --host and --port"
        )
    for each in (port, *([] if connect_port is None else [connect_port])):
        _check_free(host, each)
    register_procedures(spark)
    with ExitStack() as running:
        with translate_errors("the server"):
            thrift = _found(servers.start_thrift(spark, host, port), "Thrift")
            running.callback(thrift.stop)
            if connect_port is not None:
                connect = _found(servers.start_connect(spark, host, connect_port), "Connect")
                running.callback(servers.stop_connect, spark, connect)
        running.callback(_end_calls, spark)
        yield


def _end_calls(spark: SparkSession) -> None:
    if end_calls(spark):
        time.sleep(_DETAILS)


def _found(server: Any, name: str) -> Any:
    if server is None:
        raise SessionError(
            f"Spark's jars have no {name} server; install PySpark from the package index, whose "
            "jars have it"
        )
    return server


def _check_free(host: str, port: int) -> None:
    try:
        with socket.create_server((host, port)):
            pass
    except OSError as error:
        raise SessionError(
            f"nothing can listen at {host}:{port}: {error.strerror}; pass another --port or --host"
        ) from error
