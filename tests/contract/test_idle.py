"""What a connection may do in its pauses: hold no row for long, and be forgotten without harm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from qd.clock import monotonic
from qd.errors import ConnectionLost
from qd.events import DatabaseLost, Reconnected
from qd.store.dialect import Cursor
from qd.store.mysql.connection import Connection
from qd.store.mysql.limits import UNUSED
from qd.store.pacing import Pacing
from tests.contract.bench import Bench
from tests.contract.recording import RecordingSession, explained
from tests.support.waiting import wait_for


@pytest.fixture
def quick(mariadb_bench: Bench) -> Iterator[Bench]:
    """The same database with a statement timeout of 1 s."""
    made = mariadb_bench.again_with(statement_timeout=1.0)
    yield made
    made.close()


def test_a_daemon_that_is_frozen_in_the_middle_of_a_claim_keeps_no_row_from_the_others(quick: Bench) -> None:
    (job_id,) = quick.add(1)
    if "mariadb" not in quick.one("SELECT VERSION()").lower():
        pytest.skip("MySQL ends idle transactions with the connection only, after 300 s")

    def work(cursor: Cursor) -> bool:
        cursor.execute("SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", (job_id,))
        other = quick.new_store("other")
        assert quick.claim(1, other) == []
        return bool(wait_for(lambda: quick.claim(1, other), 10, "the row to be free"))

    with pytest.raises(ConnectionLost):
        quick.store._session.transaction(work)


def test_a_connection_that_was_long_unused_is_replaced_in_silence(mariadb_bench: Bench) -> None:
    bench = mariadb_bench
    session: Any = bench.store._session
    bench.store.now()
    old = session.connected()
    bench.sql("KILL %s", old.raw.connection_id)
    old.used_at -= UNUSED
    bench.store.now()
    assert session.connected() is not old
    assert bench.events(DatabaseLost) == [] and bench.events(Reconnected) == []


def test_a_connection_that_was_long_unused_takes_no_lanes_mark_with_it(mariadb_bench: Bench) -> None:
    bench, store = mariadb_bench, mariadb_bench.store
    session: Any = store._session
    bench.add(1)
    store.look(["default"], full=True)
    begun = store._shared.marks.begin(("default", 2)).spot
    session.connected().used_at -= UNUSED
    store.now()
    assert begun is not None and store._shared.marks.begin(("default", 2)).spot == begun


@pytest.mark.parametrize("how", ["lost", "refused while it was given back"])
def test_a_connection_that_was_lost_does(mariadb_bench: Bench, how: str) -> None:
    bench, store = mariadb_bench, mariadb_bench.store
    session: Any = store._session
    bench.add(1)
    store.look(["default"], full=True)
    if how == "lost":
        bench.sql("KILL %s", session.connected().raw.connection_id)
        wait_for(lambda: not bench.sql("SELECT 1 FROM information_schema.processlist WHERE id = %s",
                                       session.connected().raw.connection_id), 10, "its end")  # fmt: skip
    else:
        session.close()
        session._given_back_at = monotonic()
        connect, session._connect = session._connect, refusing
        with pytest.raises(ConnectionLost):
            store.now()
        session._connect, session._pacing = connect, Pacing()
    store.now()
    assert store._shared.marks.begin(("default", 2)).spot is None


def refusing() -> Connection:
    raise ConnectionLost("refused", 2003)


def test_the_posts_of_many_queues_are_looked_after_by_one_statement_that_reads_no_other_row(
    server_bench: Bench,
) -> None:
    server_bench.add(3000, queue="q1")
    queues = [f"q{number}" for number in range(40)]
    store = server_bench.new_store("recorded")
    store.ensure_posts(queues)
    session: Any = RecordingSession(store._session)
    store._session = session
    assert store.ensure_posts(queues) == 0
    (looked,) = session.sent
    (line,) = explained(server_bench, looked)
    assert (line["key"], line["type"]) == ("qd_jobs_unique", "range")
    assert int(line["rows"]) <= 4 * len(queues) + 10, line


def test_posts_of_more_queues_than_one_statement_takes_are_put_back(server_bench: Bench) -> None:
    queues = [f"q{number}" for number in range(230)]
    assert server_bench.store.ensure_posts(queues) == 4 * 230
    server_bench.sql("DELETE FROM qd_jobs WHERE queue IN ('q0', 'q99', 'q100', 'q229') AND priority = 1")
    assert server_bench.store.ensure_posts(queues) == 4
    assert server_bench.store.ensure_posts(queues) == 0
