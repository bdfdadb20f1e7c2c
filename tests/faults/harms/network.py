"""Harm to the way between the daemons and the server: cut, stalled, half-open, slow, and answers lost."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import mysql.connector

from tests.faults.fleet import Fleet, Member
from tests.faults.harms.base import Harms, Lasting
from tests.faults.jobs import LEASE
from tests.support.answer import Answer
from tests.support.proxy import Link, Rule


class NetworkHarms(Harms):
    """What cables, switches, firewalls and load balancers do."""

    def __init__(self, fleet: Fleet, server_in_use: threading.Lock) -> None:
        super().__init__(fleet, server_in_use)
        self._rules: list[Rule] = []
        for member in fleet.members:
            member.proxy.rule = self._rule

    def cut_at_statements(self, rng: random.Random) -> Lasting:
        """Connections are cut before, in, or after any statement, COMMITs above all."""
        often = rng.choice([0.005, 0.02])
        chance = random.Random(rng.random())

        def rule(link: Link, statement: bytes) -> str | None:
            commits = bool(link.transaction) and statement.lower() == b"commit"
            harmed = chance.random() < (often * 5 if commits else often)
            return chance.choice(["before", "after", "half"]) if harmed else None

        with self._ruled(rule):
            yield rng.uniform(0.2, 1.5)

    def answer_to_commit_lost(self, rng: random.Random) -> Lasting:
        """The COMMITs of one kind of transaction stand, and nobody hears of it."""
        kind = rng.choice([is_claim, is_end])
        left = rng.choice([1, 3, 10])

        def rule(link: Link, statement: bytes) -> str | None:
            nonlocal left
            if left <= 0 or statement.lower() != b"commit" or not kind(link):
                return None
            left -= 1
            return "after"

        with self._ruled(rule):
            yield rng.uniform(0.5, 3.0)

    def killed_before_commit(self, rng: random.Random) -> Lasting:
        """The server kills a connection right before its COMMIT arrives."""
        yield from self._killed_at(
            rng, lambda link, statement: bool(link.transaction) and statement.lower() == b"commit"
        )

    def killed_in_mid_claim(self, rng: random.Random) -> Lasting:
        """The server kills a connection between the two statements of a claim."""
        yield from self._killed_at(rng, lambda link, statement: CLAIMS in statement)

    def _killed_at(self, rng: random.Random, there: Callable[[Link, bytes], bool]) -> Lasting:
        left = rng.choice([1, 3, 10])

        def rule(link: Link, statement: bytes) -> str | None:
            nonlocal left
            if left > 0 and link.number and there(link, statement):
                left -= 1
                with suppress(mysql.connector.Error):  # the server is away
                    self.server.run(f"KILL CONNECTION {link.number}")
            return None

        with self._ruled(rule):
            yield rng.uniform(0.5, 3.0)

    def all_cut(self, rng: random.Random) -> Lasting:
        """All connections end at once; sometimes no new one is let through for a while."""
        refusing = rng.random() < 0.5
        for member in self.fleet.members:
            member.proxy.refusing = refusing
            member.proxy.cut_all()
        try:
            yield rng.uniform(0.2, 4.0) if refusing else 0.0
        finally:
            for member in self.fleet.members:
                member.proxy.refusing = False

    def slow(self, rng: random.Random) -> Lasting:
        """Each packet takes its time, both ways."""
        latency = rng.choice([0.005, 0.05, 0.2])
        for member in self.fleet.members:
            member.proxy.up.latency = member.proxy.down.latency = latency
        try:
            yield rng.uniform(0.5, 4.0)
        finally:
            for member in self.fleet.members:
                member.proxy.up.latency = member.proxy.down.latency = 0.0

    def all_stalled(self, rng: random.Random) -> Lasting:
        """Nothing gets through for anybody, in one direction or both, and nobody is told."""
        seconds = rng.choice([0.5, 3.0, LEASE + 2])
        ways = _ways(rng)
        with self.outage("stalled"):
            yield from _stall(self.fleet.members, ways, seconds)

    def one_stalled(self, rng: random.Random) -> Lasting:
        """One daemon is cut off the network, in one direction or both, for up to two leases."""
        seconds = rng.choice([0.5, 2.5, 2 * LEASE, 2 * LEASE + 2])
        ways = _ways(rng)
        with self.member(rng, first=1 if seconds > LEASE / 2 else 0) as member, self._excused(member):
            yield from _stall([member], ways, seconds)

    def server_side_vanished(self, rng: random.Random) -> Lasting:
        """The server's ends of all of a daemon's connections are gone, and the daemon hears nothing of it."""
        with self.member(rng) as member:
            member.proxy.vanish()
            yield 0.0

    def daemon_side_vanished(self, rng: random.Random) -> Lasting:
        """A daemon's ends are gone; the server keeps its transactions open, with their locks."""
        with self.member(rng) as member:
            end = member.proxy.forsake()
            try:
                yield rng.uniform(0.5, 5.0)
            finally:
                end()

    @contextmanager
    def _excused(self, member: Member) -> Iterator[None]:
        cut = self.fleet.ledger.excuses.add(member.pid, "cut off the network", time.time())
        try:
            yield
        finally:
            cut.end = time.time()

    @contextmanager
    def _ruled(self, rule: Rule) -> Iterator[None]:
        self._rules = [*self._rules, rule]
        try:
            yield
        finally:
            self._rules = [one for one in self._rules if one is not rule]

    def _rule(self, link: Link, statement: bytes) -> str | Answer | None:
        return next((how for rule in self._rules if (how := rule(link, statement)) is not None), None)


CLAIMS = b"lane = 1, reserved_by"
"""What only the UPDATE of a claim has."""


def is_claim(link: Link) -> bool:
    """Whether a connection is in the middle of a claim."""
    return any(CLAIMS in sent for sent in link.transaction)


def is_end(link: Link) -> bool:
    """Whether it has written ends of jobs."""
    return any(
        sent.startswith((b"DELETE", b"INSERT INTO qd_failed")) or b"lane = 0" in sent for sent in link.transaction
    )


def _ways(rng: random.Random) -> tuple[str, ...]:
    return rng.choice([("up",), ("down",), ("up", "down")])


def _stall(members: list[Member], ways: tuple[str, ...], seconds: float) -> Lasting:
    try:
        for member in members:
            for way in ways:
                getattr(member.proxy, way).stop()
        yield seconds
    finally:
        for member in members:
            for way in ways:
                getattr(member.proxy, way).go()
