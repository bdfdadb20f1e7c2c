"""What was done to daemons: the only thing that may excuse a lease that was lost.

Trouble at the server, which is the same for all, is none: whoever comes back first must not steal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.faults.jobs import LEASE

AT_ITS_START = 1.0
"""Seconds from a claim's COMMIT to the handler's first line, at most, on a busy machine. A process that is
cut off within them has spent the attempt, and nobody can say whether the handler had begun."""

IN_A_CHILD = 5.0
"""The same where a child process has to be started for it first: a job that took its process down before."""

ON_THE_FEET = 3.0
"""Seconds until all are back once the rows can be got at again."""

_SLACK = 0.1
"""Seconds by which two processes may disagree about the order of what they did."""


@dataclass
class CutOff:
    """A daemon that could not renew its leases.

    Attributes:
        why: `killed`, `frozen`, `cut off the network`, `stopped`, `killed by a job`.
        begin, end: Unix time; a killed daemon stays cut off.
    """

    pid: int
    why: str
    begin: float
    end: float = float("inf")

    def long_enough(self, until: float) -> bool:
        """Whether it may have cost a lease: a short one must not."""
        return self.end == float("inf") or min(self.end, until) - self.begin >= LEASE / 2


@dataclass
class Excuses:
    """All that were cut off in one test."""

    cut_off: list[CutOff] = field(default_factory=list)
    held_up: list[tuple[float, float]] = field(default_factory=list)
    """When nobody, or not everybody, could get at the rows: Unix times."""

    def add(self, pid: int, why: str, begin: float, end: float = float("inf")) -> CutOff:
        self.cut_off.append(CutOff(pid, why, begin, end))
        return self.cut_off[-1]

    def lost_between(self, token: str, since: float, until: float) -> CutOff | None:
        """What excuses that a lease that was taken at one time was lost at another."""
        overlapping = (
            cut
            for cut in self._of(token)
            if cut.begin <= until + _SLACK and cut.end >= since and cut.long_enough(until)
        )
        return next(overlapping, None)

    def in_the_moment(self, token: str, claimed_at: float, *, quarantined: bool) -> bool:
        """Whether its owner was cut off between the claim and what would have been the handler's first line."""
        moment = IN_A_CHILD if quarantined else AT_ITS_START
        return any(
            -_SLACK <= cut.begin - claimed_at <= moment + self._held_up(claimed_at, cut.begin)
            or cut.begin <= claimed_at <= cut.end
            for cut in self._of(token)
        )

    def _held_up(self, since: float, until: float) -> float:
        """Seconds of a time in which a claimed job could not start, for its lease had to be renewed first."""
        total, reached = 0.0, since
        for begin, end in sorted(self.held_up):
            reached = max(reached, begin)
            end = min(end + ON_THE_FEET, until)
            if end > reached:
                total, reached = total + end - reached, end
        return total

    def stopped(self, token: str) -> bool:
        """Whether its owner was stopped in order."""
        return any(cut.why == "stopped" for cut in self._of(token))

    def _of(self, token: str) -> list[CutOff]:
        return [cut for cut in self.cut_off if f":{cut.pid}:" in token]
