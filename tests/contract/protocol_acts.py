"""What the protocol's machine draws its acts from: owners, claims, and the ends that a claim may come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from hypothesis import strategies as st

from qd.job import ClaimedJob
from qd.outcome import Action, Outcome, OutcomeKind, Reason, Settlement
from qd.store.protocol import HeldLease
from tests.contract.protocol_tables import LEASE

OWNERS = st.integers(0, 2)
PICKS = st.lists(st.integers(0, 40), min_size=1, max_size=5)
ENDS = {
    Action.FINISH: Outcome(OutcomeKind.SUCCEEDED),
    Action.RETRY: Outcome(OutcomeKind.FAILED, error="it broke"),
    Action.RELEASE: Outcome(OutcomeKind.SNOOZED),
    Action.BURY: Outcome(OutcomeKind.REJECTED, Reason.REJECTED, error="no good", traceback="Traceback"),
    Action.POSTPONE: Outcome(OutcomeKind.REJECTED, Reason.UNKNOWN_TYPE, error="nobody knows it"),
}
CRASHED = Outcome(OutcomeKind.CRASHED, Reason.CRASH, error="signal 9")

Ending = tuple[Action, float, bool]
"""What becomes of a row, after which delay; a failure may be a crash."""

ENDING = st.tuples(st.sampled_from(Action), st.sampled_from([0.0, LEASE]), st.booleans())
ENDINGS = st.lists(ENDING, min_size=5, max_size=5)

Act = TypeVar("Act", bound=Callable[..., None])


def when(condition: Callable[[Any], bool]) -> Callable[[Act], Act]:
    """A precondition that is asked within the rule: what is drawn may not depend on what a clock decides.

    Where it doesn't hold a claim may help; else the rule does nothing.
    """

    def made(act: Act) -> Act:
        @wraps(act)
        def acted(self: Any, *args: Any, **named: Any) -> None:
            if not condition(self):
                self.claim(0, "default", 8, "full")
            if condition(self):
                act(self, *args, **named)

        return cast(Act, acted)

    return made


@dataclass
class Held:
    """A claim as its owner remembers it, also when another has the job by now."""

    job: ClaimedJob
    owner: int
    settled: bool = False

    def lease(self) -> HeldLease:
        return HeldLease(self.job.id, self.job.token, LEASE)


def settlements_of(chosen: list[Held], endings: list[Ending]) -> list[Settlement]:
    """An end for each claim."""
    return [
        Settlement(held.job, action, CRASHED if crash and action is Action.RETRY else ENDS[action], delay)
        for held, (action, delay, crash) in zip(chosen, endings, strict=False)
    ]
