"""OpenTelemetry spans, if the OpenTelemetry API is installed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from zadapter.base.java_errors import first_line

PREFIX = "zadapter."
"""Prefix of the names of spans and of their attributes."""


@contextmanager
def span(name: str, attributes: Callable[[], Mapping[str, str | int | float]]) -> Iterator[None]:
    """Run a span if OpenTelemetry is installed; without a configured SDK, spans are not recorded.

    Args:
        name: Name of the span, without the prefix.
        attributes: Returns the attributes at the end of the span.
    """
    trace = _api()
    if trace is None:
        yield
        return
    # the API would record messages of errors with their secrets
    silent = {"record_exception": False, "set_status_on_exception": False}
    with trace.get_tracer("zadapter").start_as_current_span(PREFIX + name, **silent) as current:
        try:
            yield
        except BaseException as error:
            text = f"{type(error).__name__}: {first_line(error)}"
            current.set_status(trace.Status(trace.StatusCode.ERROR, text))
            raise
        finally:
            current.set_attributes({PREFIX + key: value for key, value in attributes().items()})


@cache
def _api() -> Any:
    """Return the module ``opentelemetry.trace``, or None."""
    try:
        return import_module("opentelemetry.trace")
    except ImportError:
        return None
