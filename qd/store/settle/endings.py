"""What each Action does to a row, fenced by the claim's token, in a transaction of the caller's.

The row is read under a lock first, for its history; it is found by id and token or not at all.
May import: bury, history, release, tending, texts, dialect, the pure modules.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from qd.outcome import Action, OutcomeKind, Reason, Settlement, Verdict
from qd.store.dialect import Cursor, Dialect
from qd.store.moments import stamp
from qd.store.settle.bury import bury
from qd.store.settle.history import UNKNOWN_TYPE, Entry, appended, entry, unknown_since
from qd.store.settle.release import OURS, give_back, ready_again
from qd.store.settle.texts import fitted
from qd.store.tending import live


@dataclass(frozen=True, slots=True)
class Held:
    """What an ending needs of its row; times are the database's."""

    history: Any
    reserved_at: Any
    now: Any


def end(cursor: Cursor, dialect: Dialect, settlement: Settlement, patience: float) -> Verdict:
    """Writes one end; LOST: the token doesn't match, nothing was written."""
    job, action = settlement.job, settlement.action
    if action is Action.FINISH:
        cursor.execute(f"DELETE FROM qd_jobs WHERE id = %s AND {OURS}", (job.id, job.token))
        return _verdict(cursor.rowcount == 1)
    if action is Action.RELEASE:
        return _verdict(give_back(cursor, dialect, job.id, job.token, settlement.delay))
    held = _hold(cursor, dialect, job.id, job.token)
    if held is None:
        return Verdict.LOST
    if action is Action.RETRY:
        return _verdict(_retry(cursor, dialect, settlement, held))
    if action is Action.BURY:
        return _verdict(_bury(cursor, dialect, settlement, held))
    return _postpone(cursor, dialect, settlement, held, patience)


def _verdict(matched: bool) -> Verdict:
    return Verdict.SETTLED if matched else Verdict.LOST


def _hold(cursor: Cursor, dialect: Dialect, job_id: int, token: str) -> Held | None:
    cursor.execute(
        f"SELECT history, reserved_at, {dialect.now} FROM qd_jobs WHERE id = %s AND {OURS}{dialect.lock}",
        (job_id, token),
    )
    row = cursor.fetchone()
    return Held(*row) if row is not None else None


def _entry(settlement: Settlement, held: Held) -> Entry:
    job, outcome = settlement.job, settlement.outcome
    return entry(job.attempt, held.reserved_at, held.now, job.token, outcome.kind.value, outcome.error)


def _retry(cursor: Cursor, dialect: Dialect, settlement: Settlement, held: Held) -> bool:
    """A child that died without a word counts as a crash, as a daemon that did."""
    job, outcome = settlement.job, settlement.outcome
    crash = outcome.kind is OutcomeKind.CRASHED
    setting = "last_error = %s, history = %s" + (", crashes = crashes + (crashes < 255)" if crash else "")
    words = (fitted(outcome.error), appended(held.history, _entry(settlement, held)))
    return ready_again(cursor, dialect, job.id, job.token, settlement.delay, setting, words)


def _bury(cursor: Cursor, dialect: Dialect, settlement: Settlement, held: Held) -> bool:
    job, outcome = settlement.job, settlement.outcome
    history = appended(held.history, _entry(settlement, held))
    words: dict[str, Any] = {"error": outcome.error, "traceback": outcome.traceback, "history": history}
    return bury(cursor, dialect, job.id, OURS, (job.token,), reason=outcome.reason, **words)


def _postpone(cursor: Cursor, dialect: Dialect, settlement: Settlement, held: Held, patience: float) -> Verdict:
    """Back uncounted, unless nobody has known the type for `patience` seconds."""
    job, outcome = settlement.job, settlement.outcome
    since = unknown_since(held.history)
    if since is None:
        looked = entry(job.attempt, held.now, held.now, job.token, UNKNOWN_TYPE, outcome.error)
        setting, words = "attempts = attempts - (attempts > 0), history = %s", (appended(held.history, looked),)
        return _verdict(ready_again(cursor, dialect, job.id, job.token, settlement.delay, setting, words))
    if _seconds_since(since, held.now) >= patience and not _known_elsewhere(cursor, dialect, job.type):
        buried = _bury(cursor, dialect, settlement, held)
        return Verdict.BURIED if buried else Verdict.LOST
    return _verdict(give_back(cursor, dialect, job.id, job.token, settlement.delay))


def _seconds_since(first: Entry, now: Any) -> float:
    """Seconds since an entry's start; one that can't be read counts as just now."""
    try:
        start = datetime.fromisoformat(str(first["start"]).removesuffix("Z"))
        return (datetime.fromisoformat(str(stamp(now)).removesuffix("Z")) - start).total_seconds()
    except (KeyError, ValueError):
        return 0.0


def _known_elsewhere(cursor: Cursor, dialect: Dialect, type_: str) -> bool:
    """Whether a running daemon says that it has a handler for this type."""
    return any(type_ in daemon.types for daemon in live(cursor, dialect))


assert Reason.UNKNOWN_TYPE.value == UNKNOWN_TYPE
