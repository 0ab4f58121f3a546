"""Whether a call has committed anything, for the error that ends it.

A class of errors can only state what holds wherever it is raised. In a call it is known whether a
commit was sent, so :func:`stating` sets ``committed`` of each error to what is true of the call.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from zadapter.errors import UnknownOutcomeError, ZadapterError


@dataclass(slots=True)
class Outcome:
    """What the commits of a call have come to."""

    landed: bool = False
    """Whether a commit has landed."""
    unknown: bool = False
    """Whether a commit was sent, and it is unknown whether it landed."""

    @property
    def committed(self) -> bool | None:
        """Whether the call has committed anything; None if it is unknown."""
        return None if self.unknown else self.landed


_outcome: ContextVar[Outcome | None] = ContextVar("zadapter_outcome", default=None)


@contextmanager
def stating() -> Iterator[None]:
    """Run a call, and have its errors state whether it has committed anything."""
    outcome = Outcome()
    token = _outcome.set(outcome)
    try:
        yield
    except ZadapterError as error:
        unknown = outcome.unknown or isinstance(error, UnknownOutcomeError)
        error.committed = None if unknown else outcome.committed
        error.retryable = error.retryable and not unknown
        raise
    finally:
        _outcome.reset(token)


@contextmanager
def sending() -> Iterator[None]:
    """Send a commit: until the block ends, its outcome is unknown.

    An error whose ``committed`` is not None decides the outcome.
    """
    outcome = _outcome.get() or Outcome()
    before, outcome.unknown = outcome.unknown, True
    try:
        yield
    except ZadapterError as error:
        if error.committed is not None:
            outcome.unknown = before
            outcome.landed |= error.committed
        raise
    outcome.unknown = before
    outcome.landed = True


def record_landing() -> None:
    """Record that the first of several commits in a block of :func:`sending` has landed."""
    (_outcome.get() or Outcome()).landed = True


def withdrawn() -> None:
    """Record that what the call has committed was removed again."""
    (_outcome.get() or Outcome()).landed = False
