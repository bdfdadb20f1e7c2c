"""`qd check` as root: the rest of it in a child process that has nothing of root's.

The child has no terminal, no descriptor but its own three, nothing to read; what it says this process copies, made
safe for a terminal. With the check ends all that it has begun, also what has left its session.
May import: the terminal's text. Owns: the child, the pipes from it.
"""

from __future__ import annotations

import codecs
import ctypes
import os
import selectors
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click

from qd.cli.terminal import safe
from qd.clock import monotonic

TICK = 0.05
"""Seconds between two looks whether it has ended: something else may hold its pipes open."""

TO_END = 5.0
"""Seconds for what is killed to be gone."""

LONGEST = 1 << 16
"""Characters without an end of line that are kept together."""

_PR_SET_CHILD_SUBREAPER = 36
_state = {"apart": False}


def go_on_apart(become: Callable[[], None]) -> None:
    """Returns in a child process, once it is another; this one copies what it says, and then ends as it did.

    Args:
        become: makes the child another.

    Raises:
        click.exceptions.Exit: here, with the child's status.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # whoever loses his parent there becomes this process's
    before, pipes = _children(), (os.pipe(), os.pipe())
    child = os.fork()
    if child == 0:
        _state["apart"] = True
        _cut_off(*(writer for _, writer in pipes))
        become()
        return
    for _, writer in pipes:
        os.close(writer)
    try:
        status = _copied(child, [reader for reader, _ in pipes], before)
    finally:
        _end(before)
    raise click.exceptions.Exit(status)


def leave(status: int) -> None:
    """The end of the check: in the child at once, whatever was imported would still have to say or do."""
    if _state["apart"]:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # a handler has closed it, or taken it away
                stream.flush()
        os._exit(status)


def _cut_off(output: int, errors: int) -> None:
    os.setsid()
    for fd, own in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (errors, 2)):
        os.dup2(fd, own)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with suppress(OSError):  # the one that has listed them
                os.close(int(name))
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)


# -------------------------------------------------------------------- root's side


class _Copy:
    """Of what comes through one pipe: whole lines, made safe."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._begun = to, ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, data: bytes) -> None:
        """Copies what are whole lines by now; with no data what is left is one."""
        lines = (self._begun + self._decoder.decode(data, final=not data)).split("\n")
        self._begun = lines.pop()
        if self._begun and (not data or len(self._begun) > LONGEST):
            lines, self._begun = [*lines, self._begun], ""
        for line in lines:
            self._to.write(f"{safe(line.removesuffix(chr(13)))}\n")
        self._to.flush()


def _copied(child: int, readers: list[int], before: set[int]) -> int:
    """Copies until the child has ended and all is read; the exit status for its end."""
    status = None
    with selectors.DefaultSelector() as pipes:
        for reader, stream in zip(readers, (sys.stdout, sys.stderr), strict=True):
            pipes.register(reader, selectors.EVENT_READ, _Copy(stream))
        while True:
            ready = pipes.select(TICK if status is None else 0)
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                key.data.take(data)
                if not data:
                    pipes.unregister(key.fd)
            if status is None:
                status = _status(child)
                if status is not None:
                    _end(before)  # else what it left behind could write on for ever
            elif not ready:
                return status


def _status(child: int) -> int | None:
    pid, how = os.waitpid(child, os.WNOHANG)
    if not pid:
        return None
    code = os.waitstatus_to_exitcode(how)
    return code if code >= 0 else 128 - code


def _end(before: set[int]) -> None:
    """Kills all that has become this process's child since, until there is none: each may have had some of its own."""
    deadline = monotonic() + TO_END
    while (left := _children() - before) and monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _children() -> set[int]:
    """The processes whose parent this one is."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            if int((folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(folder.name))
    return found
