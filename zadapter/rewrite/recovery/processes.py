"""Identity of processes, by which another process of the same machine knows that they are dead.

A process is known by its machine's boot, its namespace of process ids, its id and its start. Where
one of these is unknown, as on systems other than Linux, or another one, as in another container,
nothing is known about the process.
"""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from zadapter.base.interrupts import ignoring_errors
from zadapter.spark.jvm.gateway import jvm_of
from zadapter.spark.jvm.java_classes import java_classes

_jvms: WeakKeyDictionary[Any, "Process"] = WeakKeyDictionary()
"""The process of each JVM that was asked for."""
_BOOT, _NAMESPACE = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"
_STATE, _START = 0, 19
"""Places of fields in ``/proc/<pid>/stat`` behind the name of the program (proc_pid_stat(5))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process, or what is known about it."""

    host: str
    boot: str
    """Id of the boot of the machine's kernel; empty if it is unknown."""
    namespace: str
    """The namespace in which the id is unique; empty if it is unknown."""
    pid: int
    start: int
    """Start of the process in ticks since the boot."""

    def to_dict(self) -> dict[str, Any]:
        """Return the process as a note stores it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Any) -> "Process":
        """Return the process of a note.

        Raises:
            ValueError, LookupError, TypeError: It is none.
        """
        process = cls(**stored)
        if not all(isinstance(number, int) for number in (process.pid, process.start)):
            raise TypeError("not a process")
        return process

    def is_here(self) -> bool:
        """Return whether the process runs, or ran, where this one does."""
        here = current_process()
        machine = (here.host, here.boot, here.namespace)
        known = bool(here.boot and here.namespace)
        return known and machine == (self.host, self.boot, self.namespace)

    def is_alive(self) -> bool:
        """Return whether the process certainly runs; False: it is dead, or that is unknown."""
        return self.is_here() and not self.is_dead()

    def is_dead(self) -> bool:
        """Return whether the process has certainly ended; False: it lives, or that is unknown."""
        if not self.is_here():
            return False
        try:
            os.kill(self.pid, 0)  # unlike /proc, it sees the processes of other users
        except ProcessLookupError:
            return True
        except OSError:
            return False
        with suppress(OSError, ValueError, IndexError):
            fields = _stat(Path(f"/proc/{self.pid}/stat").read_text(errors="replace"))
            if int(fields[_START]) != self.start:
                return True  # another process has got the id
            # it has ended, and nobody has waited for it; threads other than the first may still run
            threads = Path(f"/proc/{self.pid}/task").iterdir()
            return fields[_STATE] in "ZX" and {each.name for each in threads} <= {str(self.pid)}
        return False


def current_process() -> Process:
    """Return this process."""
    return _read(lambda path: Path(path).read_text(errors="replace"), os.readlink, os.getpid())


def jvm_process(spark: Any) -> Process:
    """Return the process of a session's JVM, which outlives Python for a moment.

    Args:
        spark: A session.
    """
    known = _jvms.get(jvm_of(spark))
    if known is None:
        known = _read_jvm(java_classes(spark).java)
        if known.boot:  # else /proc could not be read this time
            _jvms[jvm_of(spark)] = known
    return known


def _read_jvm(java: Any) -> Process:
    def text(path: str) -> str:
        content = java.nio.file.Files.readAllBytes(java.io.File(path).toPath())
        return bytes(content).decode(errors="replace")

    def link(path: str) -> str:
        return str(java.nio.file.Files.readSymbolicLink(java.io.File(path).toPath()).toString())

    return _read(text, link, int(java.lang.ProcessHandle.current().pid()))


def _read(text: Callable[[str], str], link: Callable[[str], str], pid: int) -> Process:
    """Return the process that reads; nothing is known about it if it cannot read all of it.

    ``/proc`` may belong to another namespace, where the process has another id.
    """
    host = socket.gethostname()
    with ignoring_errors():
        stat = text("/proc/self/stat")
        if int(stat.split()[0]) == pid:
            return Process(
                host=host,
                boot=text(_BOOT).strip(),
                namespace=link(_NAMESPACE),
                pid=pid,
                start=int(_stat(stat)[_START]),
            )
    return Process(host=host, boot="", namespace="", pid=pid, start=0)


def _stat(text: str) -> list[str]:
    """Return the fields behind the name of the program, which may contain spaces and brackets."""
    return text.rpartition(")")[2].split()
