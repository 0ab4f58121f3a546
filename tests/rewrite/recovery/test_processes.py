"""Identity of processes."""

import json
import os
from dataclasses import replace

from zadapter.rewrite.recovery.processes import Process, current_process


def test_a_process_that_has_got_the_id_of_a_dead_one_is_another_one():
    """It has started at another time."""
    assert not current_process().is_dead()
    assert replace(current_process(), start=current_process().start - 1).is_dead()


def test_nothing_is_known_of_a_process_that_has_another_id_in_proc(monkeypatch):
    """A namespace of process ids whose ``/proc`` is still that of the machine."""
    monkeypatch.setattr("os.getpid", lambda: 1)

    assert not current_process().is_here()
    assert not current_process().is_dead()


def test_the_process_of_python_is_known():
    """On Linux, where the tests of crashes run."""
    process = current_process()

    assert process.pid == os.getpid()
    assert process.boot
    assert process.namespace
    assert Process.from_dict(json.loads(json.dumps(process.to_dict()))) == process
