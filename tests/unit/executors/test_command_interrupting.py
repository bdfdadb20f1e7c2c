"""Interrupting programs: the whole process group is gone before the attempt ends."""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path

import pytest

from qd.clock import monotonic
from qd.executors import Interruption
from qd.outcome import OutcomeKind, Reason
from tests.support.waiting import wait_for
from tests.unit.executors.jobs import Running, command


def started(script: str, ready: Path, kill_grace: float = 30.0) -> Running:
    """Runs a script with `$1` as the file by which it says that it is ready; waits for that."""
    running = Running(command("sh", "-c", script, "sh", str(ready), kill_grace=kill_grace))
    wait_for(lambda: ready.exists() and ready.read_text().endswith("\n"), 10, "the program to be ready")
    return running


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("why", "kind", "reason"),
    [
        (Interruption.TIMEOUT, OutcomeKind.TIMEOUT, Reason.TIMEOUT),
        (Interruption.STOP, OutcomeKind.RELEASED, Reason.INTERRUPTED),
    ],
)
def test_sigterm_ends_a_program_and_what_it_wrote_is_told(
    why: Interruption, kind: OutcomeKind, reason: Reason, tmp_path: Path
) -> None:
    script = "trap 'echo tidied up >&2; exit 0' TERM; echo >$1; while :; do sleep 0.01; done"
    running = started(script, tmp_path / "ready")
    running.attempt.interrupt(why)
    outcome = running.ended()
    assert (outcome.kind, outcome.reason) == (kind, reason)
    assert outcome.error is not None and outcome.error.endswith("tidied up")


def test_a_program_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    running = started("trap '' TERM; echo >$1; while :; do sleep 0.01; done", tmp_path / "ready", kill_grace=0.2)
    began = monotonic()
    running.attempt.interrupt(Interruption.TIMEOUT)
    assert running.ended().kind is OutcomeKind.TIMEOUT
    assert monotonic() - began >= 0.2
    assert not running.attempt.stuck(monotonic() + 60)


def test_its_children_are_gone_too_whatever_they_ignore(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = "sh -c \"trap '' TERM; echo \\$\\$ >$1; while :; do sleep 0.01; done\""
    running = started(f"{child} & wait", ready)
    running.attempt.interrupt(Interruption.TIMEOUT)
    assert running.ended().kind is OutcomeKind.TIMEOUT
    assert not is_running(int(ready.read_text()))


def test_a_stopped_program_is_ended_too(tmp_path: Path) -> None:
    running = started("echo $$ >$1; while :; do sleep 0.01; done", tmp_path / "ready")
    os.kill(int((tmp_path / "ready").read_text()), signal.SIGSTOP)
    running.attempt.interrupt(Interruption.TIMEOUT)
    assert running.ended().kind is OutcomeKind.TIMEOUT


def test_a_program_that_reads_nothing_and_writes_without_end_is_ended_too(tmp_path: Path) -> None:
    running = Running(command("yes", payload=b"x" * 1_000_000))
    wait_for(lambda: running.attempt.thread_ident is not None, 5, "the attempt to begin")
    running.attempt.interrupt(Interruption.STOP)
    assert running.ended().kind is OutcomeKind.RELEASED


def test_an_attempt_interrupted_before_its_start_starts_no_program(tmp_path: Path) -> None:
    run = command("touch", str(tmp_path / "started"))
    run.interrupt(Interruption.STOP)
    assert run.run().kind is OutcomeKind.RELEASED
    assert not (tmp_path / "started").exists()


def test_interruptions_at_random_moments_end_each_program_and_give_back_each_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))
    kinds = set()
    for number in range(100):
        run = command("sh", "-c", "exit 0")
        timer = threading.Timer(number * 2e-5, run.interrupt, [random.choice(list(Interruption))])
        timer.start()
        kinds.add(run.run().kind)
        timer.join()
    assert kinds <= {OutcomeKind.SUCCEEDED, OutcomeKind.TIMEOUT, OutcomeKind.RELEASED}
    assert len(os.listdir("/proc/self/fd")) == before


def test_at_a_stop_a_program_that_ignores_sigterm_and_all_its_children_are_gone_within_the_second_there_is(
    tmp_path: Path,
) -> None:
    ready = tmp_path / "ready"
    child = "sh -c \"trap '' TERM; echo \\$\\$ >$1; while :; do sleep 0.01; done\""
    running = started(f"trap '' TERM; {child} & wait", ready, kill_grace=600.0)
    running.attempt.interrupt(Interruption.STOP)
    assert running.ended().kind is OutcomeKind.RELEASED
    assert not is_running(int(ready.read_text()))


def test_a_stop_hurries_a_program_that_was_timed_out_before(tmp_path: Path) -> None:
    running = started("trap '' TERM; echo >$1; while :; do sleep 0.01; done", tmp_path / "ready", kill_grace=600.0)
    running.attempt.interrupt(Interruption.TIMEOUT)
    running.attempt.interrupt(Interruption.STOP)
    assert running.ended().kind is OutcomeKind.TIMEOUT  # the first reason decides
