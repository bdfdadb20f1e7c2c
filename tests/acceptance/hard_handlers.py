"""Handlers that do what no handler should; those of `daemon_handlers` are there too."""

from __future__ import annotations

import _thread
import ctypes
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

import qd
from tests.acceptance.daemon_handlers import note

# ---------------------------------------------------------------------- the process's end


@qd.handler("kill_process")
def kill_process(job: qd.Job) -> None:
    """What the kernel does to a process that takes too much memory."""
    note(job, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@qd.handler("segfault")
def segfault(job: qd.Job) -> None:
    """Reads where nothing is."""
    note(job, "start")
    ctypes.string_at(0)


@qd.handler("abort")
def abort(job: qd.Job) -> None:
    """What a C library does when it finds its state broken."""
    note(job, "start")
    os.abort()


@qd.handler("exit_zero")
def exit_zero(job: qd.Job) -> None:
    """Ends the process as if all were well."""
    note(job, "start")
    os._exit(0)


@qd.handler("close_everything")
def close_everything(job: qd.Job) -> None:
    """Closes descriptors that aren't its own, as a program that makes itself a daemon does."""
    note(job, "start")
    os.closerange(3, 1000)


# ---------------------------------------------------------------------- longer than it should take


@qd.handler("longer_later")
def longer_later(job: qd.Job) -> None:
    """Takes `seconds[attempt - 1]`; at its first attempt it then raises if it is told to."""
    note(job, "start")
    end = time.monotonic() + job.payload["seconds"][job.attempt - 1]
    while time.monotonic() < end:
        time.sleep(0.02)
    if job.attempt == 1 and job.payload["raises"]:
        raise ValueError("too late")
    note(job, "end")


@qd.handler("sleep_for_ever")
def sleep_for_ever(job: qd.Job) -> None:
    """Can be interrupted once a second."""
    note(job, "start")
    while True:
        time.sleep(1)


@qd.handler("receive_for_ever")
def receive_for_ever(job: qd.Job) -> None:
    """Waits for a word that never comes, where no exception reaches it."""
    note(job, "start")
    ours, theirs = socket.socketpair()
    ours.recv(1)
    theirs.close()


@qd.handler("hold_interpreter")
def hold_interpreter(job: qd.Job) -> None:
    """A call into C that lets no other thread run for `seconds`."""
    note(job, "start")
    ctypes.PyDLL(None).sleep(job.payload["seconds"])
    note(job, "end")


# ---------------------------------------------------------------------- ends of a thread


class Private(BaseException):
    """No Exception."""


def throw(thread: int, error: type[BaseException]) -> None:
    """Makes a thread raise at its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def at_itself() -> None:
    throw(threading.get_ident(), Private)
    for _ in range(1000):
        pass


def raises(error: type[BaseException]) -> Callable[[], NoReturn]:
    def act() -> NoReturn:
        raise error

    return act


ENDS: dict[str, Callable[[], object]] = {
    "sys_exit": lambda: sys.exit(0),
    "thread_exit": _thread.exit,
    "interrupt": raises(KeyboardInterrupt),
    "generator_exit": raises(GeneratorExit),
    "private": raises(Private),
    "thrown": at_itself,
}
"""Each ends a thread whose work is guarded by `except Exception`."""


@qd.handler("end_thread")
def end_thread(job: qd.Job) -> None:
    """Ends its thread in one of the ways of ENDS."""
    note(job, "start")
    ENDS[job.payload["how"]]()


@qd.handler("throw_later")
def throw_later(job: qd.Job) -> None:
    """Leaves somebody behind who makes the worker's thread raise when the handler has long ended."""
    worker = threading.get_ident()

    def act() -> None:
        time.sleep(0.05)
        throw(worker, SystemExit)

    threading.Thread(target=act, daemon=True).start()
    note(job, "end")


# ---------------------------------------------------------------------- what all share


def close_streams() -> None:
    sys.stdout.close()
    sys.stderr.close()


def take_streams() -> None:
    sys.stdout = sys.stderr = None


def close_descriptors() -> None:
    os.closerange(0, 3)


STREAMS: dict[str, Callable[[], None]] = {
    "closed": close_streams,
    "taken": take_streams,
    "descriptors": close_descriptors,
}


@qd.handler("end_streams")
def end_streams(job: qd.Job) -> None:
    """Leaves the process without standard streams, in one of the ways of STREAMS."""
    STREAMS[job.payload["how"]]()
    note(job, "end")


# ---------------------------------------------------------------------- children


def wait_for_child(pid: int) -> None:
    os.waitpid(pid, 0)


def fork_and_exit() -> None:
    if (pid := os.fork()) == 0:
        sys.exit()
    wait_for_child(pid)


def fork_and_return() -> None:
    if pid := os.fork():
        wait_for_child(pid)


def fork_and_raise() -> None:
    if (pid := os.fork()) == 0:
        raise ValueError("in the child")
    wait_for_child(pid)


def double(number: int) -> int:
    return number * 2


def pool_of_forks() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(double, [1, 2, 3]) == [2, 4, 6]


def before_exec() -> None:
    subprocess.run(["true"], check=True, preexec_fn=lambda: None)


FORKS: dict[str, Callable[[], None]] = {
    "exit": fork_and_exit,
    "return": fork_and_return,
    "raise": fork_and_raise,
    "pool": pool_of_forks,
    "preexec": before_exec,
}


@qd.handler("fork")
def fork(job: qd.Job) -> None:
    """Forks in one of the ways of FORKS."""
    note(job, "start")
    parent = os.getpid()
    FORKS[job.payload["how"]]()
    note(job, "end" if os.getpid() == parent else "child")


@qd.handler("leave_a_program")
def leave_a_program(job: qd.Job) -> None:
    """Starts a program, notes its pid and doesn't wait for it."""
    note(job, f"left-{subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid}")


@qd.handler("leave_a_fork")
def leave_a_fork(job: qd.Job) -> None:
    """Forks a child that goes on without end, notes its pid and doesn't wait for it."""
    pid = os.fork()
    if pid == 0:
        while True:
            time.sleep(1)
    note(job, f"left-{pid}")
