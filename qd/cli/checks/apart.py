"""`qd check`: what imports handlers' modules runs in a child process, and counts only once that has said its last word.

The child has no terminal, no descriptor but its own three and its way to tell, nothing to read; as root it is another
user. What it writes to stdout or stderr goes to stderr, made safe for a terminal; what it has found it tells through
a pipe of its own, and so does it that it came to its end: a module can end a process in more ways than can be kept
from it. With the check ends all that it has begun, also what has left its session.
May import: the terminal's text, the verbs' endings. Owns: the child, the pipes from it, what TERM and HUP do meanwhile.
"""

from __future__ import annotations

import codecs
import ctypes
import json
import os
import selectors
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from qd.cli import ending
from qd.cli.terminal import safe
from qd.clock import monotonic
from qd.errors import QdError

TICK = 0.05
"""Seconds between two looks whether it has ended: something else may hold its pipes open."""

TO_END = 5.0
"""Seconds for what is killed to be gone."""

LONGEST = 1 << 16
"""Characters without an end of line that are kept together."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

Tell = Callable[[Any], None]
"""Takes a value that JSON can have."""


class EndedEarly(Exception):
    """The child ended without its last word; the text says how."""


def run_apart(become: Callable[[], None], work: Callable[[Tell], Any], tell: Tell) -> Any:
    """Runs this in a child process; what it returns there.

    Args:
        become: makes the child another user's.
        work: runs in the child; what it tells is told here.

    Raises:
        EndedEarly: something ended the child before that.
        click.exceptions.Exit: an error ended it, which it has said.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    before, pipes, parent = _children(), [os.pipe(), os.pipe()], os.getpid()
    with _left_to_nobody(before):
        child = os.fork()
        if child == 0:
            _as_child(parent, [writer for _, writer in pipes], become, work)
        for _, writer in pipes:
            os.close(writer)
        words = _Words(tell)
        status = _followed(
            child, dict(zip((reader for reader, _ in pipes), (_Copy(sys.stderr), words), strict=True)), before
        )
    if words.last is None:
        raise EndedEarly(f"with status {status}" if status >= 0 else f"by a signal, {signal.strsignal(-status)}")
    if "exit" in words.last:
        raise click.exceptions.Exit(words.last["exit"])
    return words.last["end"]


# -------------------------------------------------------------------- the child's side


def _as_child(parent: int, writers: list[int], become: Callable[[], None], work: Callable[[Tell], Any]) -> NoReturn:
    """All that it does; it never returns to who has called."""
    own = os.getpid()

    def say(**word: Any) -> None:
        if os.getpid() != own:  # a module has forked, and the copy goes on as if it were this one
            os._exit(0)
        data = f"{json.dumps(word)}\n".encode()
        while data:
            data = data[os.write(writers[1], data) :]

    def whole() -> Any:
        become()
        _end_with(parent)
        return work(lambda value: say(told=value))

    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        _cut_off(*writers)
        say(**_outcome(whole))
    finally:
        _flush()
        os._exit(1)


def _outcome(whole: Callable[[], Any]) -> dict[str, Any]:
    """The last word. What isn't an error but an end, KeyboardInterrupt too, has none: nobody types Ctrl-C there."""
    try:
        return {"end": whole()}
    except QdError as error:
        ending.say(error)
        return {"exit": ending.exit_code(error)}
    except Exception:
        traceback.print_exc()
        return {"exit": ending.COULD_NOT}


def _cut_off(output: int, words: int) -> None:
    os.setsid()
    for fd, own in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
        os.dup2(fd, own)
    for fd in _descriptors():
        if fd > 2 and fd != words:
            with suppress(OSError):  # the one that has listed them
                os.close(fd)
    sys.stdout, sys.stderr = (os.fdopen(fd, "w", 1, "utf-8", "backslashreplace", closefd=False) for fd in (1, 2))


def _descriptors() -> Iterable[int]:
    for place in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return [int(name) for name in os.listdir(place)]
    return range(1 << 16)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


def _end_with(parent: int) -> None:
    """Its parent's end is its own, by what the kernel forgets when a process becomes another user's."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it had ended before
        os._exit(1)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # a handler has closed it, or taken it away
            stream.flush()


# -------------------------------------------------------------------- this side


@contextmanager
def _left_to_nobody(before: set[int]) -> Iterator[None]:
    """Whatever ends this, none of what has become this process's child within is left."""

    def end(number: int, _: object) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)
        raise click.exceptions.Exit(128 + number)

    own = os.getpid()
    ours = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # whoever loses his parent there becomes this process's
    try:
        for each in ours:
            signal.signal(each, end)
        yield
    finally:
        if os.getpid() == own:
            _end(before)
            _prctl(_PR_SET_CHILD_SUBREAPER, 0)
            for each in ours:
                signal.signal(each, signal.SIG_DFL)


class _Copy:
    """Of what comes through one pipe: whole lines, made safe."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._begun, self._is_cut = to, "", False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, data: bytes) -> None:
        """Copies what are whole lines by now; with no data what is left is one. A very long one goes in pieces."""
        lines = (self._begun + self._decoder.decode(data, final=not data)).split("\n")
        self._begun = lines.pop()
        for line in lines:
            self._to.write(f"{safe(line.removesuffix(chr(13)))}\n")
            self._is_cut = False
        if len(self._begun) > LONGEST or (not data and self._begun):
            self._to.write(safe(self._begun))
            self._begun, self._is_cut = "", True
        if self._is_cut and not data:
            self._to.write("\n")
        self._to.flush()


class _Words:
    """What the child tells.

    Attributes:
        last: the last word; None: not yet.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell, self._begun = tell, b""
        self.last: dict[str, Any] | None = None

    def take(self, data: bytes) -> None:
        """Tells on what is whole."""
        *lines, self._begun = (self._begun + data).split(b"\n")
        for word in map(json.loads, lines):
            if "told" in word:
                self._tell(word["told"])
            else:
                self.last = word


def _followed(child: int, readers: dict[int, _Copy | _Words], before: set[int]) -> int:
    """Hands on what comes until the child has ended and all is read; its end, a signal's number below zero."""
    status = None
    with selectors.DefaultSelector() as pipes:
        for reader, taker in readers.items():
            pipes.register(reader, selectors.EVENT_READ, taker)
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
    return os.waitstatus_to_exitcode(how) if pid else None


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
