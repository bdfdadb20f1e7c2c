"""SIGQUIT, and a loop that hangs: where every thread is right now, one log line each.

Done by the main loop with the interpreter's lock held: `faulthandler.register` walks the frames of
running threads without it and has crashed a busy daemon. May import: log.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import PurePath

from qd.log import LogListener

EVENT = "daemon.stack_shown"

DEEPEST = 60
"""Frames of one stack that are shown."""


def show_stacks(log: LogListener) -> None:
    """Writes all stacks, whatever the log's level."""
    for thread, stack in stacks():
        log.write("info", EVENT, [("thread", thread), ("stack", stack)])


def stacks() -> Iterator[tuple[str, str]]:
    """Each thread's name and its stack, innermost frame first: `pool.py:31 wait < worker.py:88 run`."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for number, frame in sys._current_frames().items():
        walked = traceback.walk_stack(frame)
        calls = [f"{PurePath(f.f_code.co_filename).name}:{line} {f.f_code.co_name}" for f, line in walked]
        yield names.get(number, f"thread {number}"), " < ".join(calls[:DEEPEST])
