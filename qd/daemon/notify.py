"""What systemd is told: READY, STATUS, STOPPING, RELOADING, WATCHDOG, over the sdnotify library.

Nothing here blocks: the socket doesn't, and what systemd has no room for is sent at the next turn,
in order. Built before the environment is scrubbed, since handlers must not see NOTIFY_SOCKET.
May import: clock. Owns: the notify socket.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque

from sdnotify import SystemdNotifier

from qd.clock import monotonic_usec


def _address(variable: str) -> str:
    """The socket's address; a leading @ means an abstract one."""
    return "\0" + variable[1:] if variable.startswith("@") else variable


LONGEST = 200
"""Characters of a STATUS line."""


def shortened(text: str, most: int) -> str:
    """The text, or its beginning where it is longer."""
    return text if len(text) <= most else f"{text[: most - 4]} ..."


class Notifier:
    """The way to systemd; where there is none, every call does nothing. Main thread only."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._address = _address(os.environ.get("NOTIFY_SOCKET", ""))
        self._system = self._connect()
        self._unsent: deque[str] = deque(maxlen=64)
        self._status = ""
        self.watchdog_usec = self._watchdog_usec()

    def _connect(self) -> SystemdNotifier | None:
        if not self._address:
            return None
        try:
            system = SystemdNotifier(debug=True)
        except OSError:  # nobody listens there: as if it weren't set
            return None
        system.socket.setblocking(False)
        return system

    def _watchdog_usec(self) -> int:
        """The watchdog's period in microseconds; 0: nobody waits for us."""
        usec, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
        if not usec.isdecimal() or (pid and pid != str(self._pid)):
            return 0
        return int(usec)

    def ready(self, status: str) -> None:
        """READY=1: the start, or a reload, is over."""
        self._send("READY=1", self._worded(status))

    def status(self, status: str) -> None:
        """STATUS alone; nothing is sent where it hasn't changed."""
        if self._worded(status) != self._status and not self._unsent:
            self._send(self._worded(status))

    def reloading(self) -> None:
        """RELOADING=1 with the moment, which Type=notify-reload wants in the same datagram."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={monotonic_usec()}")

    def stopping(self, status: str, within: float) -> None:
        """STOPPING=1.

        Args:
            within: seconds that the stop may take; asks systemd for as many, should TimeoutStopSec be less.
        """
        self._send("STOPPING=1", f"EXTEND_TIMEOUT_USEC={int(within * 1e6)}", self._worded(status))

    def watchdog(self) -> None:
        """WATCHDOG=1, in a datagram of its own."""
        self.flush()
        if not self._unsent:
            self._try("WATCHDOG=1")

    def flush(self) -> None:
        """Sends what found no room before."""
        while self._unsent and self._try(self._unsent[0]):
            self._unsent.popleft()

    def _worded(self, status: str) -> str:
        # sdnotify drops what isn't latin-1 without a word; a newline would begin another variable.
        return "STATUS=" + shortened(" ".join(status.split()).encode("ascii", "replace").decode(), LONGEST)

    def _send(self, *lines: str) -> None:
        self._status = next((line for line in lines if line.startswith("STATUS=")), self._status)
        self._unsent.append("\n".join(lines))
        self.flush()

    def _try(self, state: str) -> bool:
        """False where there was no room; a listener that is gone counts as told."""
        if self._system is None or os.getpid() != self._pid:
            return True
        try:
            self._system.notify(state)
        except BlockingIOError:
            return False
        except OSError:  # systemd made its socket anew
            self._once_more(self._system, state)
        return True

    def _once_more(self, system: SystemdNotifier, state: str) -> None:
        with contextlib.suppress(OSError):
            system.socket.connect(self._address)
            system.notify(state)
