"""Renews leases by primary key; a row that somebody has locked costs its neighbours nothing.

There is no condition on time: an expired lease that nobody took is still held.
May import: lag, listed, release, dialect, protocol, the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from qd.errors import TransactionFailed
from qd.store.dialect import Cursor, Session
from qd.store.lag import caught_up
from qd.store.listed import chunks, flat, joined
from qd.store.protocol import HeldLease, Renewal
from qd.store.settle.release import OURS

CONFLICT = 1213
"""A deadlock, or another node's write that came first."""

Renewing = Callable[[Session, Sequence[HeldLease]], list[Renewal]]


def renew(session: Session, leases: Sequence[HeldLease], how: Renewing) -> list[Renewal]:
    """Renews by one of the ways below; what seems lost or gone is asked for again where the node may lag."""
    found = how(session, leases)
    missing = [at for at, renewal in enumerate(found) if renewal in (Renewal.LOST, Renewal.GONE)]
    if missing and caught_up(session):
        for at, renewal in zip(missing, how(session, [leases[at] for at in missing]), strict=True):
            found[at] = renewal
    return found


def renew_skipping(session: Session, leases: Sequence[HeldLease]) -> list[Renewal]:
    """With SKIP LOCKED: locks what is free, prolongs it, reads the rest."""
    return [found for some in chunks(leases) for found in _together(session, some)]


def _together(session: Session, leases: Sequence[HeldLease]) -> list[Renewal]:
    """In one transaction; in halves where it was undone: on a cluster a row that another node has just
    written undoes the whole at its COMMIT, and must not cost its neighbours their renewal."""
    try:
        return session.transaction(lambda cursor: _skipping(cursor, leases))
    except TransactionFailed as error:
        if error.errno != CONFLICT:  # anything else may have taken its time
            raise
    if len(leases) == 1:  # somebody had it locked, so to say: is it still ours?
        return session.read(lambda cursor: _told(cursor, leases, set(), locked=True))
    middle = len(leases) // 2
    return _together(session, leases[:middle]) + _together(session, leases[middle:])


def renew_singly(session: Session, leases: Sequence[HeldLease], impatient: str) -> list[Renewal]:
    """Without it: one row a transaction, with the shortest lock wait there is."""
    return [_singly(session, lease, impatient) for lease in leases]


def renew_plainly(session: Session, leases: Sequence[HeldLease]) -> list[Renewal]:
    """SQLite, where a write transaction holds the whole database: no row can be locked."""

    def work(cursor: Cursor) -> list[Renewal]:
        renewed = {lease for lease in leases if _prolong(cursor, session, lease, "")}
        return _told(cursor, leases, renewed, locked=False)

    return session.transaction(work)


def _skipping(cursor: Cursor, leases: Sequence[HeldLease]) -> list[Renewal]:
    ids = [lease.job_id for lease in leases]
    cursor.execute(f"SELECT j.id, j.reserved_by FROM {joined(len(ids), 'id')} FOR UPDATE SKIP LOCKED", ids)
    free = {(int(row[0]), row[1]) for row in cursor.fetchall()}
    ours = {lease for lease in leases if (lease.job_id, lease.token) in free}
    if ours:
        _prolong_all(cursor, ours)
    return _told(cursor, leases, ours, locked=True)


def _prolong_all(cursor: Cursor, leases: Iterable[HeldLease]) -> None:
    """All of these rows are locked by us, so none is waited for."""
    rows = [(lease.job_id, lease.token, round(lease.seconds * 1_000_000)) for lease in leases]
    cursor.execute(
        f"UPDATE {joined(len(rows), 'id', 'token', 'span')} "
        "SET j.available_at = NOW(6) + INTERVAL d.span MICROSECOND WHERE j.reserved_by = d.token",
        flat(rows),
    )


def _singly(session: Session, lease: HeldLease, impatient: str) -> Renewal:
    def work(cursor: Cursor) -> Renewal:
        renewed = {lease} if _prolong(cursor, session, lease, impatient) else set[HeldLease]()
        return _told(cursor, [lease], renewed, locked=False)[0]

    try:
        return session.transaction(work)
    except TransactionFailed:  # somebody has it locked: is it still ours?
        return session.read(lambda cursor: _told(cursor, [lease], set(), locked=True)[0])


def _prolong(cursor: Cursor, session: Session, lease: HeldLease, impatient: str) -> bool:
    cursor.execute(
        f"{impatient}UPDATE qd_jobs SET available_at = {session.dialect.after} WHERE id = %s AND {OURS}",
        (session.dialect.span(lease.seconds), lease.job_id, lease.token),
    )
    return cursor.rowcount == 1


def _told(cursor: Cursor, leases: Sequence[HeldLease], renewed: set[HeldLease], *, locked: bool) -> list[Renewal]:
    """Reads plainly what was not renewed.

    Args:
        locked: a row that bears its token all the same is locked by somebody; else it was renewed
            by nobody, so it isn't ours.
    """
    holders: dict[int, str | None] = {}
    rest = [lease.job_id for lease in leases if lease not in renewed]
    if rest:
        marks = ", ".join(["%s"] * len(rest))
        cursor.execute(f"SELECT id, reserved_by FROM qd_jobs WHERE id IN ({marks})", rest)
        holders = {int(row[0]): row[1] for row in cursor.fetchall()}
    return [Renewal.RENEWED if lease in renewed else _of(lease, holders, locked) for lease in leases]


def _of(lease: HeldLease, holders: dict[int, str | None], locked: bool) -> Renewal:
    if lease.job_id not in holders:
        return Renewal.GONE
    return Renewal.LOCKED if locked and holders[lease.job_id] == lease.token else Renewal.LOST
