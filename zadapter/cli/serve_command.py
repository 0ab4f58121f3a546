"""``zadapter serve``: procedures for clients of SQL, until Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from zadapter.backend import plugins
from zadapter.cli.calls import FunctionCall
from zadapter.cli.results import Result, facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Host = Annotated[
    str,
    typer.Option(metavar="ADDRESS", help="Address to listen at; whoever reaches it may write."),
]
_Port = Annotated[int, typer.Option(metavar="PORT", help="Port of the Thrift server.")]
_ConnectPort = Annotated[
    int | None,
    typer.Option(metavar="PORT", help="Also run a Spark Connect server at this port."),
]
_Backend = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="The only format of the session: delta, iceberg or parquet; else all installed ones.",
        autocompletion=plugins.names,
    ),
]


def serve(
    *,
    host: _Host = "127.0.0.1",
    port: _Port = 10_000,
    connect_port: _ConnectPort = None,
    backend: _Backend = None,
) -> FunctionCall:
    """Run Spark's Thrift server with the procedures zadapter.system.*, until Ctrl-C."""

    def run(spark: "SparkSession") -> Result:
        from zadapter.api.serve import serving  # noqa: PLC0415 - loads Spark

        places = {"Thrift": f"jdbc:hive2://{host}:{port}"}
        if connect_port is not None:
            places["Connect"] = f"sc://{host}:{connect_port}"
        server = serving(spark, host, port, connect_port)
        with _python_s_handler(), server, suppress(KeyboardInterrupt):
            for name, place in places.items():
                typer.echo(f"{name} server at {place}; Ctrl-C ends it", err=True)
            threading.Event().wait()
        return facts(places, places, "stopped")

    return FunctionCall(function="register_procedures", tables=(), backend=backend, run=run)


@contextmanager
def _python_s_handler() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt alone; PySpark's handler cancels the jobs of commits."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
