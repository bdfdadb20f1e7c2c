"""What is done with a row, by how its attempt ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qd.backoff import Backoff
from qd.outcome import Action, Outcome, OutcomeKind, Reason
from qd.policy import abandoned, hand_back, settlement, unknown_type, unstarted
from tests.unit.engine.fakes import claimed

STEADY = Backoff(base=10.0, factor=2.0, cap=600.0, jitter=0.0)


@pytest.mark.parametrize("kind", [OutcomeKind.FAILED, OutcomeKind.TIMEOUT, OutcomeKind.CRASHED])
def test_a_failed_attempt_is_due_again_after_its_back_off(kind: OutcomeKind) -> None:
    decided = settlement(claimed(attempt=2), Outcome(kind), 3, STEADY)
    assert (decided.action, decided.delay) == (Action.RETRY, 20.0)


@pytest.mark.parametrize("kind", [OutcomeKind.FAILED, OutcomeKind.TIMEOUT, OutcomeKind.CRASHED])
def test_the_last_failed_attempt_ends_in_the_dead_letter(kind: OutcomeKind) -> None:
    assert settlement(claimed(attempt=3), Outcome(kind), 3, STEADY).action is Action.BURY


def test_a_rows_own_limit_overrides_the_queues() -> None:
    assert settlement(claimed(attempt=3, max_attempts=5), Outcome(OutcomeKind.FAILED), 3, STEADY).action is Action.RETRY
    assert settlement(claimed(attempt=1, max_attempts=1), Outcome(OutcomeKind.FAILED), 3, STEADY).action is Action.BURY


def test_a_handlers_own_delay_overrides_the_back_off() -> None:
    assert settlement(claimed(), Outcome(OutcomeKind.FAILED, delay=7.0), 3, STEADY).delay == 7.0


def test_a_snooze_is_no_attempt_and_never_the_last() -> None:
    decided = settlement(claimed(attempt=3), Outcome(OutcomeKind.SNOOZED, delay=5.0), 3, STEADY)
    assert (decided.action, decided.delay) == (Action.RELEASE, 5.0)


def test_a_rejected_job_is_a_dead_letter_at_once() -> None:
    assert settlement(claimed(), Outcome(OutcomeKind.REJECTED, Reason.REJECTED), 3, STEADY).action is Action.BURY


def test_a_job_cut_off_by_a_stop_is_given_back_due_a_second_later() -> None:
    decided = settlement(claimed(), Outcome(OutcomeKind.RELEASED), 3, STEADY)
    assert (decided.action, decided.delay) == (Action.RELEASE, 1.0)


def test_a_job_that_may_start_once_is_never_started_again_after_a_stop() -> None:
    decided = hand_back(claimed(max_attempts=1), Outcome(OutcomeKind.RELEASED), 3)
    assert (decided.action, decided.outcome.reason) == (Action.BURY, Reason.INTERRUPTED)


def test_a_job_that_never_started_is_given_back_even_if_it_may_start_once() -> None:
    assert unstarted(claimed(max_attempts=1)).action is Action.RELEASE


@pytest.mark.parametrize("kind", [OutcomeKind.FAILED, OutcomeKind.TIMEOUT, OutcomeKind.CRASHED, OutcomeKind.RELEASED])
def test_whatever_became_of_a_handler_that_was_never_entered_no_attempt_is_spent(kind: OutcomeKind) -> None:
    decided = settlement(claimed(max_attempts=1), Outcome(kind, entered=False), 3, STEADY)
    assert (decided.action, decided.outcome.kind) == (Action.RELEASE, OutcomeKind.RELEASED)
    assert decided.delay == (0.0 if kind is OutcomeKind.RELEASED else 10.0)  # or it would be tried hotly
    assert abandoned(claimed(max_attempts=1), Outcome(kind, entered=False), 3, STEADY).delay >= 1.0


def test_an_unknown_type_is_put_back_for_a_while_and_named() -> None:
    decided = unknown_type(claimed(), "handlers here: a, b")
    assert (decided.action, decided.delay) == (Action.POSTPONE, 5.0)
    assert "noop" in (decided.outcome.error or "") and "a, b" in (decided.outcome.error or "")


@given(
    base=st.floats(0, 1e6),
    factor=st.floats(1, 1000),
    cap=st.floats(0.001, 1e7),
    jitter=st.floats(0, 1),
    failures=st.integers(-5, 70_000),
)
def test_a_back_off_never_overflows_its_cap(
    base: float, factor: float, cap: float, jitter: float, failures: int
) -> None:
    assert 0 <= Backoff(base, factor, cap, jitter).delay(failures) <= cap


def test_what_failed_together_returns_spread_out() -> None:
    delays = [Backoff(base=10.0, jitter=0.2).delay(1) for _ in range(500)]
    assert 8.0 <= min(delays) < 8.4 and 11.6 < max(delays) <= 12.0
