"""The errors that qd raises, as one tree. Pure: imports nothing of qd, does no I/O.

QdError
 +- ConfigError            every problem of a configuration, each with file, line and key
 +- HandlerError           a handler is registered twice, or under a name that is not allowed
 +- BadInput               an enqueue that can't be right; nothing was written
 +- NotFound               no such job, dead letter or queue
 +- Refused                the act would harm: a live lease, a taken unique key
 +- LeaseLost              the job is no longer ours
 +- StoreError             the database said no; `kind` is the label of qd_database_errors_total
     +- ConnectionLost     the connection is gone (kind `lost` or `timeout`)
     +- TransactionFailed  undone as a whole, may be tried again (`deadlock`, `lock_wait`)
     +- ReadOnlyServer     a demoted primary: reopen with back-off (`read_only`)
     +- ServerBusy         full disk, too many connections or queries: back off (`refused`)
     +- DataRefused        the row's own fault: that job's failure, not the daemon's (`other`)
     +- SetupWrong         wrong credentials, missing schema or grant: a person must act (`other`)
     +- UnknownError       anything else: discard the connection and back off (`other`)
"""

from __future__ import annotations


class QdError(Exception):
    """The root of all errors that qd raises on purpose; its text is one line for a person."""


class ConfigError(QdError):
    """A configuration is refused.

    Args:
        problems: each `FILE:LINE: dotted.key: what is wrong, what is allowed`.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class HandlerError(QdError):
    """A handler is registered twice, or under a name that is not allowed."""


class BadInput(QdError):
    """An enqueue that can't be right (type, payload, priority ...); nothing was written."""


class NotFound(QdError):
    """There is no such job, dead letter or queue."""


class Refused(QdError):
    """The act is refused because it would harm: the row's lease is alive, its unique key is taken."""


class LeaseLost(QdError):
    """The job is no longer ours: another holds its lease, or its row is gone."""


class StoreError(QdError):
    """The database said no.

    Args:
        message: one line, without secrets.
        errno: the server's or driver's number, if there was one.
    """

    kind = "other"

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class ConnectionLost(StoreError):
    """The connection is gone or did not answer in time; it was discarded.

    `outcome_unknown` is True when it broke during COMMIT: what was sent may or may not stand.
    """

    kind = "lost"

    def __init__(
        self,
        message: str,
        errno: int | None = None,
        *,
        timed_out: bool = False,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(message, errno)
        self.outcome_unknown = outcome_unknown
        if timed_out:
            self.kind = "timeout"


class TransactionFailed(StoreError):
    """The transaction was rolled back as a whole and may be tried again."""

    kind = "deadlock"


class LockWait(TransactionFailed):
    """A lock was not given in time; the transaction was rolled back and may be tried again."""

    kind = "lock_wait"


class ReadOnlyServer(StoreError):
    """The server takes no writes (a demoted primary); the connection was discarded."""

    kind = "read_only"


class ServerBusy(StoreError):
    """The server has no room: disk full, too many connections, host blocked. Back off."""

    kind = "refused"


class DataRefused(StoreError):
    """The server refused this row's data (too large, not JSON, ...): the job's fault, not ours."""


class SetupWrong(StoreError):
    """Wrong credentials, a missing database, table or grant: retrying can't help, a person must act."""


class UnknownError(StoreError):
    """An error that no rule knows; the connection was discarded."""


OUT_OF_REACH = (ConnectionLost, ReadOnlyServer, ServerBusy)
"""Errors of a server that is away, takes no writes or has no room: nothing more can be asked of it now."""


def leaves_doubt(error: BaseException) -> bool:
    """Whether a transaction that ended so may stand all the same: its COMMIT had no answer, or what hit its thread
    behind the COMMIT was not the database's (a bug, what a handler left behind to be thrown later)."""
    return not isinstance(error, StoreError) or (isinstance(error, ConnectionLost) and error.outcome_unknown)
