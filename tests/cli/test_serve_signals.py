"""``zadapter serve`` and Ctrl-C, without servers."""

import signal
from contextlib import contextmanager

import pytest

from zadapter.api import serve as api
from zadapter.cli.serve_command import serve


def test_ctrl_c_cancels_no_jobs(monkeypatch):
    """PySpark's handler would cancel all, also those of a commit; it is restored at the end."""
    seen = []

    @contextmanager
    def serving(*_):
        yield seen.append(signal.getsignal(signal.SIGINT))
        signal.raise_signal(signal.SIGINT)

    def pysparks(*_):
        pytest.fail("all jobs are cancelled")

    monkeypatch.setattr(api, "serving", serving)
    monkeypatch.setattr("threading.Event.wait", lambda _: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, pysparks)
    try:
        with pytest.raises(KeyboardInterrupt):
            serve().run(None)
        assert signal.getsignal(signal.SIGINT) is pysparks
    finally:
        signal.signal(signal.SIGINT, before)

    assert seen == [signal.default_int_handler]
