"""What all harms stand on."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import mysql.connector

from tests.faults.fleet import Fleet, Member
from tests.support.waiting import wait_for

Lasting = Iterator[float]
"""Yields the seconds that what was done should last; what follows undoes it."""


class NotNow(Exception):
    """It can't be done at present: something else is being done there."""


@dataclass(frozen=True)
class Outage:
    """A time in which no daemon could reach its server; Unix time."""

    why: str
    begin: float
    end: float


class Harms:
    """One kind of harm, done to one fleet.

    Attributes:
        outages: those that it caused.
    """

    def __init__(self, fleet: Fleet, server_in_use: threading.Lock) -> None:
        self.fleet, self.server = fleet, fleet.server
        self._server_in_use = server_in_use
        self.outages: list[Outage] = []

    @contextmanager
    def outage(self, why: str) -> Iterator[None]:
        """Has the server for itself, and notes how long it was away."""
        if not self._server_in_use.acquire(blocking=False):
            raise NotNow
        begin = time.time()
        try:
            yield
        finally:
            self.outages.append(Outage(why, begin, time.time()))
            self._server_in_use.release()

    @contextmanager
    def member(self, rng: random.Random, *, first: int = 0) -> Iterator[Member]:
        """One of the daemons, for itself.

        Args:
            first: those before it are spared.
        """
        members = self.fleet.members[first:]
        if not members:
            raise NotNow
        member = rng.choice(members)
        if not member.busy.acquire(blocking=False):
            raise NotNow
        try:
            if not member.daemon.alive():
                raise NotNow
            yield member
        finally:
            member.busy.release()


def insist(undo: Callable[[], object]) -> None:
    """Undoes something at the server, which may itself be away at the moment."""

    def done() -> bool:
        with suppress(mysql.connector.Error):
            undo()
            return True
        return False

    wait_for(done, 120, "a harm to be undone")
