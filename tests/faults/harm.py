"""Harms a fleet, as a seeded generator of chance decides: the same seed makes the same choices."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

import mysql.connector

from tests.faults.fleet import Fleet
from tests.faults.harms.base import Lasting, NotNow, Outage
from tests.faults.harms.daemons import DaemonHarms
from tests.faults.harms.network import NetworkHarms
from tests.faults.harms.server import ServerHarms
from tests.faults.harms.strangers import StrangerHarms

AT_THE_DATABASE = (
    "server_killed", "server_restarted", "server_frozen", "server_frozen_long", "read_only", "connections_used_up",
    "connections_killed", "cut_at_statements", "answer_to_commit_lost", "killed_before_commit", "killed_in_mid_claim",
    "all_cut", "slow", "all_stalled", "server_side_vanished", "daemon_side_vanished",
    "rows_locked", "dead_letters_locked", "table_locked", "insert_left_open", "deadlock", "reloaded",
)  # fmt: skip
"""What no daemon may lose a lease by."""

AT_DAEMONS = ("daemon_killed", "daemon_frozen", "daemon_stopped", "one_stalled", "reloaded", "poisoned")

SPENT = 30
"""Seconds after which a harm must have been undone, beyond what it was to last."""


class Harm:
    """Does harms side by side, each in a thread of its own.

    Args:
        kinds: their names; one that stands there twice is chosen twice as often.

    Attributes:
        done: how many of each kind came about.
        troubles: faults of the harms themselves, which spoil the whole test.
    """

    def __init__(self, fleet: Fleet, rng: random.Random, kinds: Sequence[str]) -> None:
        lock = threading.Lock()
        strangers = StrangerHarms(fleet, lock)
        strangers.prepare()
        self._groups = [ServerHarms(fleet, lock), NetworkHarms(fleet, lock), strangers, DaemonHarms(fleet, lock)]
        self._rng, self._kinds = rng, kinds
        self._folder, self._excuses = fleet.folder, fleet.ledger.excuses
        self.done: Counter[str] = Counter()
        self.troubles: list[str] = []
        self._under_way: list[threading.Thread] = []
        self._over = threading.Event()

    @property
    def outages(self) -> list[Outage]:
        """In which no daemon could reach the server."""
        return [outage for group in self._groups for outage in group.outages]

    def one(self) -> None:
        """Begins one."""
        kind = self._rng.choice(self._kinds)
        chance = random.Random(self._rng.random())
        do = next(getattr(group, kind) for group in self._groups if hasattr(group, kind))
        thread = threading.Thread(target=self._do, args=(kind, do, chance), name=kind, daemon=True)
        self._under_way = [*(one for one in self._under_way if one.is_alive()), thread]
        thread.start()

    def over(self) -> None:
        """Undoes all that lasts, and waits for it."""
        self._over.set()
        for thread in self._under_way:
            thread.join(SPENT)
            if thread.is_alive():
                self.troubles.append(f"{thread.name} was not undone within {SPENT} s")

    def _do(self, kind: str, do: Callable[[random.Random], Lasting], chance: random.Random) -> None:
        began = time.time()
        try:
            for seconds in do(chance):
                self._over.wait(seconds)
        except NotNow:
            return
        except mysql.connector.Error:  # our own connections suffer too: what it did is undone by now
            pass
        except Exception as error:  # said at the end of the test, which is worthless then
            self.troubles.append(f"{kind}: {type(error).__name__}: {error}")
            return
        self._note(kind, began)

    def _note(self, kind: str, began: float) -> None:
        """For the judge, and for who reads the logs."""
        ended = time.time()
        self.done[kind] += 1
        if kind in AT_THE_DATABASE:
            self._excuses.held_up.append((began, ended))
        with (self._folder / "harms").open("a") as file:
            file.write(f"{began:.3f} {ended:.3f} {kind}\n")
