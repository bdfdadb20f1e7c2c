"""Handlers for `executor: process`: each ends its process, or doesn't end, in its own way.

What they do is noted in the file $LEDGER, the start before the deed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time

import qd
from tests.acceptance.daemon_handlers import nap, note

assert nap  # registered by its import


@qd.handler("poison")
def poison(job: qd.Job) -> None:
    """Takes its process down in the way that the payload names."""
    note(job, "start")
    how = job.payload["how"]
    if how == "segfault":
        ctypes.string_at(0)
    elif how == "exit":
        os._exit(0)
    elif how == "abort":
        os.abort()
    elif how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "become another program":
        os.execvp("sleep", ["sleep", "600"])
    elif how == "close everything":
        os.closerange(3, 1000)
        time.sleep(600)


@qd.handler("hog")
def hog(job: qd.Job) -> None:
    """Holds the interpreter in C, signals blocked, so that not even a Python signal handler could run."""
    note(job, "start")
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(600)


@qd.handler("stubborn")
def stubborn(job: qd.Job) -> None:
    """Goes on, whatever is raised in it."""
    note(job, "start")
    while True:
        try:
            time.sleep(600)
        except BaseException:
            note(job, "cut")


@qd.handler("fill_memory")
def fill_memory(job: qd.Job) -> None:
    """Takes ever more of it."""
    note(job, "start")
    kept = []
    while True:
        kept.append(bytes(b"x" * (4 << 20)))
        time.sleep(0.01)


@qd.handler("look_around")
def look_around(job: qd.Job) -> str:
    """Tells of its process: its descriptors, its signals, its environment."""
    note(job, "start")
    fds = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(int(fd))}
    with open("/proc/self/status") as status:
        signals = [line.strip() for line in status if line.startswith(("SigBlk", "SigIgn"))]
    with open("/proc/self/oom_score_adj") as file:
        oom = int(file.read())
    with open(job.payload["file"], "w") as file:
        file.write(repr({"pid": os.getpid(), "fds": fds, "signals": signals, "env": dict(os.environ), "oom": oom}))
    return "seen"


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:  # the listing's own
        return False
    return True


@qd.handler("leave_a_program")
def leave_a_program(job: qd.Job) -> None:
    """Starts a program in its own process group, notes it, and waits."""
    pid = os.posix_spawn("/bin/sleep", ["sleep", "600"], os.environ)
    note(job, "start")
    with open(job.payload["file"], "w") as file:
        file.write(f"{os.getpid()} {pid}")
    time.sleep(600)


_left_open: list[object] = []


@qd.handler("complete_and_forget")
def complete_and_forget(job: qd.Job) -> None:
    """Ends its job at the first attempt in a transaction that it leaves open; does better at the second."""
    import mysql.connector

    note(job, "start")
    connection = mysql.connector.connect(**job.payload)
    job.complete(connection.cursor())
    if job.attempt == 1:
        _left_open.append(connection)
    else:
        connection.commit()
    note(job, "end")


@qd.handler("complete")
def complete(job: qd.Job) -> None:
    """Ends its job in a transaction of its own, then works on for some seconds."""
    import mysql.connector

    note(job, "start")
    where = {name: job.payload[name] for name in ("host", "port", "user", "password", "database")}
    connection = mysql.connector.connect(**where)
    cursor = connection.cursor()
    job.complete(cursor)
    connection.commit()
    connection.close()
    end = time.monotonic() + job.payload["seconds"]
    while time.monotonic() < end:
        time.sleep(0.05)
    note(job, "end")
