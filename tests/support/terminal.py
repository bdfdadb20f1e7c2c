"""A terminal that a test looks at: a program runs in it as in a user's, its keys and its size are the test's.

May import: waiting. Owns the pseudo-terminal.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path

from tests.support.waiting import wait_for

ENTERS, LEAVES = b"\x1b[?1049h", b"\x1b[?1049l"
"""What switches to the other screen, and back."""

HIDES, SHOWS = b"\x1b[?25l", b"\x1b[?25h"
"""What hides the cursor, and shows it."""

HOME = "\x1b[H"
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program in a terminal of its own, which is its controlling one.

    Attributes:
        shown: all bytes that it wrote.
        process: the program.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, environment: dict[str, str], *, rows: int = 24, columns: int = 120
    ) -> None:
        self._master, slave = os.openpty()
        self.resize(rows, columns)
        self.shown = b""
        sizes = {"COLUMNS", "LINES"}  # who sets them means another size than the terminal's
        own = {name: value for name, value in environment.items() if name not in sizes}
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command], stdin=slave, stdout=slave, stderr=slave, cwd=folder,
            env={**own, "TERM": "xterm-256color"},
        )  # fmt: skip
        self._slave = slave

    def resize(self, rows: int, columns: int) -> None:
        """Another size; the kernel tells the program."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        """What a user types; \\x03 is Ctrl-C."""
        os.write(self._master, keys)

    def look(self) -> str:
        """The newest frame that was drawn whole, without its colours."""
        while select.select([self._master], [], [], 0)[0]:
            try:
                self.shown += os.read(self._master, 65536)
            except OSError:  # Linux's way to say that nobody has the other side open any more
                break
        frames = self.shown.decode("utf-8", "replace").split(HOME)
        return _ESCAPE.sub("", frames[-1])

    def shows(self, text: str, within: float = 15.0) -> str:
        """Waits for a text; the frame that has it."""
        return wait_for(lambda: frame if text in (frame := self.look()) else "", within, f"{text!r} on the terminal")

    def pid(self) -> int:
        """Of the program itself, not of who gave it its terminal."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else self.process.pid

    def ends(self, within: float = 10.0) -> int:
        """Its exit status; what it wrote last has been looked at."""
        wait_for(lambda: (self.look(), self.process.poll() is not None)[1], within, "its end")
        self.look()
        return int(self.process.returncode)

    def is_clean(self) -> bool:
        """Whether the terminal is as it was: its own screen, a cursor, lines and echo."""
        screens = self.shown.count(ENTERS) == self.shown.count(LEAVES) and self.shown.rfind(LEAVES) > self.shown.rfind(
            ENTERS
        )
        modes = termios.tcgetattr(self._slave)[3]
        lines = bool(modes & termios.ICANON and modes & termios.ECHO)
        return screens and self.shown.rfind(SHOWS) > self.shown.rfind(HIDES) and lines

    def close(self) -> None:
        """Ends the program and the terminal."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._slave)
        os.close(self._master)
