"""Connections that a proxy or firewall cuts for idling: another is opened without a word, unless none can be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qd.clock import monotonic
from qd.errors import ConnectionLost
from qd.events import DatabaseErrorSeen, DatabaseLost, DatabaseRestored, Reconnected
from qd.outcome import Verdict
from qd.store.mysql import session
from qd.store.mysql.database import MySqlDatabase
from qd.store.outage import SLOW
from tests.contract.bench import Bench, finished
from tests.support.proxy import FaultProxy, Link
from tests.support.server import Server
from tests.support.waiting import wait_for


@pytest.fixture
def proxy(mariadb: Server) -> Iterator[FaultProxy]:
    proxy = FaultProxy(mariadb.port)
    yield proxy
    proxy.close()


@pytest.fixture
def bench(mariadb: Server, mysql_database: str, proxy: FaultProxy) -> Iterator[Bench]:
    plain = mariadb.config(mysql_database)
    config = plain.model_copy(update={"port": proxy.port, "tls": plain.tls.model_copy(update={"mode": "disabled"})})
    bench = Bench("mariadb", config, lambda events: MySqlDatabase(config, events), mariadb)
    yield bench
    bench.close()


@pytest.fixture(autouse=True)
def soon_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """As short as a busy machine lets a connection that is in use be told from one that isn't."""
    monkeypatch.setattr(session, "IDLE_LONG", 2.0)


def idle() -> None:
    """So long that a proxy may have cut what rested."""
    began = monotonic()
    wait_for(lambda: monotonic() - began > session.IDLE_LONG + 0.1, 10, "a connection to have been idle")


def test_a_connection_that_was_cut_while_idle_is_replaced_without_a_word(bench: Bench, proxy: FaultProxy) -> None:
    bench.add(2)
    first = bench.claim(1)
    bench.store.settle([finished(job) for job in first])
    before = bench.database.troubled_at()
    idle()
    proxy.cut_all()
    (job,) = bench.claim(1)
    idle()
    proxy.cut_all()
    assert bench.store.settle([finished(job)]) == [Verdict.SETTLED]
    assert bench.events(DatabaseLost) == bench.events(DatabaseRestored) == bench.events(DatabaseErrorSeen) == []
    assert len(bench.events(Reconnected)) == 2
    assert bench.database.troubled_at() == before, "who is cut off every minute would never take a stale job back"


def test_a_connection_that_was_cut_in_use_is_told_of(bench: Bench, proxy: FaultProxy) -> None:
    bench.add(1)
    bench.store.look(["default"], full=True)
    proxy.cut_all()
    bench.store.look(["default"], full=True)
    assert len(bench.events(DatabaseLost)) == len(bench.events(DatabaseRestored)) == 1


def test_a_cut_of_an_idle_connection_is_told_of_when_no_other_can_be_opened(bench: Bench, proxy: FaultProxy) -> None:
    bench.store.look(["default"], full=True)
    idle()
    proxy.refusing = True
    proxy.cut_all()
    with pytest.raises(ConnectionLost):
        bench.store.look(["default"], full=True)
    assert len(bench.events(DatabaseLost)) == 1
    assert not bench.database.up()


def test_a_connection_that_was_cut_in_its_first_statement_after_a_rest_is_told_of(
    bench: Bench, proxy: FaultProxy
) -> None:
    bench.store.look(["default"], full=True)
    idle()

    def rule(link: Link, statement: bytes) -> str | None:
        if proxy.cuts:
            return None
        came = monotonic()
        wait_for(lambda: monotonic() - came > SLOW + 0.2, 10, "the statement to have run for a while")
        return "before"

    proxy.rule = rule
    bench.store.look(["default"], full=True)
    assert proxy.cuts == 1
    assert len(bench.events(DatabaseLost)) == len(bench.events(DatabaseRestored)) == 1
