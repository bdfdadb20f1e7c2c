"""Programs as handlers: what they are given, and what their end means."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from qd.clock import monotonic
from qd.executors import Attempt
from qd.executors.command import CommandRun
from qd.executors.spawn import Process, start
from qd.outcome import OutcomeKind, Reason
from tests.unit.executors.jobs import command, job


def sh(script: str, payload: str | bytes = b"{}", kill_grace: float = 5.0) -> Attempt:
    return command("sh", "-c", script, payload=payload, kill_grace=kill_grace)


def python(script: str, payload: str | bytes = b"{}") -> Attempt:
    return command(sys.executable, "-c", script, payload=payload)


def test_the_payload_comes_on_stdin_byte_for_byte() -> None:
    for payload in (b'{ "to":7, "name": "\xc3\xa9" }\n', '{"name": "é"}', b""):
        expected = payload if isinstance(payload, str) else payload.decode()
        assert (sh("cat", payload).run().result or "") == expected.rstrip("\n")


def test_the_environment_names_the_job() -> None:
    names = ["QD_JOB_ID", "QD_JOB_TYPE", "QD_QUEUE", "QD_ATTEMPT", "QD_MAX_ATTEMPTS", "QD_TOKEN"]
    result = sh("echo " + " ".join(f"${name}" for name in names)).run().result
    assert result == "7 send_email mails 2 3 host:1:nonce:worker:1"


def test_no_shell_stands_between() -> None:
    assert command("echo", "$HOME;", "a b", "*").run().result == "$HOME; a b *"


@pytest.mark.parametrize(
    ("status", "kind", "reason", "delay", "error"),
    [
        (0, OutcomeKind.SUCCEEDED, Reason.ERROR, None, None),
        (75, OutcomeKind.SNOOZED, Reason.ERROR, 60.0, None),
        (65, OutcomeKind.REJECTED, Reason.REJECTED, None, "exit status 65: why"),
        (100, OutcomeKind.REJECTED, Reason.REJECTED, None, "exit status 100: why"),
        (1, OutcomeKind.FAILED, Reason.ERROR, None, "exit status 1: why"),
        (255, OutcomeKind.FAILED, Reason.ERROR, None, "exit status 255: why"),
    ],
)
def test_the_exit_status_decides(status: int, kind: OutcomeKind, reason: Reason, delay: float, error: str) -> None:
    outcome = sh(f"echo out; echo why >&2; exit {status}").run()
    assert (outcome.kind, outcome.reason, outcome.delay, outcome.error) == (kind, reason, delay, error)
    assert outcome.result == ("out" if status == 0 else None)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM"])
def test_a_signal_from_elsewhere_is_a_failed_attempt_that_names_it(name: str) -> None:
    outcome = sh(f"kill -{name.removeprefix('SIG')} $$").run()
    assert (outcome.kind, outcome.reason, outcome.error) == (OutcomeKind.FAILED, Reason.ERROR, f"killed by {name}")


def test_the_last_4_kib_of_a_long_error_are_kept_as_valid_text() -> None:
    outcome = python(r"import os; os.write(2, b'\xc3\xa9' * 5000 + b'\xff\x00the end'); raise SystemExit(3)").run()
    assert outcome.error is not None
    assert outcome.error.startswith("exit status 3: [cut] … é") and outcome.error.endswith("é\\xff\\x00the end")
    assert len(outcome.error.encode()) <= 4096 + len("exit status 3: ")


def test_a_program_that_writes_without_end_neither_fills_the_memory_nor_stops() -> None:
    outcome = sh("head -c 100000000 /dev/zero | tr '\\0' x; head -c 20000000 /dev/zero >&2").run()
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert outcome.result is not None and len(outcome.result) < 4100


def test_a_program_that_does_not_read_its_payload_ends_as_it_likes() -> None:
    big = b'"' + b"x" * 5_000_000 + b'"'
    assert sh("exit 0", big).run().kind is OutcomeKind.SUCCEEDED
    assert sh("head -c 3; exec 0<&-; echo", big).run().result == '"xx'
    assert sh("wc -c", big).run().result == str(len(big))


def test_a_grandchild_that_keeps_the_output_open_does_not_hold_the_attempt() -> None:
    began = monotonic()
    outcome = sh("sleep 300 & echo $!").run()
    assert outcome.kind is OutcomeKind.SUCCEEDED and monotonic() - began < 60
    assert outcome.result is not None
    pid = int(outcome.result)
    os.kill(pid, 0)  # a program that succeeded may leave something running
    os.kill(pid, signal.SIGKILL)


def test_what_a_failed_program_left_running_is_killed_before_the_job_may_run_again() -> None:
    outcome = sh("sleep 300 & echo $! >&2; exit 1").run()
    assert outcome.error is not None
    assert not is_running(int(outcome.error.split()[-1]))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("no-such-program",), "program 'no-such-program' not found"),
        (("/",), "is not executable"),
        (("echo", "a\x00b"), "can't be started: embedded null byte"),
        (("echo", "\ud800"), "can't be started: "),
        (("echo", "x" * 10_000_000), "can't be started: Argument list too long"),
    ],
)
def test_a_program_that_can_not_be_started_is_a_failed_attempt(argv: tuple[str, ...], text: str) -> None:
    outcome = command(*argv).run()
    assert outcome.kind is OutcomeKind.FAILED
    assert outcome.error is not None and text in outcome.error


def test_a_script_without_its_interpreter_is_a_failed_attempt(tmp_path: Path) -> None:
    for first, text in (("#!/no/such/interpreter", "interpreter"), ("echo no first line", "Exec format error")):
        script = tmp_path / "script"
        script.write_text(f"{first}\n")
        script.chmod(0o755)
        outcome = command(str(script)).run()
        assert outcome.kind is OutcomeKind.FAILED
        assert outcome.error is not None and text in outcome.error


STATE = """
import json, os, signal
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(json.dumps({
    "blocked": int(status["SigBlk"], 16), "ignored": int(status["SigIgn"], 16),
    "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd")), "leads": os.getsid(0) == os.getpid() == os.getpgrp(),
    "cwd": os.getcwd(),
}))
"""


def test_it_starts_with_a_clean_signal_state_no_foreign_descriptor_and_a_session_of_its_own() -> None:
    results: list[str | None] = []

    def run() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
        results.append(command(sys.executable, "-I", "-c", STATE).run().result)

    with socket.socket() as leaked:
        leaked.set_inheritable(True)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert results[0] is not None
    state = json.loads(results[0])
    ignored = {number for number in signal.valid_signals() if state["ignored"] >> (number - 1) & 1}
    assert state["blocked"] == 0 and ignored <= {signal.SIGPIPE, signal.SIGXFSZ}  # which Python itself ignores
    assert [fd for fd in state["fds"] if fd > 3] == []  # 3 is the listing's own
    assert state["leads"] and state["cwd"] == os.getcwd()


def test_signals_that_the_daemon_ignores_are_not_ignored_in_its_programs() -> None:
    assert python("import os").run().kind is OutcomeKind.SUCCEEDED
    outcome = sh("kill -PIPE $$; echo survived").run()  # Python ignores SIGPIPE, and would pass that on
    assert outcome.error == "killed by SIGPIPE"


def test_descriptors_are_all_given_back() -> None:
    def fds() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = fds()
    for argv in (("true",), ("false",), ("no-such-program",), ("sh", "-c", "kill -9 $$")):
        command(*argv).run()
    assert fds() == before


def test_a_system_without_pidfd_sees_the_end_too() -> None:
    began = monotonic()
    run = CommandRun(job(), ("sh", "-c", "exec >&- 2>&-; exit 3"), b"{}", 5.0, use_pidfd=False)
    assert run.run().error == "exit status 3"
    assert monotonic() - began < 30


def test_a_status_that_nobody_kept_is_a_failed_attempt_that_says_so() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps, as another handler's wait() would
    try:
        outcome = sh("exit 0").run()
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert outcome.kind is OutcomeKind.FAILED
    assert outcome.error is not None and "taken by somebody else" in outcome.error


def test_a_second_reap_takes_no_other_childs_end() -> None:
    process = Process(start(("true",), {"PATH": os.environ["PATH"]}, {}))
    process.reap()
    other = subprocess.Popen(("false",))
    process.pid = other.pid  # as if the system had given the number away again
    process.reap()
    process.signal_group(signal.SIGKILL)
    assert other.wait(10) == 1
    process.close()
