"""``zadapter serve``: procedures for clients of SQL, until Ctrl-C."""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from zadapter.cli.calls import FunctionCall
from zadapter.cli.command_options import Backend
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


def serve(
    *,
    host: _Host = "127.0.0.1",
    port: _Port = 10_000,
    connect_port: _ConnectPort = None,
    backend: Backend = None,
) -> FunctionCall:
    """Run Spark's Thrift server with the procedures zadapter.system.*, until Ctrl-C."""

    def run(spark: "SparkSession") -> Result:
        from zadapter.api.serve import serving  # noqa: PLC0415 - loads Spark

        places = {"Thrift": f"jdbc:hive2://{host}:{port}"}
        if connect_port is not None:
            places["Connect"] = f"sc://{host}:{connect_port}"
        with serving(spark, host, port, connect_port), suppress(KeyboardInterrupt):
            for name, place in places.items():
                typer.echo(f"{name} server at {place}; Ctrl-C ends it", err=True)
            threading.Event().wait()
        return facts(places, places, "stopped")

    return FunctionCall(function="register_procedures", tables=(), backend=backend, run=run)
