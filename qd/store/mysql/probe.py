"""Finds out by behaviour whether a server has SKIP LOCKED: version strings lie, proxies too.

One connection locks a committed row, another looks for it with SKIP LOCKED: an empty answer at once
means that it works. Anything transient settles nothing: it is raised, and tried again later.
May import: connection, errors, posts, candidate, protocol, the pure modules.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from qd.errors import StoreError, TransactionFailed
from qd.store.claim.candidate import POST
from qd.store.mysql.connection import Connection
from qd.store.mysql.errors import number, sort
from qd.store.posts import PROBE_QUEUE
from qd.store.protocol import ClaimPath

SYNTAX = 1064

UNDONE = frozenset({1020, 1213})
"""The server undid the transaction for another's sake (a rebuild of the table, say), and at once: try again."""

TRIES = 3

LEFT_OVER = 3600
"""Seconds after which a row that an interrupted probe left is removed."""


def probe(connect: Callable[[str], Connection]) -> tuple[ClaimPath, str]:
    """The path that works here, and why it was chosen.

    Args:
        connect: opens a connection of a given name.

    Raises:
        StoreError: nothing was found out; try again later.
    """
    for tried in range(1, TRIES + 1):
        try:
            return _once(connect)
        except TransactionFailed as error:
            if error.errno not in UNDONE or tried == TRIES:
                raise
    raise AssertionError("the last try returns or raises")


def _once(connect: Callable[[str], Connection]) -> tuple[ClaimPath, str]:
    holder = connect("probe")
    try:
        other = connect("probe 2")
        try:
            return _probe(holder, other)
        finally:
            other.discard()
    finally:
        holder.discard()


def _probe(holder: Connection, other: Connection) -> tuple[ClaimPath, str]:
    key = f"qd.probe:{secrets.token_hex(8)}"
    try:
        job_id = _put_row(holder, key)
        try:
            _run(holder, "SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", job_id)
            return _judged(other, key)
        finally:
            with suppress(Exception):  # left over then: see LEFT_OVER
                holder.rollback()
                _run(holder, "DELETE FROM qd_jobs WHERE id = %s", job_id)
                holder.commit()
    except StoreError:
        raise
    except Exception as error:  # the driver's: sorted and raised again
        raise sort(error, "probing for SKIP LOCKED") from error


def _put_row(holder: Connection, key: str) -> int:
    """A row that no claim can take: of qd's own type, in a lane that nobody claims from."""
    old = f"queue = %s AND created_at < NOW(6) - INTERVAL {LEFT_OVER} SECOND"
    for (job_id,) in _run(holder, f"SELECT id FROM qd_jobs WHERE {old} LIMIT 100", PROBE_QUEUE):
        _run(holder, "DELETE FROM qd_jobs WHERE id = %s", job_id)
    _run(
        holder,
        "INSERT INTO qd_jobs (queue, type, lane, unique_key) VALUES (%s, %s, 2, %s)",
        PROBE_QUEUE, POST, key,
    )  # fmt: skip
    job_id = int(holder.cursor.lastrowid)
    holder.commit()
    return job_id


def _judged(other: Connection, key: str) -> tuple[ClaimPath, str]:
    try:
        seen = _run(
            other,
            "SELECT id FROM qd_jobs FORCE INDEX (qd_jobs_claim) WHERE queue = %s AND lane = 2 AND priority = 2 "
            "AND unique_key = %s FOR UPDATE SKIP LOCKED",
            PROBE_QUEUE, key,
        )  # fmt: skip
    except Exception as error:
        if number(error) != SYNTAX:
            raise
        return ClaimPath.CONDITIONAL, "the server doesn't know SKIP LOCKED"
    other.rollback()
    if seen:
        return ClaimPath.CONDITIONAL, "the server takes SKIP LOCKED but doesn't skip locked rows"
    return ClaimPath.SKIP_LOCKED, "the server skips locked rows"


def _run(connection: Connection, sql: str, *params: Any) -> list[Any]:
    connection.cursor.execute(sql, params)
    return list(connection.cursor.fetchall()) if connection.cursor.description else []
