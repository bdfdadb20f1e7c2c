"""What can't be kept cheap takes no more than its share, whether it succeeds or not, and is quick after an outage."""

from __future__ import annotations

import random

import pytest

from qd.errors import ConnectionLost, LockWait, ServerBusy, StoreError, TransactionFailed
from qd.stretch import StretchedPeriod

TOO_DEAR = TransactionFailed("max_statement_time exceeded", 1969)
LOST = ConnectionLost("cut", 2013)
NO_ANSWER = ConnectionLost("no answer within 20 s", 2013, timed_out=True)


def in_reach() -> None:
    """Tables that answer."""


def out_of_reach() -> None:
    raise LockWait("no lock within 16 s", 1205)


def test_cheap_rounds_keep_the_configured_period() -> None:
    period = StretchedPeriod(1.0, first=60.0)
    assert [period.after(0.01) for _ in range(5)] == [1.0] * 5


@pytest.mark.parametrize(("cost", "first"), [(0.1, 5.0), (2.0, 60.0)])
def test_the_first_alone_stretches_it_so_far_only(cost: float, first: float) -> None:
    assert StretchedPeriod(1.0, first=60.0).after(cost) == pytest.approx(first)


def test_one_dear_round_among_cheap_ones_hardly_stretches_it() -> None:
    period = StretchedPeriod(1.0, first=60.0)
    waits = [period.after(cost) for cost in (0.01, 16.0, 0.01, 0.01)]
    assert waits == pytest.approx([1.0, 1.5, 1.5, 1.0])


def test_where_jobs_wait_for_it_a_round_comes_once_a_minute_however_dear() -> None:
    period = StretchedPeriod(1.0, first=1.0, most=60.0)
    assert [period.given_up(16.0, TOO_DEAR, in_reach) for _ in range(3)] == [1.0, 60.0, 60.0]


@pytest.mark.parametrize("fails", [0.0, 0.5, 1.0])
def test_rounds_whose_costs_vary_and_of_which_any_part_fails_take_2_percent_of_the_time(fails: float) -> None:
    chance, period = random.Random(7), StretchedPeriod(1.0, first=60.0)
    period.after(1.0)
    spent = waited = 0.0
    for _ in range(500):
        cost = chance.choice((1.0, 1.3, 2.0, 2.9))
        failed = chance.random() < fails
        waited += period.given_up(cost, TOO_DEAR, in_reach) if failed else period.after(cost)
        spent += cost
    assert 0.01 < spent / (waited + spent) <= 0.02


@pytest.mark.parametrize(
    ("cost", "error"),
    [(0.01, TOO_DEAR), (0.01, NO_ANSWER), (20.0, LOST), (0.2, ServerBusy("Too many connections", 1040))],
)
def test_what_failed_at_once_or_for_a_lost_connection_is_no_matter_of_cost(cost: float, error: StoreError) -> None:
    period = StretchedPeriod(1.0, first=60.0)
    for _ in range(3):
        with pytest.raises(StoreError, match=str(error)):
            period.given_up(cost, error, in_reach)
    assert period.after(0.001) == 1.0


@pytest.mark.parametrize("error", [TOO_DEAR, NO_ANSWER])
def test_a_wait_for_tables_that_are_out_of_reach_stretches_nothing(error: StoreError) -> None:
    period = StretchedPeriod(1.0, first=60.0)
    for _ in range(3):
        with pytest.raises(LockWait):
            period.given_up(16.0, error, out_of_reach)
    assert period.after(0.001) == 1.0
