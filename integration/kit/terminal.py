"""A terminal, as a user sees it: what a program draws, and the keys that are pressed."""

import os

import pexpect
import pyte

ROWS, COLUMNS = 50, 120
CTRL_C = "\x03"


class Terminal:
    """A program on a terminal of its own.

    Attributes:
        frames: Every state of the screen that was seen, in order.
        pressed: Whether the key was pressed.
    """

    def __init__(self, command, folder, environment):
        self.frames, self.pressed = [], False
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._program = pexpect.spawn(
            "/bin/sh", ["-c", f"exec {command}"], cwd=folder, dimensions=(ROWS, COLUMNS),
            env=environment | {"TERM": os.environ.get("TERM", "xterm-256color")}, timeout=None,
        )  # fmt: skip

    def run(self, press=None, when=lambda: False):
        """Watch the program to its end, and press a key once. Return the exit code."""
        while self._draw():
            if press and not self.pressed and when():
                self._program.send(press)
                self.pressed = True
        self._program.close()
        return self._program.exitstatus

    @property
    def lines(self):
        """Return the lines on the screen that are not blank."""
        return [line.rstrip() for line in self._screen.display if line.strip()]

    def _draw(self):
        try:
            self._stream.feed(self._program.read_nonblocking(1 << 16, timeout=0.02))
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        if self.frames[-1:] != [self.lines]:
            self.frames.append(self.lines)
        return True
