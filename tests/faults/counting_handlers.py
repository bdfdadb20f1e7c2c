"""Handlers whose effect is in the same database as the jobs: each adds 1 to a counter, once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import mysql.connector

import qd

SHOP: dict[str, Any] = json.loads(os.environ.get("SHOP", "{}"))
"""How a handler reaches the application's database; qd's own connections are none of its business."""

_started = os.open(os.environ.get("LEDGER", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@contextmanager
def transaction() -> Iterator[Any]:
    """A transaction at the server's default isolation; rolled back unless it comes to its end."""
    with closing(mysql.connector.connect(**SHOP, connection_timeout=5)) as connection:
        yield connection.cursor()
        connection.commit()


def add(cursor: Any, job: qd.Job) -> None:
    """The effect: it would show if it were done twice, or for a job that isn't done."""
    cursor.execute("UPDATE counter SET n = n + 1")
    cursor.execute("INSERT INTO effects (job, token) VALUES (%s, %s)", (job.id, job.token))


def pause(job: qd.Job) -> None:
    """Time in which the transaction is open."""
    time.sleep(job.payload["seconds"])


@qd.handler("effect_first")
def effect_first(job: qd.Job) -> None:
    """Under READ COMMITTED the completion may come last."""
    os.write(_started, f"{job.id} start\n".encode())
    with transaction() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("SELECT COUNT(*) FROM effects WHERE job = %s", (job.id,))
        cursor.fetchall()
        pause(job)
        add(cursor, job)
        job.complete(cursor)


@qd.handler("complete_first")
def complete_first(job: qd.Job) -> None:
    """Whatever the isolation, if it is the first statement."""
    os.write(_started, f"{job.id} start\n".encode())
    with transaction() as cursor:
        job.complete(cursor)
        pause(job)
        add(cursor, job)


@qd.handler("read_first")
def read_first(job: qd.Job) -> None:
    """The mistake: a snapshot that is older than the lease's last renewal."""
    with transaction() as cursor, transaction() as other:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SET SESSION innodb_snapshot_isolation = ON")
        other.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        first = _lease_end(cursor, job)
        while _lease_end(other, job) == first and job.remaining() > 1:
            time.sleep(0.05)
        job.complete(cursor)


def _lease_end(cursor: Any, job: qd.Job) -> Any:
    cursor.execute("SELECT available_at FROM qd_jobs WHERE id = %s", (job.id,))
    return cursor.fetchall()
