"""Writing ends: retried until the fence decides, said once, one row's fault not the others'."""

from __future__ import annotations

from typing import Any, cast

import pytest

from qd.acknowledge import PATIENT_TRIES, Acknowledger
from qd.batch import Done
from qd.errors import ConnectionLost, DataRefused, ServerBusy, TransactionFailed
from qd.events import JobDeadLettered, JobFailed, JobSucceeded, LeaseLostSeen, Problem
from qd.gate import Gate
from qd.lease import LeaseKeeper
from qd.outcome import Action, Outcome, OutcomeKind, Reason, Settlement, Verdict
from qd.store.protocol import HeldLease, Renewal
from tests.unit.engine.fakes import FakeStore, Heard, claimed, listening


class Bench:
    """An acknowledger with a fake store."""

    def __init__(self) -> None:
        self.store, self.gate, self.turns = FakeStore(), Gate(), 0
        self.events, self.heard = listening()
        self.keeper = LeaseKeeper(cast(Any, self.store), self.events, 30.0)
        self.writer = Acknowledger(cast(Any, self.store), self.keeper, self.events, self.gate, self._turn)

    def _turn(self) -> None:
        self.turns += 1

    def done(self, *kinds: OutcomeKind, action: Action = Action.FINISH) -> list[Done]:
        leases = self.keeper.hold([claimed(i) for i in range(len(kinds))])
        return [
            (lease, Settlement(lease.job, action, Outcome(kind))) for lease, kind in zip(leases, kinds, strict=True)
        ]


OK = OutcomeKind.SUCCEEDED


@pytest.mark.parametrize(
    "error",
    [
        TransactionFailed("deadlock"),
        ConnectionLost("gone"),
        ConnectionLost("gone at commit", outcome_unknown=True),
        ServerBusy("disk full"),
        KeyError("a bug"),
    ],
)
def test_an_end_is_tried_again_after_any_error(error: Exception) -> None:
    bench = Bench()
    bench.store.verdicts = [error, error, [Verdict.SETTLED]]
    bench.writer.settle(bench.done(OK))
    assert len(bench.store.settled) == 3 and bench.turns == 3
    assert len(bench.heard.of(JobSucceeded)) == 1
    assert bench.keeper.held() == []


@pytest.mark.parametrize("resolving", [None, ConnectionLost("gone")])
def test_while_a_row_is_locked_what_may_have_been_claimed_behind_it_is_given_back(resolving: Exception | None) -> None:
    bench = Bench()
    asked = []

    def resolve() -> None:
        asked.append(len(bench.store.settled))
        if resolving is not None:
            raise resolving

    bench.store.resolve = resolve  # type: ignore[method-assign]
    bench.store.verdicts = [TransactionFailed("lock wait"), TransactionFailed("lock wait"), [Verdict.SETTLED]]
    bench.writer.settle(bench.done(OK))
    assert asked == [1, 2], "after each try that failed"
    assert len(bench.heard.of(JobSucceeded)) == 1


def test_an_end_is_written_also_where_its_thread_is_hit_from_outside() -> None:
    bench = Bench()
    bench.store.verdicts = [SystemExit("left behind by a handler")]
    with pytest.raises(SystemExit):
        bench.writer.settle(bench.done(OK))
    assert len(bench.store.settled) == 2 and len(bench.heard.of(JobSucceeded)) == 1
    assert bench.keeper.held() == [], "nothing is renewed that nobody works on"


def test_a_lost_lease_is_said_once_and_nothing_else_is() -> None:
    bench = Bench()
    bench.store.verdicts = [[Verdict.LOST, Verdict.SETTLED]]
    done = bench.done(OK, OK)
    bench.writer.settle(done)
    assert [type(event) for event in bench.heard] == [LeaseLostSeen, JobSucceeded]
    assert done[0][0].lost.is_set()


def test_nothing_is_written_for_a_lease_that_is_known_to_be_lost() -> None:
    bench = Bench()
    done = bench.done(OK)
    done[0][0].lost.set()
    bench.writer.settle(done)
    assert bench.store.settled == [] and bench.heard == Heard()


def test_one_rows_refused_text_does_not_hold_up_the_others() -> None:
    bench = Bench()
    refused = DataRefused("too large", 1153)
    bench.store.verdicts = [refused, [Verdict.SETTLED], refused, [Verdict.SETTLED]]
    bench.writer.settle(bench.done(OutcomeKind.FAILED, OutcomeKind.FAILED, action=Action.RETRY))
    assert [len(batch) for batch in bench.store.settled] == [2, 1, 1, 1]
    assert "left out" in (bench.store.settled[-1][0].outcome.error or "")
    assert len(bench.heard.of(JobFailed)) == 2


