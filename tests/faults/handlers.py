"""The handlers of the fault tests: each does what its payload says, and writes down when it begins and ends.

A note is one line in one write: job, what, attempt, token, Unix time, pid. What there is: `start`, and
then `end`, `fail`, `cut` (interrupted by a stop), `snooze`, `fenced` (told that the lease is lost) or
`die` (the process ends here).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import mysql.connector

import qd

_ledger = os.open(os.environ.get("LEDGER", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(job: qd.Job, what: str) -> None:
    """Writes one line."""
    os.write(_ledger, f"{job.id} {what} {job.attempt} {job.token} {time.time():.6f} {os.getpid()}\n".encode())


@contextmanager
def noted(job: qd.Job) -> Iterator[None]:
    """Notes the start, and how the block ends."""
    note(job, "start")
    try:
        yield
    except qd.Snooze:
        note(job, "snooze")
        raise
    except qd.LeaseLost:
        note(job, "fenced")
        raise
    except (Exception, SystemExit):
        note(job, "fail")
        raise
    except BaseException:  # qd's own interruption, and hostile ones
        note(job, "fail" if job.type == "poison" else "cut")
        raise
    note(job, "end")


@qd.handler("work")
def work(job: qd.Job) -> None:
    """Works for `seconds`; fails in its first `failures` attempts."""
    with noted(job):
        until = time.monotonic() + job.payload["seconds"]
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
        _fail_as_told(job)


@qd.handler("work_async")
async def work_async(job: qd.Job) -> None:
    """The same, in an event loop."""
    with noted(job):
        await asyncio.sleep(job.payload["seconds"])
        _fail_as_told(job)


@qd.handler("work_snooze")
def work_snooze(job: qd.Job) -> None:
    """Asks for later, as chance has it."""
    with noted(job):
        if random.random() < 0.5:
            raise qd.Snooze(0.2)


@qd.handler("work_complete")
def work_complete(job: qd.Job) -> None:
    """Leaves a row in `effects` and ends the job in the same transaction."""
    with noted(job), closing(mysql.connector.connect(**json.loads(os.environ["FAULTS_DATABASE"]))) as connection:
        cursor = connection.cursor()
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("INSERT INTO effects (job, token) VALUES (%s, %s)", (job.id, job.token))
        _fail_as_told(job)
        job.complete(cursor)
        connection.commit()


@qd.handler("poison")
def poison(job: qd.Job) -> None:
    """Dies, or does what no handler should, as `does` says."""
    with noted(job):
        _POISON[job.payload["does"]](job)


def _fail_as_told(job: qd.Job) -> None:
    if job.attempt <= job.payload["failures"]:
        raise ValueError("as it was told")


class Hostile(Exception):
    """An exception that can't be asked for anything."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def _hostile(job: qd.Job) -> None:
    raise Hostile


def _interrupt(job: qd.Job) -> None:
    raise KeyboardInterrupt


def _end(how: Callable[[], Any]) -> Callable[[qd.Job], None]:
    def end(job: qd.Job) -> None:
        note(job, "die")
        how()

    return end


def _hang() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)


def _fill_memory() -> None:
    held = []
    for _ in range(40):
        held.append(bytearray(b"x" * (16 << 20)))
        time.sleep(0.05)


_POISON: dict[str, Callable[[qd.Job], None]] = {
    "raise": _hostile,
    "interrupt": _interrupt,
    "sys.exit": lambda job: sys.exit(3),
    "os._exit": _end(lambda: os._exit(1)),
    "segfault": _end(lambda: os.kill(os.getpid(), signal.SIGSEGV)),
    "kill": _end(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "memory": _end(_fill_memory),
    "hang": _end(_hang),
}

COMMAND = (
    'n() { printf "%s %s %s %s %s %s\\n" "$QD_JOB_ID" "$1" "$QD_ATTEMPT" "$QD_TOKEN" "$(date +%s.%N)" $$$$ '
    '>>"$LEDGER"; }; n start; [ "$(cat | wc -c)" -gt 2 ] || { n fail; exit 1; }; n end'
)
"""A shell's version, for `handlers.commands`, where two dollars are one."""
