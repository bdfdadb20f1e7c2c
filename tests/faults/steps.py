"""The statements of a job's life, told apart on their way to the server, and errors that answer them once."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from tests.support.answer import Answer
from tests.support.proxy import Link

Harm = Answer | str


@dataclass(frozen=True)
class Step:
    """One statement.

    Attributes:
        has: what stands in it; for a COMMIT in a statement before it in the transaction.
        lacks: what none of the transaction's statements has, up to and with this one.
        before: what stands in an earlier statement of the transaction, too.
        commit: it is the COMMIT of such a transaction.
    """

    name: str
    has: bytes
    lacks: bytes | None = None
    before: bytes | None = None
    commit: bool = False

    def matches(self, link: Link, statement: bytes) -> bool:
        """Whether a packet is this step."""
        if self.lacks is not None and any(self.lacks in one for one in (*link.transaction, statement)):
            return False
        if self.before is not None and not any(self.before in one for one in link.transaction):
            return False
        if self.commit:
            return statement.lower() == b"commit" and any(self.has in one for one in link.transaction)
        return self.has in statement


DEAD_LETTER = b"INSERT INTO qd_failed_jobs"
RECLAIM = b"SELECT attempts, max_attempts, reserved_at"
RETRIED = b"SELECT history, reserved_at"

LOOK = Step("look", b"WHERE paused_at IS NOT NULL UNION ALL")
CLAIM = Step("claim", b"SELECT id, type, payload")
RESERVE = Step("claim's UPDATE", b"lane = 1, reserved_by")
CLAIM_COMMIT = Step("COMMIT of the claim", RESERVE.has, commit=True)
FINISH = Step("finish", b"DELETE ", lacks=DEAD_LETTER)
FINISH_COMMIT = Step("COMMIT of the finish", b"DELETE ", lacks=DEAD_LETTER, commit=True)
NEXT_CLAIM = Step("claim behind a finish", CLAIM.has, before=b"DELETE ")
NEXT_RESERVE = Step("UPDATE of that claim", RESERVE.has, before=b"DELETE ")
NEXT_COMMIT = Step("COMMIT of finish and claim", RESERVE.has, before=b"DELETE ", commit=True)
"""Where the ends of a batch and the claim of the next share a transaction."""
RETRY_READ = Step("retry", RETRIED)
RETRY_WRITE = Step("retry's UPDATE", b"reserved_by = NULL", before=RETRIED)
RETRY_COMMIT = Step("COMMIT of the retry", b"reserved_by = NULL", lacks=RECLAIM, commit=True)
BURY = Step("dead letter's INSERT", DEAD_LETTER, lacks=RECLAIM)
BURY_DELETE = Step("dead letter's DELETE", b"DELETE ", before=DEAD_LETTER)
BURY_COMMIT = Step("COMMIT of the dead letter", DEAD_LETTER, lacks=RECLAIM, commit=True)
RENEW = Step("renewal", b"SELECT j.id, j.reserved_by")
PROLONG = Step("renewal's UPDATE", b"SET j.available_at")
RENEW_COMMIT = Step("COMMIT of the renewal", PROLONG.has, commit=True)
PROLONG_ONE = Step("renewal's UPDATE of one row", b"UPDATE qd_jobs SET available_at")
"""Without SKIP LOCKED; in the place of RENEW and PROLONG."""
RENEW_ONE_COMMIT = Step("COMMIT of one row's renewal", PROLONG_ONE.has, commit=True)
STALE = Step("sweep's look", b"SELECT id, queue, type, reserved_by, available_at")
TAKE_BACK = Step("sweep", RECLAIM)
TAKE_BACK_WRITE = Step("sweep's UPDATE", b"reserved_by = NULL", before=RECLAIM)
TAKE_BACK_COMMIT = Step("COMMIT of the sweep", RECLAIM, commit=True)
COUNT = Step("sampler", b"COUNT(CASE WHEN available_at <=")
POSTS = Step("posts", b"SELECT unique_queue, unique_key, type, lane")
SIGN_OF_LIFE = Step("sign of life", b"INSERT INTO qd_daemons")


class Ambush:
    """A rule for the proxy: each harm is done once, when its step next comes by.

    Attributes:
        done: what was done by now, in order.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._laid: dict[Step, list[Harm]] = {}
        self.done: list[tuple[Step, Harm]] = []

    def lay(self, step: Step, *harms: Harm) -> None:
        """These are done to it in turn."""
        with self._lock:
            self._laid.setdefault(step, []).extend(harms)

    def over(self) -> bool:
        """Whether all is done."""
        with self._lock:
            return not any(self._laid.values())

    def left(self) -> list[str]:
        """The steps that did not come by often enough."""
        with self._lock:
            return [step.name for step, harms in self._laid.items() if harms]

    def __call__(self, link: Link, statement: bytes) -> Harm | None:
        """The proxy's question."""
        if not statement:
            return None
        with self._lock:
            for step, harms in self._laid.items():
                if harms and step.matches(link, statement):
                    self.done.append((step, harms[0]))
                    return harms.pop(0)
        return None
