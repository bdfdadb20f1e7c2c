"""Small stand-ins for the store: they say what they are told to say, and remember what they were asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from qd.clock import monotonic
from qd.errors import NotFound
from qd.events import Event, Events
from qd.job import ClaimedJob
from qd.outcome import Settlement, Verdict
from qd.store.protocol import Claim, HeldLease, Look, Renewal, Spot, StaleRow


def claimed(job_id: int = 1, *, attempt: int = 1, max_attempts: int | None = None, lease: float = 30.0) -> ClaimedJob:
    """A claimed job with a token of its own."""
    return ClaimedJob(
        id=job_id,
        queue="default",
        type="noop",
        payload="{}",
        priority=2,
        attempt=attempt,
        max_attempts=max_attempts,
        crashes=0,
        created_at=datetime(2026, 1, 1, tzinfo=timezone.utc),
        token=f"host:1:abc:w:{job_id}-{attempt}",
        waited=0.0,
        claimed_at=monotonic(),
        lease=lease,
    )


class Heard(list[Event]):
    """An Events listener that keeps what it hears."""

    def __call__(self, event: Event) -> None:
        self.append(event)

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self if isinstance(event, kind)]


def listening() -> tuple[Events, Heard]:
    """Events, and what is heard of them."""
    heard = Heard()
    return Events(heard), heard


class FakeStore:
    """A store whose answers are scripted; an exception in a script is raised."""

    name = "fake"

    def __init__(self) -> None:
        self.renewals: Callable[[HeldLease], Renewal] = lambda lease: Renewal.RENEWED
        self.verdicts: list[list[Verdict] | BaseException] = []
        self.stale_rows: list[StaleRow] = []
        self.locked: set[StaleRow] = set()
        self.reclaims: list[StaleRow] = []
        self.reclaim_verdict = Verdict.SETTLED
        self.reclaim_errors: dict[int, Exception] = {}
        self.looks: list[bool] = []
        self.hits: dict[str, dict[int, Spot]] = {}
        self.settled: list[Sequence[Settlement]] = []
        self.unreachable: Exception | None = None
        self.closed = False

    def job(self, job_id: int) -> None:
        raise self.unreachable or NotFound(f"no job {job_id}")

    failed = job

    def renew(self, leases: Sequence[HeldLease]) -> list[Renewal]:
        return [self.renewals(lease) for lease in leases]

    def settle(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        self.settled.append(settlements)
        answer = self.verdicts.pop(0) if self.verdicts else [Verdict.SETTLED] * len(settlements)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def turn_over(
        self, settlements: Sequence[Settlement], claim: Claim
    ) -> tuple[list[Verdict], list[ClaimedJob] | None]:
        """Nothing is ever claimed together with ends, as on a server whose claims are several transactions."""
        return self.settle(settlements), None

    def resolve(self) -> None:
        pass

    def stale(self, queues: Sequence[str], limit: int) -> list[StaleRow]:
        return list(self.stale_rows)

    def free(self, rows: Sequence[StaleRow]) -> set[StaleRow]:
        return set(rows) - self.locked

    def reclaim(self, row: StaleRow, max_attempts: int) -> Verdict:
        if row.job_id in self.reclaim_errors:
            raise self.reclaim_errors[row.job_id]
        self.reclaims.append(row)
        return self.reclaim_verdict

    def look(self, queues: Sequence[str], *, full: bool) -> Look:
        self.looks.append(full)
        return Look(self.hits, frozenset(), "2026-01-01 00:00:00.000000")

    def close(self) -> None:
        self.closed = True
