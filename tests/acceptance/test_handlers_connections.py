"""What a handler does to its own connections never reaches qd's: ends are seen at once, the next job starts clean."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from tests.support.daemon import Qd
from tests.support.waiting import wait_for

HANDLERS = """
import gc, json, os
import mysql.connector
import qd

def connect(**more):
    return mysql.connector.connect(**json.loads(os.environ["SHOP"]), **more)

@qd.handler("raises_in_a_transaction")
def raises_in_a_transaction(job):
    kept.append(connection := connect(autocommit=False))
    connection.cursor().execute("INSERT INTO orders VALUES (%s)", (job.id,))
    raise RuntimeError("in the middle")

@qd.handler("forgets_to_commit")
def forgets_to_commit(job):
    kept.append(connection := connect(autocommit=False))
    connection.cursor().execute("INSERT INTO orders VALUES (%s)", (job.id,))
    kept.pop().close()

@qd.handler("locks_a_table")
def locks_a_table(job):
    kept.append(connection := connect())
    connection.cursor().execute("LOCK TABLES stock WRITE")

@qd.handler("changes_its_session")
def changes_its_session(job):
    kept.append(connection := connect())
    cursor = connection.cursor()
    for change in ("time_zone = '+05:00'", "sql_mode = 'NO_BACKSLASH_ESCAPES'", "autocommit = 1",
                   "tx_isolation = 'SERIALIZABLE'"):
        cursor.execute("SET SESSION " + change)

@qd.handler("leaves_a_result_unread")
def leaves_a_result_unread(job):
    kept.append(connection := connect())
    connection.cursor().execute("SELECT 1 UNION SELECT 2")

@qd.handler("closes_what_it_finds")
def closes_what_it_finds(job):
    connection = connect()
    connection.close()
    connection.close()

@qd.handler("has_no_way_to_ours")
def has_no_way_to_ours(job):
    reached = [value for name in dir(job) if not name.startswith("_") for value in [getattr(job, name)]]
    if any("mysql" in type(value).__module__ or "qd.store" in type(value).__module__ for value in reached):
        raise RuntimeError("a connection of qd")

@qd.handler("plain")
def plain(job):
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(f"{job.id} end\\n")

kept = []
"""

CASES = [
    "raises_in_a_transaction", "forgets_to_commit", "locks_a_table", "changes_its_session", "leaves_a_result_unread",
    "closes_what_it_finds", "has_no_way_to_ours",
]  # fmt: skip


@pytest.fixture
def shop(qd: Qd) -> Qd:
    """One thread, and two tables of the application's."""
    (qd.folder / "shop_handlers.py").write_text(HANDLERS)
    qd.write(
        handlers={"modules": ["shop_handlers"]}, workers=[{"queues": ["default"], "threads": 1}], log={"jobs": "all"}
    )
    qd.sql("CREATE TABLE orders (job BIGINT)")
    qd.sql("CREATE TABLE stock (item BIGINT)")
    return qd


def sessions(qd: Qd) -> list[Any]:
    """What the daemon's connections do; those of handlers are the administrator's."""
    return qd.sql("SELECT id FROM information_schema.processlist WHERE user = %s AND db = %s", (qd.user, qd.database))


def test_nothing_that_handlers_do_to_their_connections_reaches_the_daemons(shop: Qd) -> None:

    server = shop.server
    own = {"host": server.host, "port": server.port, "database": shop.database}
    own |= {"user": server._admin, "password": server._password}
    daemon = shop.start(SHOP=json.dumps(own))
    shop.enqueue("plain")
    wait_for(lambda: shop.jobs() == 0, 10, "a first job")
    before = sessions(shop)
    with closing(server.connect(shop.database, autocommit=True)) as watcher, closing(watcher.cursor()) as cursor:
        for type in CASES:
            (job,) = shop.enqueue(type)
            event = "job.failed" if type.startswith("raises") else "job.succeeded"
            wait_for(lambda: any(f"job_id={job} " in line for line in daemon.lines(event)), 15, f"{type} to end")  # noqa: B023
            cursor.execute("SELECT lane, reserved_by, attempts FROM qd_jobs WHERE id = %s", (job,))
            left = cursor.fetchall()
            assert left == ([(0, None, 1)] if type.startswith("raises") else []), f"{type}: the end isn't to be seen"
            (next_one,) = shop.enqueue("plain")
            wait_for(lambda: shop.ran("end", next_one), 10, f"the job behind {type}")  # noqa: B023
    assert sessions(shop) == before and not daemon.lines("database.lost")
    assert daemon.stop() == 0
    assert shop.sql("SELECT * FROM orders") == []
