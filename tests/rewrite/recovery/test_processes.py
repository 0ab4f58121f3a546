"""Identity of processes."""

import json
import os
from dataclasses import replace

from zadapter.rewrite.recovery.processes import Process, own


def test_a_process_that_has_got_the_id_of_a_dead_one_is_another_one():
    """It has started at another time."""
    assert not own().is_dead()
    assert replace(own(), start=own().start - 1).is_dead()


def test_nothing_is_known_of_a_process_that_has_another_id_in_proc(monkeypatch):
    """A namespace of process ids whose ``/proc`` is still that of the machine."""
    monkeypatch.setattr("os.getpid", lambda: 1)

    assert not own().is_here()
    assert not own().is_dead()


def test_the_process_of_python_is_known():
    """On Linux, where the tests of crashes run."""
    process = own()

    assert process.pid == os.getpid()
    assert process.boot
    assert process.namespace
    assert Process.restored(json.loads(json.dumps(process.stored()))) == process
