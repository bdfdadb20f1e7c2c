"""Servers that freeze, die, come back, or take no writes: every call ends in time, jobs lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from qd.clock import monotonic
from qd.errors import ConnectionLost, ReadOnlyServer, StoreError
from qd.events import DatabaseErrorSeen, DatabaseLost, DatabaseRestored
from qd.outcome import Verdict
from qd.store.mysql.database import MySqlDatabase
from tests.contract.bench import Bench, finished
from tests.support.mariadb import MariaDB
from tests.support.waiting import wait_for


def test_a_read_only_server_is_an_outage_that_only_a_write_ends(own_mariadb: Callable[..., MariaDB]) -> None:
    server = own_mariadb()
    bench = own_bench(server)
    ids = bench.add(1)
    reader = bench.new_store("reader")
    server.run("SET GLOBAL read_only = 1")
    with pytest.raises(ReadOnlyServer):
        bench.claim()
    reader.look(["default"], full=True)
    reader.stale(["default"], 10)
    reader.depths()
    assert not bench.database.up()
    server.run("SET GLOBAL read_only = 0")
    wait_for(lambda: _claimed(bench) == ids, 10, "a claim after the server takes writes again")
    assert bench.database.up()
    assert len(bench.events(DatabaseLost)) == len(bench.events(DatabaseRestored)) == 1
    assert bench.row(ids[0], "attempts") == (1,)
    bench.close()


def _claimed(bench: Bench) -> list[int]:
    try:
        return [job.id for job in bench.claim()]
    except StoreError:
        return []


def own_bench(server: MariaDB, **more: Any) -> Bench:
    """A bench on a server of the test's own."""
    config = server.config(server.new_database(), **{"statement_timeout": 2.0, "connect_timeout": 1.0, **more})
    return Bench("mariadb", config, lambda events: MySqlDatabase(config, events), server)


@pytest.mark.parametrize("pure", [False, True], ids=["c", "pure"])
def test_a_frozen_server_ends_every_call_within_the_time_limit(own_mariadb: Callable[..., MariaDB], pure: bool) -> None:
    server = own_mariadb()
    config = server.config(server.new_database(), statement_timeout=2.0, connect_timeout=1.0)
    bench = Bench("mariadb", config, lambda events: MySqlDatabase(config, events, pure=pure), server)
    bench.add(1)
    (job,) = bench.claim(1)
    looking, committing, closing_one = (bench.new_store(name) for name in ("look", "commit", "close"))
    for store in (looking, committing, closing_one):
        store.look(["default"], full=False)
    server.freeze()
    try:
        took = {
            "settle": _ends(lambda: bench.store.settle([finished(job)])),
            "look": _ends(lambda: looking.look(["default"], full=True)),
            "commit": _ends(lambda: committing._session.transaction(lambda cursor: None)),
            "connect": _ends(lambda: bench.new_store("new").look([], full=True)),
            "close": _ends(closing_one.close),
            "check": _ends(bench.database.check),
        }
    finally:
        server.thaw()
    slow = {what: seconds for what, seconds in took.items() if seconds > 2.0 + 0.5}
    assert not slow, f"longer than the limit of 2 s: {slow} of {took}"
    assert not bench.database.up()
    assert bench.database.troubled_at() > 0
    wait_for(lambda: _settled(bench, job), 10, "the end to be written once the server answers")
    assert len(bench.events(DatabaseLost)) == 1
    assert {event.kind for event in bench.events(DatabaseErrorSeen)} <= {"timeout", "lost"}
    bench.close()


def _settled(bench: Bench, job: Any) -> bool:
    try:
        return bool(bench.store.settle([finished(job)]) == [Verdict.SETTLED])
    except StoreError:
        return False


def _ends(call: Callable[[], object]) -> float:
    began = monotonic()
    with suppress(ConnectionLost):
        call()
    return monotonic() - began


def test_a_server_that_was_killed_and_restarted_is_found_again(own_mariadb: Callable[..., MariaDB]) -> None:
    server = own_mariadb()
    bench = own_bench(server)
    ids = bench.add(1)
    bench.store.look(["default"], full=False)
    server.kill()
    for _ in range(5):
        with pytest.raises(ConnectionLost):
            bench.claim()
    server.start()
    wait_for(lambda: _claimed(bench) == ids, 10, "a claim after the restart")
    assert len(bench.events(DatabaseLost)) == len(bench.events(DatabaseRestored)) == 1
    assert bench.row(ids[0], "attempts") == (1,)
    bench.close()


def test_the_connection_bears_its_name_on_the_server(own_mariadb: Callable[..., MariaDB]) -> None:
    server = own_mariadb("--performance-schema=ON")
    bench = own_bench(server)
    bench.new_store("keeper").look([], full=False)
    names = server.run(
        "SELECT attr_value FROM performance_schema.session_connect_attrs WHERE attr_name = 'program_name'"
    )
    assert ("qd keeper",) in names
    bench.close()
