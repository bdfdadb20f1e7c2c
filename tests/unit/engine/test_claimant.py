"""Which look a thread claims by: one that has grown old serves nobody, whoever hands it on."""

from __future__ import annotations

import threading
from typing import Any, cast

from qd.batch import BatchSize
from qd.bell import Bell, Waiter
from qd.claimant import Claimant
from qd.config.model import QueueConfig
from qd.executors import Children, Timekeeper
from qd.gate import Gate
from qd.identity import Identity
from qd.job import ClaimedJob
from qd.lease import LeaseKeeper
from qd.registry import Registry
from qd.runner import Shop
from qd.sight import Sight
from qd.store.protocol import Claim, Spot
from tests.support.waiting import wait_for
from tests.unit.engine.fakes import FakeStore, claimed, listening


class FullStore(FakeStore):
    """As long as a queue isn't paused each claim brings as many jobs as it asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.hits = {"default": {2: Spot("2026-01-01 00:00:00.000000", 1)}}
        self._next, self.locked_up = 0, False
        self.claims: list[Claim] = []

    def claim(self, claim: Claim) -> list[ClaimedJob]:
        """Doesn't ask whether a queue is paused: only looks do."""
        self.claims.append(claim)
        if self.locked_up:
            return []
        self._next += claim.limit
        return [claimed(self._next - at) for at in range(claim.limit)]


class Threads:
    """Two threads of the same queues, who call each other as real ones do: whoever claims in full wakes the other."""

    def __init__(self, gate: Gate) -> None:
        self.store, self.bell = FullStore(), Bell()
        events, _ = listening()
        store = cast(Any, self.store)
        shop = Shop(
            policies={"default": QueueConfig()},
            registry=Registry(),
            events=events,
            keeper=LeaseKeeper(store, events, 30.0),
            timekeeper=Timekeeper(),
            bell=self.bell,
            gate=gate,
            identity=Identity(),
            sizes={"default": BatchSize(10)},
            patience=5.0,
            finish=lambda cursor, job: True,
            children=Children([], None, events, needed=False),
        )
        self.here, self.there = (Claimant(name, ("default",), store, shop, lambda: False) for name in ("a", "b"))

    def turn(self) -> bool:
        """One claims while the other waits at the bell, and they change places; whether there was anything to claim."""
        woken: list[Sight] = []

        def wait() -> None:
            sight = self.bell.wait(Waiter(["default"]), 10)
            woken.extend([sight] if sight is not None else [])

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        wait_for(self.bell.idle, 5, "the other to wait")
        if not self.here.claim():
            self.bell.close()
        waiting.join(10)
        for sight in woken:
            self.there.remember(sight)
        self.here, self.there = self.there, self.here
        return bool(woken)


def test_a_look_grows_old_also_where_threads_call_each_other() -> None:
    threads = Threads(Gate())
    assert threads.turn()
    threads.store.hits = {}  # paused
    wait_for(lambda: not threads.turn(), 10, "the pause to be noticed")
    assert threads.store.looks == [False, False]


def test_a_claim_knows_the_row_that_its_look_saw() -> None:
    threads = Threads(Gate())
    assert threads.turn()
    (claim,) = threads.store.claims
    assert claim.start == threads.store.hits["default"][2]


def test_who_leaves_when_all_is_empty_does_not_wait_for_what_others_have_locked() -> None:
    threads = Threads(Gate(leave_when_empty=True))
    threads.store.locked_up = True
    assert threads.here.claim() == []
    assert threads.store.looks == [False, True, True]
