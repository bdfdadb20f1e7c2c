"""Acts on many rows against an act on one of them in the same moment: neither undoes the other, both tell the truth."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from qd.config.model import DatabaseConfig
from qd.errors import NotFound
from tests.contract.admin.desk import Desk
from tests.support.server import Server
from tests.support.waiting import wait_for

MONTH = 30 * 86400.0

MOVE = (
    "INSERT INTO qd_jobs (id, queue, type, payload) SELECT job_id, queue, type, payload FROM qd_failed_jobs "
    "WHERE job_id = %s"
)


@pytest.fixture
def server_desk(mysql_config: DatabaseConfig, mariadb: Server) -> Iterator[Desk]:
    """On a server: SQLite has one writer at a time."""
    made = Desk(mysql_config, mariadb)
    yield made
    made.close()


def old(desk: Desk, count: int = 20) -> list[int]:
    """Dead letters that have outlived their retention; their jobs' ids."""
    for job_id in range(800, 800 + count):
        desk.dead(job_id=job_id, failed=-40 * 86400)
    return list(range(800, 800 + count))


def held(desk: Desk, act: Callable[[], Any], job_id: int, ends: Callable[[Any], None]) -> Any:
    """An act on many, which finds this one's row locked by another who retries it and then `ends`."""
    outcome: list[Any] = []
    with closing(desk.connect(autocommit=False)) as other, closing(other.cursor(buffered=True)) as cursor:
        cursor.execute("SELECT id FROM qd_failed_jobs WHERE job_id = %s", (job_id,))
        (letter,) = cursor.fetchone()
        other.rollback()
        cursor.execute("SELECT id FROM qd_failed_jobs WHERE id = %s FOR UPDATE", (letter,))
        cursor.fetchall()
        acting = threading.Thread(target=lambda: outcome.append(act()))
        acting.start()
        waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = %s AND info LIKE '%%qd_failed_jobs%%'"
        wait_for(
            lambda: desk.sql(f"{waiting} AND id <> CONNECTION_ID()", desk.config.name)[0][0] or not acting.is_alive(),
            10,
            "the act on many to be there",
        )
        cursor.execute(MOVE, (job_id,))
        cursor.execute("DELETE FROM qd_failed_jobs WHERE id = %s", (letter,))
        ends(other)
        acting.join(60)
    return outcome[0]


def purged(desk: Desk) -> int:
    """As the daemon and `qd failed purge` do it: batch by batch."""
    store, total = desk.store("purge"), 0
    while batch := store.purge_failed(MONTH, 1000):
        total += batch
    return total


def test_a_purge_leaves_a_job_that_is_retried_meanwhile_and_does_not_count_it(server_desk: Desk) -> None:
    ids = old(server_desk)
    assert held(server_desk, lambda: purged(server_desk), ids[7], lambda other: other.commit()) == 19
    assert (server_desk.ids(), server_desk.ids("qd_failed_jobs")) == ([ids[7]], [])


def test_a_purge_takes_a_dead_letter_whose_retry_was_undone(server_desk: Desk) -> None:
    ids = old(server_desk)
    first = held(server_desk, lambda: purged(server_desk), ids[7], lambda other: other.rollback())
    assert first + purged(server_desk) == 20
    assert (server_desk.ids(), server_desk.ids("qd_failed_jobs")) == ([], [])


def test_a_retry_or_deletion_of_one_that_is_retried_meanwhile_is_told_not_found(server_desk: Desk) -> None:
    for act in ("retry_failed", "delete_failed"):
        old(server_desk, 1)

        def outcome(act: str = act) -> Any:
            try:
                return getattr(server_desk.store(), act)(800)
            except NotFound as error:
                return error

        assert isinstance(held(server_desk, outcome, 800, lambda other: other.commit()), NotFound)
        assert (server_desk.ids(), server_desk.ids("qd_failed_jobs")) == ([800], [])
        server_desk.sql("DELETE FROM qd_jobs")


def test_a_purge_of_many_keeps_no_one_from_retrying_or_failing_for_long(server_desk: Desk) -> None:
    """Batch by batch: between two of them any other gets his turn."""
    server_desk.sql("INSERT INTO qd_failed_jobs (job_id, queue, type, payload, priority, attempts, reason, failed_at) "
                    "SELECT 5000 + d.n * 100 + e.n, 'default', 'send', '{}', 2, 3, 'error', NOW(6) - INTERVAL 40 DAY "
                    f"FROM {digits(30)} d JOIN {digits(100)} e")  # fmt: skip
    server_desk.dead(job_id=900)
    purging = threading.Thread(target=lambda: purged(server_desk))
    purging.start()
    assert server_desk.store().retry_failed(900) == 900
    purging.join(60)
    assert (server_desk.ids(), server_desk.ids("qd_failed_jobs")) == ([900], [])


def digits(count: int) -> str:
    """A table of numbers."""
    return "(" + " UNION ALL ".join(f"SELECT {number} AS n" for number in range(count)) + ")"
