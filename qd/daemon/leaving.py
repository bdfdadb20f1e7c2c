"""The end of a process that has done its duty: nothing that a handler left behind may keep it.

Threads that aren't daemons, executors that are joined at the exit and children that nobody ends would
hold the interpreter's end up for ever. May import: clock. Owns: nothing.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

TO_END = 1.5
"""Seconds that the interpreter gets to end by itself."""


def leave(status: int) -> int:
    """From now on the process ends within TO_END, with this status.

    Returns:
        The status, for a normal exit.
    """
    flush()
    threading.Thread(target=_end_by_force, args=(status,), name="qd end", daemon=True).start()
    return status


def leave_at_once(status: int, last_act: Callable[[], None]) -> NoReturn:
    """Ends the process right after what must be its last act."""
    flush()
    try:
        last_act()
    finally:
        os._exit(status)


def flush() -> None:
    """Writes out what the log still holds."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # its reader is gone, or it is closed, or None
            stream.flush()


def _end_by_force(status: int) -> None:
    threading.Event().wait(TO_END)
    os._exit(status)
