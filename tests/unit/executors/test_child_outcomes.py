"""A handler in a child ends as it would in a thread."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

import pytest

from qd.outcome import OutcomeKind, Reason
from tests.unit.executors.children import a_child, attempt_in, is_running, new_child, run_in, started
from tests.unit.executors.jobs import Running


def test_it_gets_the_whole_job_and_its_text_comes_back() -> None:
    with a_child() as child:
        outcome = run_in(child, "echo", {"naïve": ["☂", None, 1.5]}, id=(1 << 63) + 1)
    assert outcome.kind is OutcomeKind.SUCCEEDED and outcome.error is None
    said = "{'naïve': ['☂', None, 1.5]} 9223372036854775809 2/3 host:1:nonce:worker:1 2024-05-01 00:00:00+00:00 60"
    assert outcome.result == said


@pytest.mark.parametrize("size", [0, 1000, 1_000_000])
def test_a_payload_of_any_size_arrives(size: int) -> None:
    with a_child() as child:
        outcome = run_in(child, "echo", "ü" * size)
        assert outcome.kind is OutcomeKind.SUCCEEDED and child.fit()


def test_one_child_runs_many_jobs_and_each_has_a_context_of_its_own() -> None:
    with a_child() as child:
        assert {run_in(child, "pid").result for _ in range(20)} == {str(child.process.pid)}
        assert run_in(child, "context").result == run_in(child, "context").result


@pytest.mark.parametrize(
    ("payload", "kind", "delay", "error"),
    [
        ("retry", OutcomeKind.FAILED, 7.0, "later"),
        ("reject", OutcomeKind.REJECTED, None, "never"),
        ("snooze", OutcomeKind.SNOOZED, 9.0, None),
        ("exit", OutcomeKind.FAILED, None, "SystemExit: 3"),
        ("error", OutcomeKind.FAILED, None, "ValueError: wrong"),
    ],
)
def test_what_it_raises_means_the_same(payload: str, kind: OutcomeKind, delay: float | None, error: str | None) -> None:
    with a_child() as child:
        outcome = run_in(child, "raise", payload)
        assert (outcome.kind, outcome.delay, outcome.error) == (kind, delay, error)
        assert child.fit() and run_in(child, "pid").kind is OutcomeKind.SUCCEEDED


def test_a_hostile_exception_stays_in_the_child() -> None:
    with a_child() as child:
        outcome = run_in(child, "hostile")
        assert outcome.kind is OutcomeKind.FAILED and "Hostile" in str(outcome.error)
        assert "child_handlers.py" in str(outcome.traceback) and child.fit()


def test_a_coroutine_is_awaited(tmp_path: Path) -> None:
    with a_child() as child:
        assert run_in(child, "coroutine", {"inside": str(tmp_path / "in"), "seconds": 0}).result == "awaited"


def test_a_handler_hears_that_its_lease_is_lost(tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "lost", tmp_path / "in")
        running.attempt.job.loss.set()
        assert running.ended().result == "True"


def test_a_lease_that_was_lost_before_the_start_is_known_to_be(tmp_path: Path) -> None:
    with a_child() as child:
        attempt = attempt_in(child, "lost", {"inside": str(tmp_path / "in")})
        attempt.job.loss.set()
        assert attempt.run().result == "True"


@pytest.mark.parametrize("how", ["return", "raise"])
def test_a_fork_that_comes_out_of_the_handler_ends_and_says_nothing_to_the_daemon(how: str) -> None:
    with a_child() as child:
        assert run_in(child, "fork", how).result == "70"
        assert run_in(child, "pid").result == str(child.process.pid)


def test_what_a_failed_job_leaves_running_is_ended_before_it_can_run_again(tmp_path: Path) -> None:
    with a_child() as child:
        outcome = run_in(child, "leave_program", {"inside": str(tmp_path / "in"), "fails": True})
        assert outcome.kind is OutcomeKind.FAILED and not is_running(int((tmp_path / "in").read_text()))
        assert not child.fit()  # its module may keep what has been ended, like a pool, for the next jobs


def test_a_failed_job_that_leaves_nothing_running_leaves_its_child_to_the_next() -> None:
    with a_child() as child:
        assert run_in(child, "raise", "error").kind is OutcomeKind.FAILED and child.fit()


def test_a_job_that_replaces_json_cuts_no_child_off() -> None:
    with a_child() as child:
        assert run_in(child, "break_json").kind is OutcomeKind.SUCCEEDED
        assert run_in(child, "pid").result == str(child.process.pid)


@pytest.mark.parametrize("timer", [signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF])
def test_an_alarm_that_a_job_leaves_set_does_not_hit_the_next(timer: int) -> None:
    with a_child() as child:
        assert run_in(child, "set_alarm", timer).kind is OutcomeKind.SUCCEEDED
        assert run_in(child, "timers").result == "[0.0, 0.0, 0.0]"


def test_what_a_job_that_succeeded_leaves_running_is_left_alone(tmp_path: Path) -> None:
    with a_child() as child:
        assert run_in(child, "leave_program", {"inside": str(tmp_path / "in")}).kind is OutcomeKind.SUCCEEDED
        left = int((tmp_path / "in").read_text())
        assert is_running(left)
        child.retire()
        assert is_running(left)
        child.process.signal_group(9)


def test_a_child_loads_no_database_driver_and_no_configuration() -> None:
    with a_child() as child:
        assert run_in(child, "modules").result == ""


def test_a_job_of_a_type_that_the_child_lacks_fails_without_harm() -> None:
    with a_child() as child:
        assert run_in(child, "unheard_of").kind is OutcomeKind.FAILED
        assert child.fit()


def test_the_level_of_the_log_follows_the_daemons(capfd: pytest.CaptureFixture[str]) -> None:
    from qd.config.model import LogConfig
    from qd.log import records, setup_logging

    root, before = logging.getLogger(), records._current
    handlers, level = root.handlers[:], root.level
    try:
        log = setup_logging(LogConfig(format="text"))
        child = new_child()  # one that was started before has the outputs of then
        run_in(child, "log", id=77)
        said = capfd.readouterr()
        assert 'logger=shop job_id=77 message="from the child"' in said.err and said.out == "printed\n"
        log.apply(LogConfig(format="json", level="error"))
        run_in(child, "log")
        assert "from the child" not in capfd.readouterr().err
        child.kill()
    finally:
        root.handlers[:], records._current = handlers, before
        root.setLevel(level)
        logging.captureWarnings(False)


def test_the_reason_of_a_failure_is_the_handlers() -> None:
    with a_child() as child:
        assert run_in(child, "raise", "error").reason is Reason.ERROR
        assert Running(attempt_in(child, "pid")).ended().kind is OutcomeKind.SUCCEEDED
