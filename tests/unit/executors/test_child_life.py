"""A child's start, its wear and its end; and that it never outlives its daemon, nor acts past its lease."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from qd.clock import monotonic
from qd.events import ChildrenFailing, ChildrenRestored, Event, Events, Problem
from qd.executors import Children, Home
from qd.executors.child import memory_of
from qd.executors.children import MOST_TOLD
from qd.outcome import OutcomeKind
from tests.support.server import ROOT
from tests.support.waiting import wait_for
from tests.unit.executors.children import MODULE, a_child, attempt_in, is_running, nothing, run_in, started
from tests.unit.executors.jobs import Running

NEVER = bool


@pytest.fixture
def homes() -> Iterator[list[Home]]:
    """Homes that are closed after the test."""
    made: list[Home] = []
    yield made
    for home in made:
        home.close(0)


def home(homes: list[Home], max_jobs: int = 1000, max_memory: int = 1 << 30) -> Home:
    homes.append(Home(Children([MODULE], None, Events()), "test", max_jobs, max_memory))
    return homes[-1]


def next_pid(home: Home) -> int:
    """The child that runs the next job."""
    assert home.ready(nothing, NEVER) and home.child is not None
    run_in(home.child, "pid")
    return home.child.process.pid


def test_a_child_is_replaced_after_its_jobs(homes: list[Home]) -> None:
    own = home(homes, max_jobs=2)
    pids = [next_pid(own) for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3] and not is_running(pids[0])


def test_a_child_that_the_next_job_would_not_find_does_not_stay(homes: list[Home]) -> None:
    own = home(homes, max_jobs=2)
    assert not own.stays(), "there is none yet"
    stayed = [next_pid(own) > 0 and own.stays() for _ in range(3)]
    assert stayed == [True, False, True] and own.child is not None
    os.kill(own.child.process.pid, signal.SIGKILL)
    wait_for(lambda: not own.stays(), 10, "its end to be seen")


def test_a_child_that_has_grown_since_its_first_job_is_replaced(homes: list[Home]) -> None:
    own = home(homes, max_memory=32 << 20)
    first = next_pid(own)
    assert own.child is not None and next_pid(own) == first
    run_in(own.child, "grow", 64 << 20)
    assert next_pid(own) != first


def test_what_the_first_job_takes_is_no_growth(homes: list[Home]) -> None:
    own = home(homes, max_memory=32 << 20)
    assert own.ready(nothing, NEVER) and own.child is not None
    run_in(own.child, "grow", 64 << 20)
    assert next_pid(own) == next_pid(own)


def test_a_dead_child_is_replaced(homes: list[Home]) -> None:
    own = home(homes)
    first = next_pid(own)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not own.alive(), 10, "its end to be seen")
    assert next_pid(own) != first


def test_a_worn_child_runs_its_atexit_functions_but_can_not_linger(homes: list[Home], tmp_path: Path) -> None:
    own = home(homes, max_jobs=1)
    assert own.ready(nothing, NEVER) and own.child is not None
    run_in(own.child, "at_exit", {"file": str(tmp_path / "polite")})
    assert own.ready(nothing, NEVER) and (tmp_path / "polite").read_text() == "run"
    run_in(own.child, "at_exit", {"file": str(tmp_path / "late"), "lingers": True})
    lingering = own.child.process.pid
    own.close(0.2)
    assert not is_running(lingering)


BROKEN = {
    "raises": "raise ValueError('on purpose')\n",
    "exits": "import os\nos._exit(5)\n",
    "hangs": "import threading\nthreading.Event().wait()\n",
}


@pytest.mark.parametrize(
    ("broken", "words"),
    [("raises", "ValueError: on purpose"), ("exits", "exited with status 5"), ("hangs", "hasn't imported")],
)
def test_a_start_that_fails_is_said_once_until_it_succeeds(
    broken: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / f"shop_that_{broken}.py"
    module.write_text(BROKEN[broken])
    monkeypatch.syspath_prepend(str(tmp_path))
    heard: list[Event] = []
    children = Children([module.stem], None, Events(heard.append))
    children.start_within = 30.0 if broken != "hangs" else 0.5
    turns: list[int] = []
    for _ in range(2):
        assert children.start("test", lambda: turns.append(1)) is None
    (failing,) = heard
    assert isinstance(failing, ChildrenFailing) and words in failing.error and len(turns) > 2
    module.write_text("")
    children.start_within = 30.0
    child = children.start("test", nothing)
    assert child is not None and isinstance(heard[-1], ChildrenRestored) and len(heard) == 2
    child.retire()


def test_reasons_that_are_others_at_each_try_are_told_a_few_times_and_the_newest_is_kept() -> None:
    heard: list[Event] = []
    children = Children([MODULE], None, Events(heard.append))
    for _ in range(2):
        for number in range(50):
            children.note(f"no room for /tmp/{number}")
    assert len(heard) == MOST_TOLD and children.problem == "no room for /tmp/49"


def test_a_start_for_which_there_are_no_descriptors_names_the_limit_and_no_file() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    children = Children([MODULE], None, Events())
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    told = set()
    try:
        for more in range(9):
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + more, limits[1]))
            children.start("test", nothing)
            told.add(children.problem)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert told == {"can't be started: Too many open files (ulimit -n, LimitNOFILE= of the unit)"}


def test_a_start_that_is_not_wanted_any_more_is_given_up_without_a_word() -> None:
    heard: list[Event] = []
    children = Children([MODULE], None, Events(heard.append))
    assert children.start("test", nothing, lambda: True) is None and not heard


def test_a_child_that_dies_by_itself_is_a_start_that_failed(homes: list[Home]) -> None:
    own = home(homes)
    assert own.ready(nothing, NEVER) and own.child is not None
    os.kill(own.child.process.pid, signal.SIGKILL)
    wait_for(lambda: not own.alive(), 10, "its end to be seen")
    assert not own.ready(nothing, NEVER) and own.ready(nothing, NEVER)


def test_a_child_that_dies_between_two_jobs_is_told_of_with_its_traceback(homes: list[Home]) -> None:
    heard: list[Event] = []
    own = Home(Children([MODULE], None, Events(heard.append)), "test", 1000, 1 << 30)
    homes.append(own)
    assert own.ready(nothing, NEVER) and own.child is not None
    run_in(own.child, "die_later")
    wait_for(lambda: not own.alive(), 20, "its end")
    assert own.ready(nothing, NEVER)
    (told,) = heard
    assert isinstance(told, Problem) and told.where == "child of test"
    assert told.error.startswith("killed by SIGSEGV between two jobs") and "threading.py" in told.error


def test_a_child_that_its_job_takes_down_is_told_of_by_the_job_alone(homes: list[Home]) -> None:
    heard: list[Event] = []
    own = Home(Children([MODULE], None, Events(heard.append)), "test", 1000, 1 << 30)
    homes.append(own)
    assert own.ready(nothing, NEVER) and own.child is not None
    assert run_in(own.child, "end", 3).kind is OutcomeKind.CRASHED
    assert own.ready(nothing, NEVER) and not heard


def test_the_memory_of_a_process_is_known() -> None:
    assert (memory_of(os.getpid()) or 0) > 1 << 20 and memory_of(1 << 30) is None


# ------------------------------------------------------------------ its daemon's end, its lease's end

DAEMON = """
import sys
from qd.executors import Children, Attempt, Place
from tests.unit.executors.children import new_child, started
from pathlib import Path
child = new_child()
started(child, "wait", Path(sys.argv[1]), {"how": sys.argv[2]}, lease=float(sys.argv[3]))
sys.stdin.read()
"""


def a_daemon(inside: Path, how: str, lease: float) -> subprocess.Popen[bytes]:
    """A process of its own whose child runs a handler; the child's pid stands in `inside`."""
    argv = [sys.executable, "-c", DAEMON, str(inside), how, str(lease)]
    daemon = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE)
    wait_for(inside.exists, 30, "its handler to begin")
    return daemon


