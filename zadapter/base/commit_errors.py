"""Errors of the part of a commit in which nothing has been sent yet."""

from collections.abc import Iterator
from contextlib import contextmanager

from zadapter.base.translate_errors import explain, is_foreign, texts
from zadapter.errors import NOT_COMMITTED, UnknownOutcomeError, UnsentCommitError


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
        explained = explain(table, texts(error)) if is_foreign(error) else error
        if isinstance(explained, NOT_COMMITTED):
            raise explained from error
        message = str(explained) or type(explained).__name__
        raise UnsentCommitError(f"{message}; nothing was committed") from error
