"""How a verb ends: the one place where errors become exit codes and one-line messages.

May import: the pure modules, the terminal's text.
"""

from __future__ import annotations

import errno
import sys

import click

from qd.cli import INTERRUPTED as INTERRUPTED
from qd.cli.terminal import safe
from qd.errors import (
    BadInput,
    ConfigError,
    ConnectionLost,
    HandlerError,
    QdError,
    ReadOnlyServer,
    Refused,
    ServerBusy,
    SetupWrong,
    StoreError,
    TransactionFailed,
)

DONE = 0
COULD_NOT = 1
USAGE = 2
OUT_OF_REACH = 69
"""EX_UNAVAILABLE of sysexits.h."""
SETUP_WRONG = 78
"""EX_CONFIG of sysexits.h."""
UNWRITABLE = frozenset({errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC})
"""What a write to stdout ends with where the file behind it takes no more."""

PIPE_CLOSED = 141
"""128 + SIGPIPE, as shells have it."""

_CODES: tuple[tuple[type[QdError], int], ...] = (
    (ConfigError, SETUP_WRONG),
    (HandlerError, SETUP_WRONG),
    (SetupWrong, SETUP_WRONG),
    (BadInput, USAGE),
    (ConnectionLost, OUT_OF_REACH),
    (ServerBusy, OUT_OF_REACH),
    (ReadOnlyServer, OUT_OF_REACH),
)
"""Everything else that qd raises on purpose ends with COULD_NOT."""


def exit_code(error: QdError) -> int:
    """The exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), COULD_NOT)


def message(error: QdError) -> str:
    """What is said of an error on stderr: one line, several only for a configuration's problems."""
    if isinstance(error, ConfigError):
        return "\n".join(safe(problem) for problem in error.problems)
    return f"qd: {safe(str(error))}{_advice(error)}"


def _advice(error: QdError) -> str:
    if isinstance(error, ConnectionLost) and error.outcome_unknown:
        return "; the connection broke while the act was committed: look whether it was done before you repeat it"
    if isinstance(error, StoreError) and "; " in str(error):
        return ""  # the error's own hint is nearer to the cause
    if isinstance(error, ConnectionLost):
        return "; is the database running, and does `database:` in the configuration name it?"
    if isinstance(error, ReadOnlyServer):
        return "; the server takes no writes: name the primary in `database:`, or wait for the failover"
    if isinstance(error, ServerBusy):
        return "; try again later"
    if isinstance(error, TransactionFailed):
        return "; nothing was changed: try again"
    if isinstance(error, SetupWrong) and "`qd" not in str(error):
        return "; `qd check` says more"
    return ""


def say(error: QdError) -> None:
    """Writes an error's message to stderr."""
    click.echo(message(error), err=True)


def unwritable(error: OSError) -> int:
    """Says that the output was lost; the exit code. The act itself came first, and may be done."""
    silence()
    say(Refused(f"the output can't be written: {error.strerror}; what was asked for may be done: look, then repeat"))
    return COULD_NOT


def silence() -> None:
    """Throws away what is still to be written: the reader of our output has gone."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
