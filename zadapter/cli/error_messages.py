"""Error messages of the command line: one message per failure, without secrets."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import typer
from typer.core import TyperCommand

from zadapter.base.interrupts import Interrupted, terminate
from zadapter.base.java_errors import first_line
from zadapter.base.printable import append_notes
from zadapter.base.secrets import mask_secrets
from zadapter.cli.results import Result, printable
from zadapter.errors import ReportError, UsageError, ZadapterError
from zadapter.planning.options import RENAMED

_SURPLUS = "Got unexpected extra argument"
_MEANT = {
    "columns": "by",
    "keys": "by",
    "zorder_by": "by",
    "format": "backend",
    "filter": "where",
    "query_log": "queries",
}
"""Options by the names that other tools have for them."""
_SIGNALLED = 128
"""Offset of a signal's number in the exit code of a process."""


class Command(TyperCommand):
    """A command whose usage errors contain no secrets, and name the option for another's name."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the arguments, and mask secrets in errors."""
        typed = str(args)  # parsing consumes the arguments
        try:
            return super().make_context(*args, **kwargs)
        except Exception as error:
            message = getattr(error, "message", None)
            if hasattr(error, "possibilities") and (hint := self._hint(str(error.option_name))):  # type: ignore[attr-defined]
                message, error.possibilities = hint, None
            if isinstance(message, str):
                if _SURPLUS in message and "--conf" in typed:
                    # a blank after the key: the value may be a secret
                    message = f"{_SURPLUS}s; --conf must be key=value, without spaces around '='"
                error.message = mask_secrets(message)  # type: ignore[attr-defined]
            raise

    def _hint(self, option: str) -> str:
        """Return the message for an unknown option that has another name here; empty: none has."""
        name = option.removeprefix("--").replace("-", "_")
        known = {parameter.name for parameter in self.params}
        if name == "dry_run" and self.name in {"optimize", "plan"}:
            return (
                f"No such option: {option}; zadapter plan predicts the effect, and writes nothing"
            )
        if (new := RENAMED.get(name)) in known:
            return f"{option} was renamed; pass --{str(new).replace('_', '-')}"
        meant = _MEANT.get(name)
        return f"No such option: {option}; did you mean --{meant}?" if meant in known else ""


@contextmanager
def print_errors() -> Iterator[None]:
    """Convert errors to one message without secrets and an exit code."""
    # py4j logs a traceback if a signal arrives while Spark starts
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt as error:
        number = error.number if isinstance(error, Interrupted) else signal.SIGINT
        _complain(str(error) or "interrupted")
        raise typer.Exit(_SIGNALLED + number) from None
    except ZadapterError as error:
        _complain(f"error: {error}")
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None
    except typer.Exit:
        raise
    except Exception as error:  # noqa: BLE001 - the outermost handler
        _complain(f"error: {message_of(error)}")
        raise typer.Exit(1) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def report_change(done: str, made: Callable[[], Result]) -> Result:
    """Return the result of a command that has changed something.

    Args:
        done: What it has changed; empty: nothing.
        made: Returns the result.

    Raises:
        ReportError: There is no result, but the change is done.
    """
    with mention_change(done):
        return replace(made(), done=done)


@contextmanager
def mention_change(done: str) -> Iterator[None]:
    """State what is already done if the following code fails.

    Args:
        done: What is done; empty: nothing.

    Raises:
        ReportError: What follows has failed.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        if done:
            error.args = (f"{str(error) or 'interrupted'}. Done before: {done}",)
        raise
    except Exception as error:
        if not done:
            raise
        raise ReportError(f"{done}. Its report cannot be shown: {message_of(error)}") from error


@contextmanager
def handle_closed_output() -> Iterator[None]:
    """Give standard output up if it fails, so that Python does not complain at its end, too."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):  # it may be closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def message_of(error: Exception) -> str:
    """Return one message for an error, without secrets."""
    if isinstance(error, ZadapterError):
        return mask_secrets(str(error))
    name = type(error).__name__
    text = f"{name}: {first_line(error)} (repeat the call in Python for the traceback)"
    return mask_secrets(append_notes(text, error))


def _complain(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads it
        if sys.stderr is not None:
            sys.stderr.write(f"{printable(mask_secrets(text), sys.stderr)}\n")
