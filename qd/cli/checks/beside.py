"""What a handler's module does beside registering, kept from what the check says and from its end.

What it writes to stdout, itself or by a program that it runs, goes to stderr; that it ends the process is told; a
thread that it leaves behind keeps nothing from ending. May import: apart. Owns: the check's stdout.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from qd.cli.checks.apart import leave


class EndedEarly(BaseException):
    """A module wanted to end the process without a word."""


class Output:
    """Where findings go: stdout, also once everything else that is written there goes to stderr."""

    def __init__(self) -> None:
        self._own: int | None = None
        self._stdout = 1

    def keep(self) -> None:
        """From now on stdout is for findings alone."""
        try:
            self._stdout = sys.stdout.fileno()
        except (AttributeError, OSError, ValueError):  # it is no file: there is nothing that a program could write to
            return
        sys.stdout.flush()
        self._own = os.dup(self._stdout)
        elsewhere = os.open(os.devnull, os.O_WRONLY)
        with suppress(OSError):  # there is no stderr
            os.dup2(2, elsewhere, inheritable=False)
        os.dup2(elsewhere, self._stdout)
        os.close(elsewhere)

    def say(self, text: str) -> None:
        """Writes a line, at once."""
        if self._own is None:
            click.echo(text)
            return
        data = f"{text}\n".encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._own, data) :]

    def give_back(self) -> None:
        """Stdout is what it was."""
        if self._own is None:
            return
        with suppress(AttributeError, OSError, ValueError):  # a handler has closed it, or taken it away
            sys.stdout.flush()
        os.dup2(self._own, self._stdout)
        os.close(self._own)
        self._own = None


@contextmanager
def ends_told() -> Iterator[None]:
    """Within it os._exit() is an error where it is called, instead of an end without a word."""
    really = os._exit

    def refused(status: int) -> None:
        raise EndedEarly(f"os._exit({status}): it would end whoever imports it")

    refused.__code__ = refused.__code__.replace(co_filename="<frozen qd>")  # what is told is the line that calls it
    os._exit = refused  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = really


class Leaving:
    """The end of a check, which waits for nothing that was begun since this was made."""

    def __init__(self) -> None:
        self._before = set(threading.enumerate())

    def __call__(self, status: int) -> None:
        """Ends the process where it wouldn't end by itself."""
        leave(status)
        if any(not thread.daemon for thread in set(threading.enumerate()) - self._before):
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError, AttributeError):  # a handler has closed it, or taken it away
                    stream.flush()
            os._exit(status)
