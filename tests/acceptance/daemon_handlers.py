"""Handlers that the daemon's acceptance tests enqueue; what they do is noted in the file $LEDGER."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time

import qd


def note(job: qd.Job, what: str) -> None:
    """Appends a line in one write."""
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(f"{job.id} {what}\n")


@qd.handler("nap")
def nap(job: qd.Job) -> None:
    """Sleeps `seconds`, in small steps."""
    note(job, "start")
    end = time.monotonic() + job.payload["seconds"]
    try:
        while time.monotonic() < end:
            time.sleep(0.02)
    except BaseException:
        note(job, "cut")
        raise
    note(job, "end")


@qd.handler("spin")
def spin(job: qd.Job) -> None:
    """Keeps the interpreter busy for `seconds`."""
    note(job, "start")
    end, number = time.monotonic() + job.payload["seconds"], 0
    while time.monotonic() < end:
        number = (number * 31 + 7) % 1_000_003
    note(job, "end")


@qd.handler("deaf")
def deaf(job: qd.Job) -> None:
    """Blocks in C, where no exception reaches it."""
    note(job, "start")
    ctypes.CDLL(None).sleep(600)


@qd.handler("leave_a_thread")
def leave_a_thread(job: qd.Job) -> None:
    """Leaves a thread behind that never ends and isn't a daemon."""
    note(job, "start")
    threading.Thread(target=threading.Event().wait).start()
    note(job, "end")


@qd.handler("freeze_a_loop")
def freeze_a_loop(job: qd.Job) -> None:
    """Makes the daemon's poller hang in its next round, as a bug would."""
    note(job, "start")
    from qd.poller import Poller

    def hang() -> float:
        threading.Event().wait()
        return 0.0

    for found in [one for one in gc.get_objects() if isinstance(one, Poller)]:
        found.run_once = hang  # type: ignore[method-assign]


@qd.handler("break_the_main_loop")
def break_the_main_loop(job: qd.Job) -> None:
    """Makes the daemon's main loop raise at its next turn, as a bug would."""
    note(job, "start")
    from qd.daemon.supervisor import Supervisor

    def broken() -> None:
        raise RuntimeError("a bug in the main loop")

    for found in [one for one in gc.get_objects() if isinstance(one, Supervisor)]:
        found._turn = broken  # type: ignore[method-assign]
