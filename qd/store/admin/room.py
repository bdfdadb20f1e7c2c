"""How much the server gives: connections, statements an hour, the longest statement; and what qd needs of it.

Nothing is asked that takes rights of its own: an account may always see its own connections and limits.
May import: the pure modules, protocol, dialect, candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qd.store.claim.candidate import POST
from qd.store.dialect import Cursor, Session
from qd.store.protocol import Finding

NEWEST = 200
"""Rows of each table whose payloads are measured."""

LONGEST_END = 1 << 20
"""Bytes of the longest statement that qd sends by itself: an end with its error, traceback and history."""

_HOURLY = re.compile(r"\b(MAX_(?:QUERIES|UPDATES|CONNECTIONS)_PER_HOUR) ([1-9]\d*)")


@dataclass(frozen=True)
class Connections:
    """The server's and the account's, now.

    Attributes:
        most: that the server gives out.
        own_most: that the account gets; 0: as many as there are.
        open, own_open: now; this question's own among them.
    """

    most: int
    own_most: int
    open: int
    own_open: int


def connections(session: Session, needed: int) -> Iterator[Finding]:
    """Whether the connections that a daemon opens at most fit beside those of others."""
    yield from of_connections(session.read(_connections), needed)


def account(session: Session) -> Iterator[Finding]:
    """Whether the account has limits that a daemon must run into."""
    yield from of_account(session.read(_account))


def packet(session: Session) -> Iterator[Finding]:
    """Whether statements fit."""
    yield from of_packet(session.read(_longest_packet), session.read(_largest))


def of_connections(now: Connections, needed: int) -> Iterator[Finding]:
    """Whether a daemon's connections fit beside those of others."""
    needs = f"a daemon of this configuration opens {needed} at most"
    others = max(0, now.open - now.own_open)
    remedy = "raise it, or lower `workers[].threads`: with too few, threads wait for each other's"
    if now.own_most and needed > now.own_most:
        most = f"the account gets {now.own_most} (MAX_USER_CONNECTIONS, or the server's max_user_connections)"
        yield Finding("warn", "connections", f"{needs}, but {most}: {remedy}")
    elif needed > now.most - others:
        most = f"the server gives out {now.most} (max_connections), of which others have {others}"
        yield Finding("warn", "connections", f"{needs}, but {most}: {remedy}")
    else:
        to_us = f", {now.own_most} to this account" if now.own_most else ""
        in_use = f"in use: {now.open}, by this account {now.own_open}"
        told = f"{needs} (twice that while a reload drains); the server gives out {now.most}{to_us}; {in_use}"
        yield Finding("ok", "connections", told)


def of_account(shown: str) -> Iterator[Finding]:
    """Limits by the hour, which a poller must run into.

    Args:
        shown: the account as SHOW CREATE USER has it. It holds a hash of the password: never to be told.
    """
    limits = [f"{name} {count}" for name, count in _HOURLY.findall(shown)]
    if limits:
        yield Finding(
            "warn", "account", f"has {', '.join(limits)}: a daemon asks several times a second, and stands still once "
            "that is used up. ALTER USER ... WITH such a limit 0 lifts it"
        )  # fmt: skip


def of_packet(most: int, largest: int | None) -> Iterator[Finding]:
    """Whether statements fit: qd's own, and those that enqueue what is enqueued here.

    On its way in a payload may double, for each of its quotes is escaped.

    Args:
        largest: bytes of the largest payload among the newest; None: there is no job.
    """
    told = f"max_allowed_packet is {spelled(most)}"
    if most < LONGEST_END:
        yield Finding(
            "warn", "packet", f"{told}: an end with a long traceback doesn't fit and is written without it, larger "
            f"payloads are refused. Raise it to {spelled(LONGEST_END)} or more"
        )  # fmt: skip
    elif largest is None:
        yield Finding("ok", "packet", told)
    elif 2 * largest > most:
        yield Finding(
            "warn", "packet", f"{told}, the largest payload of the newest {NEWEST} jobs and dead letters has "
            f"{spelled(largest)}: a larger one may be refused. Raise it, or carry a reference instead of the data"
        )  # fmt: skip
    else:
        yield Finding("ok", "packet", f"{told}; the largest payload of the newest {NEWEST} has {spelled(largest)}")


def spelled(count: int) -> str:
    """A size for people: `16 MiB`, `900 KiB`, `2 bytes`."""
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count / (1 << shift):.4g} {unit}"
    return f"{count} bytes"


def _connections(cursor: Cursor) -> Connections:
    cursor.execute("SELECT @@max_connections, @@session.max_user_connections, USER()")
    most, own_most, user = cursor.fetchone()
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Threads_connected'")
    opened = int(cursor.fetchall()[0][1])
    cursor.execute("SHOW PROCESSLIST")  # who lacks PROCESS sees his own alone
    own = sum(str(row[1]) == str(user).rpartition("@")[0] for row in cursor.fetchall())
    return Connections(int(most), max(0, int(own_most)), opened, own)


def _account(cursor: Cursor) -> str:
    cursor.execute("SHOW CREATE USER CURRENT_USER()")
    return str(cursor.fetchone()[0])


def _longest_packet(cursor: Cursor) -> int:
    cursor.execute("SELECT @@session.max_allowed_packet")
    return int(cursor.fetchone()[0])


def _largest(cursor: Cursor) -> int | None:
    """Bytes of the largest payload among the newest rows of both tables; None where there is none."""
    sizes = []
    for table in ("qd_jobs", "qd_failed_jobs"):
        jobs = f"{table} WHERE type <> '{POST}'"  # at most a few rows beside them
        newest = f"SELECT OCTET_LENGTH(payload) AS bytes FROM {jobs} ORDER BY id DESC LIMIT {NEWEST}"
        cursor.execute(f"SELECT MAX(bytes) FROM ({newest}) newest")
        sizes.append(cursor.fetchone()[0])
    return max((int(size) for size in sizes if size is not None), default=None)
