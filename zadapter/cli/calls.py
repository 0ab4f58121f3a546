"""Calls of public functions: options of every command, checks, session, progress."""

import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

import zadapter
from zadapter.backend import plugins
from zadapter.base.locations import check_local
from zadapter.cli.command_options import AsJson, Conf, Quiet, Verbose, parse_pairs
from zadapter.cli.error_messages import handle_closed_output, mention_change, print_errors
from zadapter.cli.results import Result, show
from zadapter.errors import UsageError
from zadapter.report.progress import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = {"spark.log.level": "FATAL", "spark.ui.showConsoleProgress": "false"}
"""Settings of a session that the command line starts; it prints errors itself."""
_VERBOSE = {**QUIET, "spark.log.level": "WARN"}


@dataclass(frozen=True, kw_only=True)
class FunctionCall:
    """A checked call of a public function."""

    function: str
    """Name of the function in :mod:`zadapter`."""
    tables: tuple[str, ...]
    """Existing tables, and paths of rows."""
    run: Callable[["SparkSession"], Result]
    """Calls the function."""
    targets: tuple[str, ...] = ()
    """Tables that need not exist."""
    backend: str | None = None
    """The only format that the session supports; None: every installed format."""

    def check(self, conf: Mapping[str, str]) -> None:
        """Check what needs no Spark.

        Raises:
            UsageError: The backend is unknown, or a local folder does not exist.
        """
        if self.backend is not None:
            plugins.check(self.backend)
        check_local(self.tables, conf)


def command(verb: Callable[..., FunctionCall]) -> Callable[..., None]:
    """Return a command of a function that checks its arguments and returns a call.

    The command has the options of *verb* and the options of every command.
    """

    @wraps(verb, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    def run_command(
        *,
        conf: Conf = None,
        as_json: AsJson = False,
        quiet: Quiet = False,
        verbose: Verbose = False,
        **arguments: Any,
    ) -> None:
        with print_errors():
            if quiet and verbose:
                raise UsageError("--quiet and --verbose exclude each other; pass one of them")
            settings = parse_pairs(conf or (), "--conf")
            call = verb(**arguments)
            call.check(settings)
            with _print_log(
                logging.INFO if verbose else logging.ERROR if quiet else logging.WARNING
            ):
                conf_of_session = {**(_VERBOSE if verbose else QUIET), **settings}
                result = _result(call, conf_of_session, quiet=quiet)
            try:
                with mention_change(result.done), handle_closed_output():
                    show(result, as_json=as_json, quiet=quiet)
            except BrokenPipeError:  # the reader has read enough, and nothing was changed
                raise typer.Exit(1) from None
        if result.exit_code:
            raise typer.Exit(result.exit_code)

    common = [
        parameter
        for parameter in inspect.signature(run_command, follow_wrapped=False).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    own = inspect.signature(verb)
    every = [*own.parameters.values(), *common]
    run_command.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]
    return run_command


def _result(call: FunctionCall, conf: Mapping[str, str], *, quiet: bool) -> Result:
    getattr(zadapter, call.function)  # its error names the extra to install if there is no PySpark
    from zadapter.api.session import start_for_one_call  # noqa: PLC0415 - loads Spark

    session = start_for_one_call(conf, call.backend, [*call.tables, *call.targets])
    with nullcontext() if quiet else progress(Console(stderr=True)):
        return call.run(session)


@contextmanager
def _print_log(level: int) -> Iterator[None]:
    """Print the log of zadapter from *level* on standard error."""
    logger, handler = logging.getLogger("zadapter"), logging.StreamHandler(sys.stderr)
    name = "%(asctime)s %(name)s: " if level <= logging.INFO else "zadapter: "
    handler.setFormatter(logging.Formatter(f"{name}%(message)s", "%H:%M:%S"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