@pytest.mark.parametrize("how", ["sleep", "hog"])
def test_it_is_dead_as_soon_as_its_daemon_whatever_it_is_doing(how: str, tmp_path: Path) -> None:
    with a_daemon(tmp_path / "in", how, 30) as daemon:
        child = int((tmp_path / "in").read_text())
        daemon.kill()
        began = monotonic()
        wait_for(lambda: not is_running(child), 10, "the child's end")
        assert monotonic() - began < 5


def test_it_ends_itself_when_it_has_not_heard_of_its_daemon_for_most_of_a_lease(tmp_path: Path) -> None:
    with a_daemon(tmp_path / "in", "sleep", 1.0) as daemon:
        child = int((tmp_path / "in").read_text())
        os.kill(daemon.pid, signal.SIGSTOP)
        wait_for(lambda: not is_running(child), 20, "the child's end")
        daemon.kill()


def test_it_ends_itself_also_where_its_handler_has_closed_the_connection(tmp_path: Path) -> None:
    with a_daemon(tmp_path / "in", "closes", 2.0) as daemon:
        child = int((tmp_path / "in").read_text())
        os.kill(daemon.pid, signal.SIGSTOP)
        (tmp_path / "in.close").touch()
        try:
            wait_for(lambda: not is_running(child), 20, "the child's end")
        finally:
            daemon.kill()


