"""Nodes that lag: where each node of a cluster answers from what it has applied so far (Galera).

A row that another node has written may not have arrived here yet. Writes are safe all the same: of
two that touch one row the later is refused, whatever its node had seen. What isn't safe is to
believe a row's absence: a claim of ours that this node doesn't know yet looks like a lost lease, and
a finished job would be run again. So nothing is called lost before the node has caught up.
May import: dialect, errors.
"""

from __future__ import annotations

from qd.errors import StoreError
from qd.store.dialect import Cursor, Session


def caught_up(session: Session) -> bool:
    """Waits until this node has applied all that its cluster had committed at the call.

    Must not be called inside a transaction. On servers that don't lag it costs one round trip.

    Returns:
        False: the server has nobody to lag behind, so what was read is all there is.

    Raises:
        StoreError: it didn't catch up in the time that a statement has.
    """
    if session.dialect.name != "mysql" or not session.read(_clustered):
        return False
    try:
        session.read(_wait)
    except StoreError:
        session.close()  # its setting may still be the waiting one
        raise
    return True


def _clustered(cursor: Cursor) -> bool:
    cursor.execute("SHOW SESSION VARIABLES LIKE 'wsrep_on'")
    found = cursor.fetchall()
    return bool(found) and str(found[0][1]).upper() == "ON"


def _wait(cursor: Cursor) -> None:
    """A read of a table, first in its transaction, is what waits."""
    cursor.execute("SET SESSION wsrep_sync_wait = 1")
    cursor.execute("SELECT COUNT(*) FROM qd_schema")
    cursor.fetchall()
    cursor.execute("SET SESSION wsrep_sync_wait = DEFAULT")
