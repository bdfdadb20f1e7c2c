"""No child outlives its daemon: the kernel sees to it, whatever the handler is doing. Linux; elsewhere
the child's listening thread does.

May import: wire.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from qd.executors.wire import LAST_WORDS, OWNER, SOCKET

_PR_SET_PDEATHSIG = 1
_F_SETSIG = 10  # not in `fcntl`; the same on every Linux
_TAKE_ME_FIRST = 500  # added to the out-of-memory killer's judgement, of at most 1000


def bind_to(daemon: int) -> None:
    """From now on the daemon's end is the end of this process and of its whole group.

    The owner pipe's other end is the daemon's alone: when the kernel closes it, it sends SIGKILL to the
    group, with no need of the interpreter (F_SETSIG). Not the parent's death signal beside it: that comes
    a moment before, and would take the pipe's end away while the rest of the group lives on.
    """
    if sys.platform == "linux":
        try:
            fcntl.fcntl(OWNER, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(OWNER, _F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(OWNER, fcntl.F_SETFL, fcntl.fcntl(OWNER, fcntl.F_GETFL) | os.O_ASYNC)
        except OSError:  # a sandbox without it: this process at least
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != daemon:  # it had ended before
        os._exit(0)


def offer_to_oom_killer() -> None:
    """Where memory runs out, the kernel takes this process and not the daemon."""
    with suppress(OSError, ValueError), open("/proc/self/oom_score_adj", "r+") as file:
        now = int(file.read())
        file.seek(0)
        file.write(str(min(1000, now + _TAKE_ME_FIRST)))


def end_group(why: str) -> NoReturn:
    """Ends this process and its group at once."""
    with suppress(OSError):
        os.write(LAST_WORDS, f"{why}\n".encode())
    os.killpg(0, signal.SIGKILL)
    os._exit(1)  # never reached


def keep_to_ourselves() -> None:
    """Programs that handlers start don't inherit what ties us to the daemon; forked children let go of it."""
    for fd in (SOCKET, LAST_WORDS, OWNER):
        os.set_inheritable(fd, False)
    os.register_at_fork(after_in_child=_let_go)


def _let_go() -> None:
    for fd in (SOCKET, LAST_WORDS, OWNER):
        with suppress(OSError):
            os.close(fd)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
