"""What the tables must say after each act, in plain Python: a model of the protocol without a database.

It knows nothing of SQL, time or threads: a due time is either later than now or not. The machine beside it
(`protocol_machine`) does the same acts on a real store and compares.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from qd.outcome import Action, OutcomeKind, Settlement, Verdict

GONE = "its lease ran out: whoever ran it is gone"
SPENT = "it had no attempt left: the number of attempts that it may have was lowered"
KEPT = 20


class Entry(NamedTuple):
    """What a history tells of an attempt."""

    attempt: int
    worker: str
    outcome: str
    error: str | None


@dataclass
class Row:
    """A row of qd_jobs. `later`: its due time (the end of its lease) has not come."""

    queue: str
    payload: str
    priority: int
    max_attempts: int | None
    unique_key: str | None
    lane: int = 0
    attempts: int = 0
    crashes: int = 0
    owner: str | None = None
    later: bool = False
    last_error: str | None = None
    history: list[Entry] = field(default_factory=list)

    def state(self) -> str:
        """As people name it."""
        return {0: ("ready", "delayed"), 1: ("stale", "reserved")}[self.lane][self.later]


@dataclass
class Letter:
    """A row of qd_failed_jobs."""

    queue: str
    payload: str
    priority: int
    max_attempts: int | None
    unique_key: str | None
    attempts: int
    history: list[Entry]
    reason: str
    error: str | None
    owner: str | None


class Model:
    """All jobs that there ever were.

    Attributes:
        ended: how jobs left both tables, each at most once.
        policy: the attempts that each queue allows.
        claims: per job, how often it was claimed since it was put in or brought back.
        refunds: per job, how often an attempt was given back since.
    """

    def __init__(self) -> None:
        self.jobs: dict[int, Row] = {}
        self.letters: dict[int, Letter] = {}
        self.ended: dict[int, str] = {}
        self.policy = {"default": 3, "other": 2}
        self.paused: set[str] = set()
        self.claims: Counter[int] = Counter()
        self.refunds: Counter[int] = Counter()

    # ------------------------------------------------------------------ what is asked

    def limit(self, row: Row) -> int:
        """The attempts that a job may have."""
        return row.max_attempts if row.max_attempts is not None else self.policy[row.queue]

    def spent(self, row: Row) -> bool:
        """It may not be started again."""
        return row.attempts >= self.limit(row)

    def alone(self, row: Row) -> bool:
        """It may be claimed only in a batch of one."""
        return row.crashes > 0 or row.attempts + 1 >= self.limit(row)

    def ready(self, queue: str) -> list[int]:
        """The jobs of a queue that are due, whether or not an attempt is left."""
        return [job for job, row in self.jobs.items() if row.queue == queue and row.state() == "ready"]

    def holder(self, job: int) -> str | None:
        """The token that holds a job."""
        return self.jobs[job].owner if job in self.jobs else None

    def of_key(self, queue: str, key: str | None) -> int | None:
        """The job that has a unique key."""
        taken = (job for job, row in self.jobs.items() if key and (row.queue, row.unique_key) == (queue, key))
        return next(taken, None)

    # ------------------------------------------------------------------ what is done

    def claimed(self, job: int, token: str) -> None:
        """It is somebody's, and an attempt is spent."""
        row = self.jobs[job]
        assert row.lane == 0 and not row.later and not self.spent(row)
        row.lane, row.owner, row.later, row.attempts = 1, token, True, row.attempts + 1
        self.claims[job] += 1

    def settle(self, end: Settlement, *, patient: bool = True) -> Verdict:
        """Ends a claim, if its token still holds the job. `patient`: a type may be unknown for long."""
        job, token, outcome, action = end.job.id, end.job.token, end.outcome, end.action
        row = self.jobs.get(job)
        if row is None or row.owner != token:
            return Verdict.LOST
        told = Entry(end.job.attempt, token, outcome.kind.value, outcome.error)
        unknown = bool(row.history) and row.history[-1].outcome == "unknown_type"
        if action is Action.FINISH:
            self.finish(job)
        elif action is Action.BURY:
            self._bury(job, outcome.reason.value, outcome.error, told)
        elif action is Action.RETRY:
            row.last_error, row.crashes = outcome.error, row.crashes + (outcome.kind is OutcomeKind.CRASHED)
            self._free(row, end.delay > 0, told)
        elif action is Action.POSTPONE and unknown and not patient:
            self._bury(job, outcome.reason.value, outcome.error, told)
            return Verdict.BURIED
        else:
            anew = action is Action.POSTPONE and not unknown
            self.give_back(job, end.delay > 0, told._replace(outcome="unknown_type") if anew else None)
        return Verdict.SETTLED

    def give_back(self, job: int, later: bool, told: Entry | None = None) -> None:
        """Back, and the attempt is not counted."""
        self.jobs[job].attempts -= 1
        self.refunds[job] += 1
        self._free(self.jobs[job], later, told)

    def reclaim(self, job: int, limit: int | None = None) -> Verdict:
        """Takes a stale job from an owner that is gone. `limit`: in place of its own."""
        row = self.jobs[job]
        assert row.state() == "stale" and row.owner is not None
        told = Entry(row.attempts, row.owner, "lost", GONE)
        if row.attempts >= (limit or self.limit(row)):
            self._bury(job, "lost", f"{GONE} ({row.owner}), and it had no attempt left", told)
            return Verdict.BURIED
        row.crashes, row.last_error = row.crashes + 1, GONE
        self._free(row, False, told)
        return Verdict.SETTLED

    def bury_spent(self, job: int) -> None:
        """A claim found it without an attempt left."""
        row = self.jobs[job]
        assert row.state() == "ready" and self.spent(row)
        self._bury(job, "error", row.last_error or SPENT, None)

    def retry(self, job: int) -> bool:
        """Brings a dead letter back; False: its unique key is taken."""
        letter = self.letters[job]
        if self.of_key(letter.queue, letter.unique_key) is not None:
            return False
        kept = (letter.queue, letter.payload, letter.priority, letter.max_attempts, letter.unique_key)
        self.jobs[job] = Row(*kept, last_error=letter.error, history=letter.history)
        self.claims[job] = self.refunds[job] = 0
        del self.letters[job]
        return True

    def delete_letter(self, job: int) -> None:
        """A dead letter is thrown away."""
        del self.letters[job]
        self._end(job, "deleted")

    def finish(self, job: int) -> None:
        """Its handler completed it."""
        self._leave(job, "finished")

    def delete(self, job: int) -> None:
        """A person deletes a job."""
        self._leave(job, "deleted")

    # ------------------------------------------------------------------

    def _free(self, row: Row, later: bool, told: Entry | None) -> None:
        row.lane, row.owner, row.later = 0, None, later
        row.history = [*row.history, *([told] if told else [])][-KEPT:]

    def _bury(self, job: int, reason: str, error: str | None, told: Entry | None) -> None:
        row = self.jobs.pop(job)
        history = [*row.history, *([told] if told else [])][-KEPT:]
        kept = (row.queue, row.payload, row.priority, row.max_attempts, row.unique_key, row.attempts)
        self.letters[job] = Letter(*kept, history, reason, error, row.owner)

    def _leave(self, job: int, how: str) -> None:
        del self.jobs[job]
        self._end(job, how)

    def _end(self, job: int, how: str) -> None:
        assert job not in self.ended, f"job {job} ended twice"
        self.ended[job] = how

    def counts(self, queue: str) -> Counter[str]:
        """How many jobs of a queue are in each state."""
        found = Counter(row.state() for row in self.jobs.values() if row.queue == queue)
        found["failed"] = sum(letter.queue == queue for letter in self.letters.values())
        return found
