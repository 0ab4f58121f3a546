"""Others who come in between, commits whose answer is lost, and machines that stop."""

from zadapter.errors import UnknownOutcomeError
from zadapter_delta import DeltaBackend
from zadapter_iceberg import IcebergBackend
from zadapter_parquet import ParquetBackend

BACKENDS = {"delta": DeltaBackend, "iceberg": IcebergBackend, "parquet": ParquetBackend}


class Stopped(BaseException):
    """As if the machine had stopped: nobody handles it, nothing is cleaned up."""


def once(monkeypatch, format_, method, *, before=None, after=None):
    """Call *before* ahead of the next call of a backend's method, and *after* when it is done."""
    backend = BACKENDS[format_]
    real, called = getattr(backend, method), []

    def hooked(self, *arguments):
        first = not called
        called.append(True)
        if first and before is not None:
            before()
        result = real(self, *arguments)
        if first and after is not None:
            after()
        return result

    monkeypatch.setattr(backend, method, hooked)


def at_commit(monkeypatch, format_, **actions):
    """Hook into the commit."""
    once(monkeypatch, format_, "commit", **actions)


def stop():
    raise Stopped


def lose():
    """As if the answer had not come back."""
    raise UnknownOutcomeError("the table", "?")
