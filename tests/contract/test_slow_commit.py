"""A claim, renewal or end whose COMMIT is on its way for long: who enqueues meanwhile waits for nothing of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from qd.outcome import Action, Verdict
from qd.store.mysql.database import MySqlDatabase
from qd.store.protocol import ClaimPath, HeldLease, Renewal
from qd.store.store import SqlStore
from tests.contract.bench import Bench, ended, finished
from tests.support.proxy import FaultProxy, Link
from tests.support.waiting import wait_for

WRITES = (b"UPDATE", b"DELETE", b"SET STATEMENT")


class Held:
    """A store whose next COMMIT of a change waits until it is let go."""

    def __init__(self, bench: Bench) -> None:
        assert bench.server is not None
        self.arrived, self.go, self.hold = threading.Event(), threading.Event(), False
        self.proxy = FaultProxy(bench.server.port, self._rule)
        tls = bench.config.tls.model_copy(update={"mode": "disabled"})
        config = bench.config.model_copy(update={"port": self.proxy.port, "tls": tls})
        forced = ClaimPath.CONDITIONAL if bench.kind == "conditional" else None
        database = MySqlDatabase(config, bench.database._shared.events, claim_path=forced)
        database.check()
        self.store: SqlStore = bench.new_store("held", database)

    def _rule(self, link: Link, statement: bytes) -> str | None:
        changes = any(sent.startswith(WRITES) for sent in link.transaction)
        if self.hold and changes and statement.lower() == b"commit":
            self.arrived.set()
            self.go.wait(20)
        return None


@pytest.fixture
def held(server_bench: Bench) -> Iterator[Held]:
    made = Held(server_bench)
    yield made
    made.go.set()
    made.proxy.close()


def during(held: Held, act: Callable[[], object], meanwhile: Callable[[], None]) -> None:
    """Does something between an act's last statement and its COMMIT."""
    held.hold = True
    acting = threading.Thread(target=act)
    acting.start()
    try:
        wait_for(held.arrived.is_set, 10, "the COMMIT to be on its way")
        meanwhile()
    finally:
        held.go.set()
        acting.join(20)
    held.hold = False


def produce(bench: Bench) -> None:
    """A job of every priority, before and behind all others, each in a transaction of its own; raises 1205, 1213."""
    assert bench.server is not None
    insert = (
        "INSERT INTO qd_jobs (queue, type, priority, available_at) VALUES (%s, 'noop', %s, NOW(6) + INTERVAL %s SECOND)"
    )
    with closing(bench.server.connect(bench.config.name)) as producer, closing(producer.cursor()) as cursor:
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for queue in ("default", "other"):
            for priority in range(4):
                for due in (-3600, -1, 0, 3600):
                    cursor.execute(insert, (queue, priority, due))
                    producer.commit()


def test_a_claim_that_found_rows_keeps_no_producer_waiting(server_bench: Bench, held: Held) -> None:
    server_bench.store.ensure_posts(["default", "other"])
    ids = server_bench.add(5)
    taken: list[int] = []
    during(
        held,
        lambda: taken.extend(job.id for job in server_bench.claim(3, held.store)),
        lambda: produce(server_bench),
    )
    assert taken and set(taken) <= set(ids)
    assert server_bench.jobs() == 5 + 32


def test_a_renewal_and_an_end_keep_no_producer_waiting(server_bench: Bench, held: Held) -> None:
    server_bench.store.ensure_posts(["default", "other"])
    server_bench.add(6)
    jobs = server_bench.claim(6, held.store)
    leases = [HeldLease(job.id, job.token, 60.0) for job in jobs]
    renewed: list[Renewal] = []
    during(held, lambda: renewed.extend(held.store.renew(leases)), lambda: produce(server_bench))
    assert renewed == [Renewal.RENEWED] * 6
    held.arrived.clear()
    held.go.clear()
    ends = [ended(jobs[0], Action.RETRY), ended(jobs[1], Action.BURY), *(finished(job) for job in jobs[2:])]
    settled: list[Verdict] = []
    during(held, lambda: settled.extend(held.store.settle(ends)), lambda: produce(server_bench))
    assert settled == [Verdict.SETTLED] * 6
