"""How often a session tries to connect: soon after a server that is away, rarely after one that refuses."""

from __future__ import annotations

import random

import pytest

from qd.backoff import Backoff
from qd.errors import ConnectionLost
from qd.maintenance.service import AWAY
from qd.store import pacing
from qd.store.pacing import LATER, SOON, Pacing
from qd.worker import BETWEEN_CLAIMS

MANY = 1000

NEXT_JOB_WITHIN = 5.0
"""Seconds from a server's return to the next job's start, at most."""


@pytest.mark.parametrize("pause", [AWAY, BETWEEN_CLAIMS, SOON, LATER])
def test_after_many_failures_too_no_two_wait_alike(pause: Backoff) -> None:
    rng = random.Random(1)
    waits = [pause.delay(MANY, rng) for _ in range(200)]
    assert len(set(waits)) == 200
    assert max(waits) - min(waits) > pause.jitter * pause.cap * 0.8


@pytest.mark.parametrize("pause", [AWAY, BETWEEN_CLAIMS])
def test_the_longest_pause_leaves_time_to_connect_and_to_claim(pause: Backoff) -> None:
    assert max(pause.delay(MANY) for _ in range(200)) <= NEXT_JOB_WITHIN - 2.0


def test_a_connection_may_be_tried_again_before_a_sweep_could_have_looked_twice_since_the_servers_return() -> None:
    assert max(SOON.delay(MANY) for _ in range(200)) < 1.0  # two looks are at least a second apart


def test_refusals_are_asked_about_again_after_half_a_minute_or_more() -> None:
    assert min(LATER.delay(MANY) for _ in range(200)) >= 30.0


def test_a_refusal_after_a_long_outage_is_the_first_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(pacing, "monotonic", lambda: now)
    waits = Pacing()
    for _ in range(MANY):
        waits.failed(ConnectionLost("away", 2003), later=False)
    waits.failed(ConnectionLost("too many connections", 1040), later=True)
    now += 2.0
    assert waits.waiting() is None
