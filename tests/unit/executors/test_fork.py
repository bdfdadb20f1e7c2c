"""A handler that forks: the child settles nothing, closes nothing and never becomes a second worker."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

import qd
from qd.executors.function import CHILD_STATUS
from qd.outcome import OutcomeKind
from tests.support.waiting import wait_for
from tests.unit.executors.children import new_child
from tests.unit.executors.jobs import attempt

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")


def fails() -> NoReturn:
    raise ValueError("in the child")


@pytest.mark.parametrize(
    ("act", "status"),
    [
        (lambda: None, CHILD_STATUS),
        (fails, CHILD_STATUS),
        (sys.exit, 0),
        (lambda: sys.exit(3), 3),
        (lambda: sys.exit("a message"), 1),
        (lambda: sys.exit(256), 0),
    ],
)
def test_the_child_ends_where_it_leaves_the_handler(act: Callable[[], object], status: int, tmp_path: Path) -> None:
    past_the_handler = tmp_path / "past"
    ours, theirs = socket.socketpair()
    statuses: list[int] = []

    def handler(job: qd.Job) -> str:
        pid = os.fork()
        if pid == 0:
            act()
            return "the child's"
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        return "the parent's"

    parent = os.getpid()
    outcome = attempt(handler).run()
    if os.getpid() != parent:  # what must never happen
        past_the_handler.touch()
        os._exit(99)
    assert (outcome.kind, outcome.result) == (OutcomeKind.SUCCEEDED, "the parent's")
    assert statuses == [status] and not past_the_handler.exists()
    theirs.sendall(b"still open")
    assert ours.recv(100) == b"still open"
    ours.close()
    theirs.close()


def test_the_child_of_a_coroutine_ends_too() -> None:
    statuses: list[int] = []

    async def handler(job: qd.Job) -> None:
        await asyncio.sleep(0)
        pid = os.fork()
        if pid:
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    assert attempt(handler).run().kind is OutcomeKind.SUCCEEDED
    assert statuses == [CHILD_STATUS]


def test_no_destructor_or_exit_function_runs_in_the_child(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    class Connection:
        """Says goodbye when it is destroyed, as a database's does."""

        def __init__(self) -> None:
            self.owner = os.getpid()

        def __del__(self) -> None:
            with trace.open("a") as file:
                file.write("goodbye\n")

    connection = Connection()

    def handler(job: qd.Job) -> None:
        pid = os.fork()
        if pid == 0:
            raise ValueError("in the child")
        os.waitpid(pid, 0)

    attempt(handler).run()
    assert not trace.exists()
    assert connection.owner == os.getpid()


def double(number: int) -> int:
    return number * 2


def test_a_pool_of_forked_processes_works_as_ever() -> None:
    def handler(job: qd.Job) -> str:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return str(pool.map(double, [1, 2, 3]))

    assert attempt(handler).run().result == "[2, 4, 6]"


def test_a_fork_is_not_held_up_by_a_thread_that_was_just_waking_a_childs_attendant() -> None:
    child = new_child()
    with child._ring._lock:  # as held by that thread, which the fork doesn't have
        if not (pid := os.fork()):
            os._exit(0)
    try:
        wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, 10, "the fork's end")
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        child.kill()
