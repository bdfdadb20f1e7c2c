"""However a child ends, its job has crashed and says how, and nothing of it is left."""

from __future__ import annotations

import os
import resource
import signal
import struct
from pathlib import Path

import pytest

from qd.executors import Child, Interruption
from qd.executors.process import ProcessRun
from qd.executors.wire import ANSWER_LIMIT, frame
from qd.outcome import Outcome, OutcomeKind, Reason
from qd.payload import encode
from tests.unit.executors.children import a_child, attempt_in, is_running, new_child, open_files, run_in, started
from tests.unit.executors.jobs import job


def crashed(outcome: Outcome, words: str, killed_by: str | None) -> None:
    assert (outcome.kind, outcome.reason, outcome.signal) == (OutcomeKind.CRASHED, Reason.CRASH, killed_by)
    assert outcome.error is not None and words in outcome.error, outcome.error


@pytest.mark.parametrize(
    ("how", "words", "killed_by"),
    [
        ("segfault", "killed by SIGSEGV in the middle of the job", "SIGSEGV"),
        ("abort", "killed by SIGABRT", "SIGABRT"),
        (-int(signal.SIGKILL), "killed by SIGKILL (by the kernel for want of memory, perhaps", "SIGKILL"),
        (-int(signal.SIGRTMIN) - 1, f"killed by signal {signal.SIGRTMIN + 1}", f"signal {signal.SIGRTMIN + 1}"),
        (0, "exited with status 0 in the middle of the job", None),
        (7, "exited with status 7", None),
        ("exec", "closed its connection to the daemon (became another program", None),
        ("close", "closed its connection to the daemon", None),
    ],
)
def test_each_end_has_its_words(how: str | int, words: str, killed_by: str | None) -> None:
    with a_child() as child:
        outcome = run_in(child, "end", how)
        crashed(outcome, words, killed_by)
        assert not child.fit() and not is_running(child.process.pid)
        if killed_by in ("SIGSEGV", "SIGABRT"):
            assert "child_handlers.py" in str(outcome.traceback)


def message(**fields: object) -> str:
    return frame(**{"say": "ended", **fields}).hex()  # type: ignore[arg-type]


TOKEN = job().token
FINE = {
    "token": TOKEN, "kind": "succeeded", "reason": "error",
    "error": None, "traceback": None, "delay": None, "result": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "written",
    [
        "ffffffff",
        struct.pack(">I", ANSWER_LIMIT + 1).hex(),
        "0000000378787822",
        "000000026e6c",
        "000000025b5d",
        message(token=TOKEN),
        message(**FINE | {"kind": "lost soul"}),
        message(**FINE | {"error": 7}),
        message(**FINE | {"delay": -1.0}),
        message(**FINE | {"delay": "soon"}),
        message(**FINE | {"delay": 1e300}),
        message(**FINE | {"delay": 10**400}),
        message(**FINE | {"kind": ["succeeded"]}),
        message(**FINE | {"kind": "released"}),
        ("0000ffff" + "5b" * 0xFFFF),
    ],
)
def test_what_is_no_message_ends_the_child_and_harms_nobody(written: str) -> None:
    with a_child() as child:
        crashed(run_in(child, "write_to_daemon", written), "wrote into its connection to the daemon", None)
        assert not is_running(child.process.pid)


def test_half_a_message_holds_nobody_up() -> None:
    with a_child() as child:
        began = run_in(child, "write_to_daemon", "000000ff7b", timeout=60.0, memory=1)  # ended for its memory
        crashed(began, "of memory", "SIGKILL")


def test_a_message_that_nobody_knows_is_passed_over() -> None:
    with a_child() as child:
        known = frame("chat").hex() + message(**FINE)
        assert run_in(child, "write_to_daemon", known).kind is OutcomeKind.SUCCEEDED
        child.kill()  # its handler still runs


def test_what_is_said_of_another_job_ends_and_completes_nothing() -> None:
    with a_child() as child:
        late = frame("completing", token="another's").hex() + message(
            **FINE | {"token": "another's", "kind": "rejected"}
        )
        attempt = attempt_in(child, "write_to_daemon", late + message(**FINE))
        assert attempt.run().kind is OutcomeKind.SUCCEEDED and not attempt.job.completed
        child.kill()


class StoppedInThatMoment(ProcessRun):
    """A stop comes when the child's end was seen, but nothing done about it yet."""

    def _attend(self) -> None:
        super()._attend()
        self.interrupt(Interruption.STOP)


def test_a_crash_just_before_a_stop_counts_as_one() -> None:
    with a_child() as child:
        run = StoppedInThatMoment(job(type="end"), child, encode(7), 5.0, 30.0)
        crashed(run.run(), "exited with status 7", None)


def test_a_child_over_its_memory_limit_is_killed_and_the_job_says_so(tmp_path: Path) -> None:
    with a_child() as child:
        outcome = run_in(child, "wait", {"inside": str(tmp_path / "in"), "how": "sleep"}, memory=1 << 20)
        crashed(outcome, "MiB of memory, more than the queue's memory: 1MiB; killed", "SIGKILL")


def test_what_it_left_running_is_dead_before_the_attempt_is_over(tmp_path: Path) -> None:
    with a_child() as child:
        run_in(child, "leave_program", {"inside": str(tmp_path / "in")})
        left = int((tmp_path / "in").read_text())
        assert is_running(left)
        run_in(child, "end", 1)
        assert not is_running(left)


def test_an_answer_counts_though_its_child_was_dead_before_it_was_read(tmp_path: Path) -> None:
    with a_child() as child:
        answer = frame("ended", **FINE).hex()
        running = started(child, "wait", tmp_path / "in", {"how": "sleep"})
        assert running.outcome is None
        child.process.signal_group(signal.SIGKILL)
        crashed(running.ended(), "killed by SIGKILL", "SIGKILL")
    with a_child() as child:
        assert run_in(child, "write_to_daemon", answer).kind is OutcomeKind.SUCCEEDED
        child.kill()


def test_many_crashes_leave_no_descriptor_and_no_process() -> None:
    new_child().kill()
    before = open_files()
    pids = []
    for how in ("segfault", 1, "exec", -9):
        child = new_child()
        pids.append(child.process.pid)
        assert run_in(child, "end", how).kind is OutcomeKind.CRASHED
    assert open_files() == before and not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("left", range(8))
def test_a_start_for_which_there_are_too_few_descriptors_keeps_none(left: int) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = open_files()
    taken = {int(name) for name in os.listdir("/proc/self/fd")}
    free = [number for number in range(1024) if number not in taken]
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[left], limits[1]))
    try:
        with pytest.raises(OSError):
            Child("qd test", dict(os.environ))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert open_files() == before
