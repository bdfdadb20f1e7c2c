"""Handlers that the children of these tests import. A path in the payload is where they write that they are inside."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import decimal
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import qd

_kept: list[bytes] = []


def _inside(job: qd.Job, text: str = "") -> None:
    new = Path(f"{job.payload['inside']}.new")
    new.write_text(text or str(os.getpid()))
    new.replace(job.payload["inside"])


@qd.handler("echo")
def echo(job: qd.Job) -> str:
    return (
        f"{job.payload!r} {job.id} {job.attempt}/{job.max_attempts} {job.token} {job.enqueued_at} {job.remaining():.0f}"
    )


@qd.handler("pid")
def pid(job: qd.Job) -> str:
    return str(os.getpid())


@qd.handler("end")
def end(job: qd.Job) -> None:
    how = job.payload
    if how == "segfault":
        ctypes.string_at(0)
    elif how == "abort":
        os.abort()
    elif how == "exec":
        os.execvp("sleep", ["sleep", "60"])
    elif how == "close":
        os.closerange(3, 100)
        time.sleep(60)
    elif isinstance(how, int) and how < 0:
        os.kill(os.getpid(), -how)
    else:
        os._exit(how)


@qd.handler("raise")
def raise_(job: qd.Job) -> None:
    raise {"retry": qd.Retry(7, "later"), "reject": qd.Reject("never"), "snooze": qd.Snooze(9),
           "exit": SystemExit(3), "error": ValueError("wrong")}[job.payload]  # fmt: skip


class Hostile(Exception):
    def __str__(self) -> str:
        raise Hostile


@qd.handler("hostile")
def hostile(job: qd.Job) -> None:
    raise Hostile


@qd.handler("wait")
def wait(job: qd.Job) -> str:
    _inside(job)
    how = job.payload["how"]
    try:
        if how == "sleep":
            time.sleep(60)
        elif how == "read":
            os.read(os.pipe()[0], 1)
        elif how == "lock":
            threading.Lock().acquire() and threading.Event().wait()
        elif how == "spin":
            while True:
                pass
        elif how == "C":
            ctypes.CDLL(None).sleep(60)
        elif how == "hog":
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            ctypes.PyDLL(None).sleep(60)
        elif how == "closes":
            while not Path(f"{job.payload['inside']}.close").exists():
                time.sleep(0.01)
            os.closerange(3, 100)
            time.sleep(60)
        elif how == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _deaf()
    finally:
        if "tidied" in job.payload:
            Path(job.payload["tidied"]).write_text("tidied")
    return "returned"


def _deaf() -> None:
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


@qd.handler("coroutine")
async def coroutine(job: qd.Job) -> str:
    _inside(job)
    try:
        await asyncio.sleep(job.payload["seconds"])
    finally:
        await asyncio.sleep(0)
    return "awaited"


@qd.handler("lost")
def lost(job: qd.Job) -> str:
    _inside(job)
    return str(job.lost.wait(30))


@qd.handler("leave_program")
def leave_program(job: qd.Job) -> None:
    left = subprocess.Popen(["sleep", "60"])
    _inside(job, str(left.pid))
    if job.payload.get("fails"):
        raise ValueError("after all")


@qd.handler("fork")
def fork(job: qd.Job) -> str:
    if not (child := os.fork()):
        if job.payload == "raise":
            raise ValueError("in the fork")
        return "from the fork"
    return f"{os.waitpid(child, 0)[1] >> 8}"


@qd.handler("grow")
def grow(job: qd.Job) -> None:
    _kept.append(bytes(b"x" * job.payload))


@qd.handler("complete")
def complete(job: qd.Job) -> None:
    import sqlite3

    connection = sqlite3.connect(job.payload["path"], isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    job.complete(connection.cursor())
    connection.execute("COMMIT")
    if job.payload.get("then") == "die":
        os._exit(1)


@qd.handler("complete_later")
def complete_later(job: qd.Job) -> None:
    """Leaves a thread behind that completes the job once it is told to, and writes down what came of it."""

    def complete() -> None:
        while not Path(job.payload["go"]).exists():
            time.sleep(0.01)
        try:
            job.complete(None)
        except BaseException as error:
            Path(job.payload["go"]).write_text(type(error).__name__)

    threading.Thread(target=complete).start()


@qd.handler("flood")
def flood(job: qd.Job) -> None:
    """Says more than anybody can read, whatever is thrown in; inside once the first of it was read."""
    message = b'{"say": "chat"}'
    words = (len(message).to_bytes(4, "big") + message) * 100_000
    os.write(3, words)
    _inside(job)
    while True:
        with contextlib.suppress(BaseException):
            os.write(3, words)


@qd.handler("write_to_daemon")
def write_to_daemon(job: qd.Job) -> None:
    os.write(3, bytes.fromhex(job.payload))
    time.sleep(60)


@qd.handler("context")
def context(job: qd.Job) -> str:
    before = decimal.getcontext().prec
    decimal.getcontext().prec = 3
    return str(before)


@qd.handler("log")
def log(job: qd.Job) -> None:
    logging.getLogger("shop").warning("from the child")
    print("printed")


@qd.handler("at_exit")
def at_exit(job: qd.Job) -> None:
    atexit.register(lambda: Path(job.payload["file"]).write_text("run"))
    if job.payload.get("lingers"):
        threading.Thread(target=threading.Event().wait).start()


@qd.handler("modules")
def modules(job: qd.Job) -> str:
    heavy: Any = {"mysql", "pydantic", "yaml", "click", "rich", "prometheus_client"}
    return " ".join(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))


@qd.handler("set_alarm")
def set_alarm(job: qd.Job) -> None:
    signal.setitimer(job.payload, 0.2)


@qd.handler("die_later")
def die_later(job: qd.Job) -> None:
    threading.Timer(0.2, ctypes.string_at, (0,)).start()


@qd.handler("timers")
def timers(job: qd.Job) -> str:
    return str(
        [signal.getitimer(timer)[0] for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)]
    )


@qd.handler("break_json")
def break_json(job: qd.Job) -> None:
    import json

    json.dumps = json.loads = None  # type: ignore[assignment]
