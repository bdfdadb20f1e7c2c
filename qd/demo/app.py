"""`qd demo`, seen from outside: its folder, its signals and its exit status.

May import: everything below the command line. Owns: the folder that all of a run is kept in.
"""

from __future__ import annotations

import os
import shutil
import signal
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console

from qd.demo import tree
from qd.demo.rehearsal import Rehearsal
from qd.demo.service import LOG
from qd.demo.view import say
from qd.errors import QdError

OK, WRONG, USAGE = 0, 1, 2

INSTALLED = (b"site-packages", b"dist-packages")
"""Folders within the standard library's that aren't part of it."""


class Interrupted(BaseException):
    """A signal asked the demo to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def run(folder: str | None = None, *, mysql: bool = False) -> int:
    """Runs the demo: what it shows goes to stdout, what it complains of to stderr.

    Args:
        folder: whose files are hashed; None: the Python standard library's.
        mysql: on a private MariaDB instead of the embedded store.

    Returns:
        The exit status: 0 all is as it should be, 1 it isn't, 2 there is no such folder,
        128 + N ended by signal N. Whatever happens, nothing of it is left running or lying
        about, but for the folder of a run that went wrong, which is named.
    """
    console, errors = Console(highlight=False), Console(highlight=False, stderr=True)
    root = os.path.realpath(os.fsencode(folder if folder is not None else sysconfig.get_path("stdlib")))
    if not os.path.isdir(root):
        wrong = "is no folder" if os.path.exists(root) else "there is no such folder"
        say(errors, f"qd demo: {tree.readable(os.fsencode(folder or root))}: {wrong}")
        return USAGE
    try:
        with signals_as_exceptions(), own_folder(errors) as own:
            others = [os.path.join(root, name) for name in INSTALLED] if folder is None else []
            Rehearsal(console, root, own, leave_out=others).run(mysql)
    except Interrupted as interrupted:
        say(errors, f"qd demo: ended by {interrupted}; nothing of it is left")
        return 128 + interrupted.number
    except QdError as error:
        say(errors, f"qd demo: {error}", style="bold red")
        return WRONG
    return OK


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """The first signal raises Interrupted; later ones don't disturb the clearing up."""

    def end(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def own_folder(errors: Console) -> Iterator[Path]:
    """A folder that is removed at the end, but kept for a look if a run went wrong."""
    own = Path(tempfile.mkdtemp(prefix="qd-demo-"))
    keep = False
    try:
        yield own
    except Exception:
        keep = (own / LOG).exists()
        raise
    finally:
        if keep:
            say(errors, f"qd demo: configuration, ledger and the daemon's log are kept in {own}")
        else:
            shutil.rmtree(own, ignore_errors=True)