def test_a_bug_is_said_and_holds_up_only_the_row_it_is_about() -> None:
    bench = Bench()
    bench.store.verdicts = [KeyError("a bug"), [Verdict.SETTLED], KeyError("a bug"), [Verdict.SETTLED]]
    bench.writer.settle(bench.done(OK, OK))
    assert [len(batch) for batch in bench.store.settled] == [2, 1, 1, 1]
    assert len(bench.heard.of(JobSucceeded)) == 2
    assert bench.heard[0] == Problem("settling job 0", "not written after 1 try: KeyError: 'a bug'")


def test_an_end_that_a_bug_keeps_from_being_written_does_not_hold_its_thread_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    monkeypatch.setattr(bench.gate, "pause", lambda seconds: None)
    bench.store.verdicts = [KeyError("a bug")] * (PATIENT_TRIES + 1) + [[Verdict.SETTLED]]
    bench.writer.settle(bench.done(OK, OK))
    assert [len(batch) for batch in bench.store.settled] == [2] + [1] * (PATIENT_TRIES + 1)
    assert len(bench.heard.of(JobSucceeded)) == 1
    assert bench.heard.of(Problem)[-1] == Problem("settling job 0", "given up: KeyError: 'a bug'")


def test_an_end_that_is_always_refused_is_given_up_with_a_word() -> None:
    bench = Bench()
    bench.store.verdicts = [DataRefused("no", 4025)] * 3
    bench.writer.settle(bench.done(OutcomeKind.FAILED, action=Action.BURY))
    assert len(bench.store.settled) == 3 and len(bench.heard.of(Problem)) == 1
    assert bench.keeper.held() == []


def test_a_refused_text_is_left_out_also_where_an_outage_was_overcome_first() -> None:
    bench = Bench()
    bench.store.verdicts = [ConnectionLost("gone")] * 3 + [DataRefused("too large", 1153), [Verdict.SETTLED]]
    bench.writer.settle(bench.done(OutcomeKind.FAILED, action=Action.RETRY))
    assert "left out" in (bench.store.settled[-1][0].outcome.error or "")
    assert len(bench.heard.of(JobFailed)) == 1 and bench.heard.of(Problem) == []


def test_after_the_stops_deadline_an_end_is_tried_once_more_and_left() -> None:
    bench = Bench()
    bench.gate.deadline = 0.0
    bench.store.verdicts = [ConnectionLost("gone")]
    bench.writer.settle(bench.done(OK))
    assert len(bench.store.settled) == 1 and bench.heard.of(JobSucceeded) == []


def test_a_last_failed_attempt_is_said_as_failed_and_as_dead_letter() -> None:
    bench = Bench()
    (lease,) = bench.keeper.hold([claimed()])
    outcome = Outcome(OutcomeKind.FAILED, Reason.ERROR, error="boom", seconds=1.5)
    bench.writer.settle([(lease, Settlement(lease.job, Action.BURY, outcome))])
    failed, dead = bench.heard
    assert isinstance(failed, JobFailed) and (failed.error, failed.retry_in, failed.seconds) == ("boom", None, 1.5)
    assert isinstance(dead, JobDeadLettered) and (dead.reason, dead.error) == ("error", "boom")


def test_reconciling_waits_while_the_handlers_transaction_still_holds_the_row() -> None:
    bench = Bench()
    answers = [Renewal.LOCKED, Renewal.LOCKED, Renewal.GONE]
    bench.store.renewals = lambda lease: answers.pop(0)
    (lease,) = bench.keeper.hold([claimed()])
    assert bench.writer.reconcile(lease) is Renewal.GONE


def test_a_handler_that_completes_its_job_and_leaves_its_transaction_open_is_told_of() -> None:
    bench = Bench()
    bench.store.renewals = lambda lease: Renewal.LOCKED if bench.turns <= PATIENT_TRIES else Renewal.GONE
    (lease,) = bench.keeper.hold([claimed(7)])
    assert bench.writer.reconcile(lease) is Renewal.GONE
    assert [type(event) for event in bench.heard] == [Problem] and "commit or roll back" in str(bench.heard[0])


@pytest.mark.parametrize("error", [ConnectionLost("gone"), KeyError("a bug")])
def test_reconciling_survives_any_error(error: Exception) -> None:
    bench = Bench()
    answers: list[Renewal | Exception] = [error, Renewal.RENEWED]

    def renewals(lease: HeldLease) -> Renewal:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    bench.store.renewals = renewals
    (lease,) = bench.keeper.hold([claimed()])
    assert bench.writer.reconcile(lease) is Renewal.RENEWED


def test_only_what_could_not_be_written_in_time_stays_held() -> None:
    bench = Bench()
    done = bench.done(OK, OK)
    bench.gate.deadline = 0.0
    bench.store.verdicts = [DataRefused("one of them"), [Verdict.SETTLED], TransactionFailed("deadlock")]
    bench.writer.settle(done)
    assert bench.keeper.held() == [done[1][0]]
    assert len(bench.heard.of(JobSucceeded)) == 1
