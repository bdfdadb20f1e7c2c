"""Producers that are measured: each is run in a process of its own, fresh, so that its memory is its own too.

Each function takes how `mysql.connector` connects (or a configuration file) and a number of jobs, and gives figures.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import mysql.connector

import qd
from benchmarks.procfs import memory

FIRST = 10_000
"""Jobs after which a producer has all the memory that it should ever need."""

Figures = dict[str, float]


def alone(producer: Callable[..., Figures], *arguments: Any) -> Figures:
    """Runs one in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(producer, arguments)


def jobs(count: int) -> Iterator[qd.NewJob]:
    """So many, made as they are taken."""
    for number in range(count):
        yield qd.NewJob("noop", {"order": number, "to": "someone@example.org"})


def single(login: dict[str, Any], count: int) -> Figures:
    """`qd.enqueue` and a COMMIT for each job, on one connection."""
    with closing(mysql.connector.connect(**login)) as connection, closing(connection.cursor()) as cursor:
        began = time.monotonic()
        for number in range(count):
            qd.enqueue(cursor, "noop", {"order": number, "to": "someone@example.org"})
            connection.commit()
        return {"rate": count / (time.monotonic() - began)}


def bulk(login: dict[str, Any], count: int) -> Figures:
    """`qd.enqueue_many` of a list, and its COMMIT."""
    given = list(jobs(count))
    with closing(mysql.connector.connect(**login)) as connection, closing(connection.cursor()) as cursor:
        began = time.monotonic()
        qd.enqueue_many(cursor, given)
        connection.commit()
        return {"rate": count / (time.monotonic() - began)}


def raw(login: dict[str, Any], count: int) -> Figures:
    """The same rows in statements of a thousand that were written before, and their COMMIT: what the server takes."""
    row = """('default', 'noop', '{"order": %d, "to": "someone@example.org"}', 2, NULL, NULL)"""
    rows = [row % number for number in range(count)]
    into = "INSERT INTO qd_jobs (queue, type, payload, priority, unique_key, max_attempts) VALUES "
    statements = [into + ", ".join(rows[first : first + 1000]) for first in range(0, count, 1000)]
    with closing(mysql.connector.connect(**login)) as connection, closing(connection.cursor()) as cursor:
        began = time.monotonic()
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
        return {"rate": count / (time.monotonic() - began)}


def many(login: dict[str, Any], count: int) -> Figures:
    """`qd.enqueue_many` of a generator, told as it goes, in one transaction."""
    with closing(mysql.connector.connect(**login)) as connection, closing(connection.cursor()) as cursor:
        return _watched(count, lambda each: qd.enqueue_many(cursor, jobs(count), each=each), connection.commit)


def by_client(file: str, count: int) -> Figures:
    """`Client.enqueue_many` of a generator, told as it goes, a transaction for each thousand."""
    with qd.Client.from_config(file) as client:
        return _watched(count, lambda each: client.enqueue_many(jobs(count), each=each), lambda: None)


def _watched(count: int, enqueue: Callable[[Callable[[list[int]], None]], None], end: Callable[[], Any]) -> Figures:
    """Rate, peak, and how far the peak rose after the first jobs."""
    told, early = 0, 0.0

    def each(ids: list[int]) -> None:
        nonlocal told, early
        told += len(ids)
        if not early and told >= min(FIRST, count // 2):
            early = memory()["VmHWM"]

    began = time.monotonic()
    enqueue(each)
    end()
    took, peak = time.monotonic() - began, memory()["VmHWM"]
    return {"rate": told / took, "peak": peak, "growth": peak - early}