def test_it_has_ended_before_a_sweep_elsewhere_could_have_taken_its_job(tmp_path: Path) -> None:
    lease = 9.0
    with a_daemon(tmp_path / "in", "sleep", lease) as daemon:
        child = int((tmp_path / "in").read_text())
        began = monotonic()
        os.kill(daemon.pid, signal.SIGSTOP)
        wait_for(lambda: not is_running(child), 20, "the child's end")
        daemon.kill()
        # the lease ends half of it after the freeze at the soonest, and the sweep's looks are a third apart
        assert monotonic() - began < lease / 2 + lease / 3


def test_a_job_that_outlives_many_leases_runs_on_while_its_daemon_lives(tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "coroutine", tmp_path / "in", {"seconds": 4.5}, lease=2.0)
        assert running.ended().result == "awaited"


# ------------------------------------------------------------------ job.complete


def a_row(path: Path, token: str = "host:1:nonce:worker:1") -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE qd_jobs (id, reserved_by)")
        connection.execute("INSERT INTO qd_jobs VALUES (7, ?)", (token,))
        connection.commit()


def test_the_daemon_knows_of_a_completion_before_the_row_can_be_gone(tmp_path: Path) -> None:
    a_row(tmp_path / "db")
    with a_child() as child, closing(sqlite3.connect(tmp_path / "db")) as blocker:
        blocker.execute("BEGIN IMMEDIATE")  # the handler's statement waits
        running = Running(attempt_in(child, "complete", {"path": str(tmp_path / "db")}))
        blocker.rollback()
        assert running.ended().kind is OutcomeKind.SUCCEEDED and running.attempt.job.completed
        assert blocker.execute("SELECT COUNT(*) FROM qd_jobs").fetchone() == (0,)


def test_a_completion_by_another_run_is_refused_and_leaves_nothing_completed(tmp_path: Path) -> None:
    a_row(tmp_path / "db", token="another's")
    with a_child() as child:
        attempt = attempt_in(child, "complete", {"path": str(tmp_path / "db")})
        outcome = attempt.run()
        assert "LeaseLost" in str(outcome.error) and not attempt.job.completed


def test_a_thread_that_a_handler_has_left_behind_completes_nothing_and_is_told_at_once(tmp_path: Path) -> None:
    with a_child() as child:
        assert run_in(child, "complete_later", {"go": str(tmp_path / "go")}).kind is OutcomeKind.SUCCEEDED
        (tmp_path / "go").touch()
        wait_for(lambda: (tmp_path / "go").read_text() == "LeaseLost", 20, "it to be told")
        attempt = attempt_in(child, "pid")
        assert attempt.run().kind is OutcomeKind.SUCCEEDED and not attempt.job.completed


def test_a_crash_after_a_completion_leaves_it_to_the_row_to_say(tmp_path: Path) -> None:
    a_row(tmp_path / "db")
    with a_child() as child:
        attempt = attempt_in(child, "complete", {"path": str(tmp_path / "db"), "then": "die"})
        assert attempt.run().kind is OutcomeKind.CRASHED and attempt.job.completed


def test_no_thread_of_the_daemon_is_left_by_children() -> None:
    before = threading.active_count()
    with a_child() as child:
        run_in(child, "pid")
        assert threading.active_count() == before
