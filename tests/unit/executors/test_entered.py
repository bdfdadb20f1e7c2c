"""An attempt whose handler was never entered says so, however it ended; any other counts as entered."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from qd.executors import Attempt, Child, Interruption
from qd.executors import command as command_module
from qd.executors.function import FunctionRun
from qd.executors.process import ProcessRun
from qd.executors.wire import frame
from qd.outcome import OutcomeKind
from qd.payload import encode
from tests.support.waiting import wait_for
from tests.unit.executors.children import a_child, attempt_in, run_in
from tests.unit.executors.jobs import Running, attempt, command, job

Make = Callable[[], Attempt]


@pytest.mark.parametrize("why", Interruption)
@pytest.mark.parametrize("make", [lambda: attempt(lambda job: None), lambda: command("true")])
def test_what_was_interrupted_before_its_start_was_not_entered(why: Interruption, make: Make) -> None:
    made = make()
    made.interrupt(why)
    assert not made.run().entered


@pytest.mark.parametrize("make", [lambda: attempt(lambda job: None), lambda: command("true"), lambda: command("false")])
def test_what_ran_was_entered(make: Make) -> None:
    assert make().run().entered


def test_an_interruption_while_the_entry_is_announced_still_prevents_it() -> None:
    ran: list[int] = []
    run = FunctionRun(job(), lambda job: ran.append(1), 5.0, lambda: run.interrupt(Interruption.STOP))
    outcome = run.run()
    assert (outcome.kind, outcome.entered, ran) == (OutcomeKind.RELEASED, False, [])


def test_a_handler_whose_entry_can_not_be_announced_is_not_entered() -> None:
    ran: list[int] = []

    def announce() -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        FunctionRun(job(), lambda job: ran.append(1), 5.0, announce).run()
    assert not ran


def test_a_thread_that_was_not_entered_before_the_process_ends_never_is() -> None:
    stuck = attempt(lambda job: None)
    assert stuck.abandoned().entered  # nothing keeps it from it
    stuck.interrupt(Interruption.STOP)
    assert not stuck.abandoned().entered


@pytest.mark.parametrize(("number", "entered"), [(errno.EAGAIN, False), (errno.EMFILE, False), (errno.ENOENT, True)])
def test_a_program_that_the_machine_has_no_room_for_costs_no_attempt(
    number: int, entered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spawn(*args: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(command_module, "spawn", spawn)
    outcome = command("true").run()
    assert (outcome.kind, outcome.entered) == (OutcomeKind.FAILED, entered)


# ------------------------------------------------------------------ in a child


def test_a_child_that_died_before_it_heard_of_the_job_has_not_begun_it() -> None:
    with a_child() as child:
        os.kill(child.process.pid, signal.SIGKILL)
        wait_for(child.process.exited, 20, "its end")
        outcome = run_in(child, "pid")
        assert (outcome.kind, outcome.entered) == (OutcomeKind.CRASHED, False)
        assert "before the job began" in str(outcome.error)


@pytest.mark.parametrize("why", Interruption)
def test_a_child_that_heard_nothing_of_the_job_until_it_was_killed_has_not_begun_it(why: Interruption) -> None:
    with a_child() as child:
        os.kill(child.process.pid, signal.SIGSTOP)
        running = Running(attempt_in(child, "echo", "x" * 2_000_000, kill_grace=0.0))
        wait_for(lambda: not child.silent(), 20, "more to be told than the connection holds")
        running.attempt.interrupt(why)
        assert not running.ended().entered


class Unheard(ProcessRun):
    """Hears nothing of what the child says until it is to be killed."""

    def __init__(self, child: Child, inside: Path) -> None:
        payload = encode({"inside": str(inside), "how": "sleep"})
        super().__init__(job(type="wait"), child, payload, 5.0, 30.0)
        self.inside = inside

    def _attend(self) -> None:
        wait_for(self.inside.exists, 20, "the handler to begin")


def test_a_beginning_that_nobody_had_read_before_the_child_was_killed_counts(tmp_path: Path) -> None:
    with a_child() as child:
        outcome = Unheard(child, tmp_path / "in").run()
        assert (outcome.kind, outcome.entered) == (OutcomeKind.CRASHED, True)
        assert "in the middle of the job" in str(outcome.error) and not child.fit()


def test_a_fault_of_the_attendants_after_the_beginning_leaves_it_begun(tmp_path: Path) -> None:
    class Faulty(Unheard):
        def _attend(self) -> None:
            super()._attend()
            raise KeyError("a bug")

    with a_child() as child:
        run = Faulty(child, tmp_path / "in")
        with pytest.raises(KeyError):
            run.run()
        assert run.entered and not child.fit()


@pytest.mark.parametrize("how", ["segfault", "exec", "close", 0, -9])
def test_a_child_that_its_handler_took_down_had_begun(how: object) -> None:
    with a_child() as child:
        assert run_in(child, "end", how).entered


def test_a_child_that_has_said_what_is_no_message_may_have_begun() -> None:
    with a_child() as child:
        assert run_in(child, "write_to_daemon", "ffffffff").entered


def test_a_handler_can_not_claim_that_it_was_never_entered() -> None:
    answer = {
        "token": job().token, "kind": "failed", "reason": "error", "error": None, "traceback": None, "delay": None,
        "result": None, "entered": False,
    }  # fmt: skip
    with a_child() as child:
        outcome = run_in(child, "write_to_daemon", frame("ended", **answer).hex())
        assert (outcome.kind, outcome.entered) == (OutcomeKind.FAILED, True)
        child.kill()


def test_a_child_that_was_told_of_the_interruption_before_the_job_has_not_begun_it(tmp_path: Path) -> None:
    with a_child() as child:
        os.kill(child.process.pid, signal.SIGSTOP)
        running = Running(attempt_in(child, "wait", {"inside": str(tmp_path / "in"), "how": "sleep"}))
        wait_for(lambda: running.attempt.thread_ident is not None, 20, "it to be run")
        running.attempt.interrupt(Interruption.TIMEOUT)  # which wakes the child, too
        outcome = running.ended()
        assert outcome.kind is OutcomeKind.TIMEOUT and outcome.entered == (tmp_path / "in").exists()
