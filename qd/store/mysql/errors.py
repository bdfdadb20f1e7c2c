"""Sorts what the server and the driver say into qd's errors: by number only, the classes mislead.

The pure driver gives its own read time-out the number of a server's time limit (3024): that one is
told by its type. May import: errors.
"""

from __future__ import annotations

from qd.errors import (
    ConnectionLost,
    DataRefused,
    LockWait,
    ReadOnlyServer,
    ServerBusy,
    SetupWrong,
    StoreError,
    TransactionFailed,
    UnknownError,
)

RETRY = frozenset({1020, 1180, 1205, 1213, 1317, 1684, 1969, 3024})
"""The transaction was undone, or must be: the whole of it again."""

LOCKED = frozenset({1205, 1684})
"""Of these, a lock that wasn't given in time: a row's, or that of a table whose definition is being changed."""

CUT_SHORT = frozenset({1180, 1317, 1969, 3024})
"""Somebody, a time limit, or a Galera node's loss of its cluster (1180) ended the statement. Where that was
a COMMIT nobody says whether it stands."""

LOST = frozenset({-1, 1040, 1047, 1053, 1203, 1927, 2002, 2003, 2005, 2006, 2013, 2026, 2055, 4031})
"""The connection is gone, or could not be made: open another."""

READ_ONLY = frozenset({1290, 1792, 1836})
"""The wrong node: open another connection, later, so that a name that has moved is resolved anew."""

BUSY = frozenset({1021, 1114, 1129, 1226})
"""No room, or refused for a while."""

SETUP = frozenset(
    {1044, 1045, 1049, 1054, 1064, 1130, 1142, 1143, 1146, 1176, 1227, 1364, 1370, 1665, 1698, 1820, 1862, 2061, 3118,
     4151}
)  # fmt: skip
"""Only a person can help."""

DATA = frozenset({1048, 1062, 1153, 1264, 1265, 1292, 1301, 1366, 1406, 1690, 2020, 3140, 3141, 3819, 4025})
"""This row's own fault."""

LOGIN = frozenset({1045, 1698})
"""The account or its password is refused."""

SLOW_TO_HEAL = frozenset({1040, 1129, 1203, 1226}) | SETUP
"""Asking again soon makes it worse, or is of no use: half a minute and more between attempts in the end."""

RIGHTS = frozenset({1044, 1142, 1143, 1227, 1370})
"""The account is let in, and may not do this."""

_GRANTS = "see docs/grants.sql (installed: share/doc/qd/grants.sql)"
_MIGRATE = "run `qd migrate` with the migrator's account (qd --config FILE migrate)"

HINTS = {
    1040: "raise max_connections or run fewer daemons",
    1044: f"correct database.name, or grant the user its rights there, {_GRANTS}",
    1045: "check database.user and its password",
    1049: "create the database, or correct database.name",
    1054: f"{_MIGRATE}; if that finds nothing to do, compare the table with schema.sql",
    1064: "the server doesn't know this SQL; see the README for the versions that qd supports",
    1114: "make room on the server's disk",
    1021: "make room on the server's disk",
    1129: "the server blocks this host after failed handshakes: FLUSH HOSTS there",
    1130: "create the user for this host",
    1142: f"grant the user its rights, {_GRANTS}",
    1143: f"grant the user its rights, {_GRANTS}",
    1146: f"{_MIGRATE}; if that finds nothing to do, make the lost table again from schema.sql",
    1153: "raise max_allowed_packet or send less",
    1176: "make the lost index again as schema.sql has it",
    1203: "raise max_user_connections or run fewer daemons",
    1226: "raise the user's resource limits",
    1290: "the server is read-only: is it still the primary?",
    1364: "a column has lost its default or AUTO_INCREMENT, or isn't qd's: compare the table with schema.sql",
    1665: "set binlog_format to ROW or MIXED",
    1698: "check database.user and its password",
    1792: "the server is read-only: is it still the primary?",
    1836: "the server is read-only: is it still the primary?",
    2002: "is the server running, and is this its address?",
    2003: "is the server running, and is this its address?",
    2005: "can the name be resolved?",
    2061: "MySQL takes this password only over TLS or a unix socket, unless it saw it there since its start: "
    "set database.tls.mode to preferred",
}

MIGRATOR = (
    "tables are changed by the migrator's account, not by the daemon's: qd --config FILE migrate, with the file that "
    f"names it; its rights: {_GRANTS}"
)
"""In place of these where a right is lacking while migrating: who grants it to the daemon's account gives too much."""

_TIMEOUTS = frozenset({"ReadTimeoutError", "WriteTimeoutError", "ConnectionTimeoutError"})


def number(error: BaseException) -> int | None:
    """The error's number, if it has one."""
    errno = getattr(error, "errno", None)
    return errno if isinstance(errno, int) else None


def sort(
    error: BaseException, where: str, *, timed_out: bool = False, in_commit: bool = False, hint: str | None = None
) -> StoreError:
    """The error of qd's tree that this one is.

    Args:
        where: what was being done, and on which connection; the message begins with it.
        timed_out: the statement took as long as the client's limit, so a lost connection is a
            time-out.
        in_commit: it came from COMMIT, so a lost connection leaves the outcome unknown.
        hint: what to do, in place of what is said of the number.
    """
    if isinstance(error, StoreError):
        return error
    errno = number(error)
    timed_out = timed_out or type(error).__name__ in _TIMEOUTS or isinstance(error, TimeoutError)
    message = f"{where}: {_said(error, errno, hint or HINTS.get(errno or 0))}"
    if type(error).__name__ in _TIMEOUTS or errno in LOST or (errno is None and isinstance(error, OSError)):
        return ConnectionLost(message, errno, timed_out=timed_out, outcome_unknown=in_commit)
    kind = _by_number(errno)
    if in_commit and (kind is UnknownError or errno in CUT_SHORT):
        return ConnectionLost(message, errno, outcome_unknown=True)
    return kind(message, errno)


def _by_number(errno: int | None) -> type[StoreError]:
    if errno in LOCKED:
        return LockWait
    for numbers, kind in _KINDS:
        if errno in numbers:
            return kind
    return UnknownError


_KINDS: tuple[tuple[frozenset[int], type[StoreError]], ...] = (
    (RETRY, TransactionFailed),
    (READ_ONLY, ReadOnlyServer),
    (BUSY, ServerBusy),
    (SETUP, SetupWrong),
    (DATA, DataRefused),
)


def _said(error: BaseException, errno: int | None, hint: str | None) -> str:
    text = " ".join(str(getattr(error, "msg", None) or error).split())
    told = f"{text[:200]} (errno {errno})" if errno is not None else f"{type(error).__name__}: {text[:200]}"
    return f"{told}; {hint}" if hint else told
