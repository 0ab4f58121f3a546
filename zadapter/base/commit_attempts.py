"""Attempts of a commit: how often, how long, and what is known about them when they fail."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from zadapter.base.translate_errors import is_foreign, texts, translate_error
from zadapter.errors import NOT_COMMITTED, UnknownOutcomeError, UnsentCommitError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Retry policy for commits that lose a race: exponential, with full jitter and a deadline."""

    attempts: int = 8
    """Maximum number of attempts, including the first."""
    initial: float = 0.1
    """Maximum wait before the second attempt, in seconds. It doubles with each attempt."""
    longest: float = 10.0
    """Upper limit of every wait, in seconds."""
    deadline: float = 300.0
    """Time since the start, in seconds, after which no attempt starts."""

    def __post_init__(self) -> None:
        if self.attempts % 1 or self.attempts < 1:
            raise UsageError(f"attempts= must be a whole number, at least 1: {self}")
        if not min(self.initial, self.longest, self.deadline) >= 0:  # also rejects NaN
            raise UsageError(f"initial=, longest= and deadline= must not be negative: {self}")

    def waits(self, jitter: Callable[[], float]) -> Iterator[float]:
        """Yield the seconds to wait before the second, third, … attempt.

        Args:
            jitter: Returns a random number from 0 to 1.
        """
        for attempt in range(self.attempts - 1):
            yield jitter() * min(self.longest, self.initial * 2.0 ** min(attempt, 64))


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Clock, sleep and jitter of the commit loop, which tests replace."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random  # noqa: S311 - spreads waits, guards nothing


class Attempts:
    """The attempts of one change: what is left of them, and whether one may have landed.

    A change that starts over, since others have rewritten its files, goes on with the same
    attempts: so :class:`Backoff` limits all of them together.

    Attributes:
        may_have_landed: Whether a commit was sent and is not known to have failed. The files of the
            change must not be deleted then, regardless of the exception that ends the call.
    """

    def __init__(self, backoff: Backoff | None = None, clock: Clock | None = None) -> None:
        self.may_have_landed = False
        self._clock = clock or Clock()
        policy = backoff or Backoff()
        self._waits = policy.waits(self._clock.jitter)
        self._end = self._clock.now() + policy.deadline
        self._none_left = False

    def wait(self) -> bool:
        """Wait before the next attempt, and return whether there is one."""
        seconds = next(self._waits, None)
        if seconds is not None and self._clock.now() + seconds > self._end:
            seconds = None
        self._none_left = seconds is None
        self._clock.sleep(seconds or 0.0)
        return not self._none_left

    def are_over(self) -> bool:
        """Return whether no attempt may start any more."""
        return self._none_left or self._clock.now() > self._end

    def __iter__(self) -> Iterator[int]:
        """Yield the number of each attempt, from 1, after the wait before it."""
        number = 1
        yield number
        while self.wait():
            number += 1
            yield number


@contextmanager
def before_sending(table: str) -> Iterator[None]:
    """State in each error of a block that nothing was committed.

    A backend's ``commit`` uses it for all that happens before the commit is sent, so that the
    written files are deleted if it fails.

    Args:
        table: The table, as the user named it.

    Raises:
        StoreError: The store is full, does not answer, or denies access.
        UnsentCommitError: Another exception was raised; it is the cause.
    """
    try:
        yield
    except (*NOT_COMMITTED, UnknownOutcomeError):
        raise
    except Exception as error:
        explained = translate_error(table, texts(error)) if is_foreign(error) else error
        if isinstance(explained, NOT_COMMITTED):
            raise explained from error
        message = str(explained) or type(explained).__name__
        raise UnsentCommitError(f"{message}; nothing was committed") from error
