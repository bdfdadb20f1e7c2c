"""One producer of a trickle, in a process of its own: an application that knows qd only by its table."""

from __future__ import annotations

import random
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import mysql.connector

OPEN = (0.001, 0.100)
"""Seconds that a transaction stays open after its INSERT."""

REST = (0.0, 0.160)
"""Seconds between two transactions: with eight producers about 60 jobs a second."""

BY_DEFAULT = "INSERT INTO qd_jobs (queue, type) VALUES (%s, 'stamp')"
WHOLE_SECONDS = "INSERT INTO qd_jobs (queue, type, available_at) VALUES (%s, 'stamp', NOW())"


@dataclass(frozen=True)
class Produced:
    """One committed job: nanoseconds of CLOCK_MONOTONIC before its COMMIT was sent and after it was answered."""

    id: int
    sent: int
    answered: int


def produce(login: dict[str, Any], queue: str, number: int, seconds: float) -> list[Produced]:
    """Puts jobs in, one a transaction: INSERT, a wait, COMMIT, a rest.

    Args:
        login: arguments of `mysql.connector.connect`.
        number: this producer's; odd ones write whole seconds.
        seconds: how long.
    """
    chance = random.Random(number)
    made: list[Produced] = []
    with closing(mysql.connector.connect(**login)) as connection, closing(connection.cursor()) as cursor:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            cursor.execute(WHOLE_SECONDS if number % 2 else BY_DEFAULT, (queue,))
            job = cursor.lastrowid
            assert job
            time.sleep(chance.uniform(*OPEN))
            sent = time.monotonic_ns()
            connection.commit()
            made.append(Produced(job, sent, time.monotonic_ns()))
            time.sleep(chance.uniform(*REST))
    return made
