"""Signals are queued whatever the process is doing, and change nothing by themselves."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest


class Script:
    """A Python process of its own, since signal handlers belong to a whole process."""

    def __init__(self, code: str) -> None:
        begin = "import os, signal, sys, threading, time\nfrom qd.daemon.signals import install\nsignals = install()\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", begin + textwrap.dedent(code)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> tuple[int, str, str]:
        """Its exit status, the rest of its output, its error output."""
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


@pytest.fixture
def scripts() -> Iterator[list[Script]]:
    started: list[Script] = []
    yield started
    for script in started:
        script.process.kill()
        script.process.wait()


def run(scripts: list[Script], code: str) -> Script:
    scripts.append(Script(code))
    return scripts[-1]


def test_signals_are_taken_in_the_order_in_which_they_came(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        signals.wait(5)
        print([signal.Signals(number).name for number in signals.take()], signals.take())
        """,
    )
    assert script.end()[:2] == (0, "['SIGHUP', 'SIGUSR1', 'SIGTERM', 'SIGINT'] []\n")


def test_a_signal_ends_the_wait_at_once(scripts: list[Script]) -> None:
    script = run(scripts, "print('waits', flush=True); signals.wait(60); print(signals.take())")
    assert script.line() == "waits"
    script.process.send_signal(signal.SIGTERM)
    assert script.end()[:2] == (0, "[15]\n")


def test_a_thread_wakes_the_main_loop(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        threading.Timer(0.05, signals.wake).start()
        signals.wait(60)
        print("awake", signals.take())
        """,
    )
    assert script.end()[:2] == (0, "awake []\n")


def test_a_stop_can_be_seen_without_being_taken(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        before = signals.stop_asked()
        os.kill(os.getpid(), signal.SIGINT)
        print(before, signals.stop_asked(), signals.take(), signals.stop_asked())
        """,
    )
    assert script.end()[:2] == (0, "False True [2] False\n")


def test_a_stop_ends_an_import_that_never_returns(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        with signals.ending_at_once():
            print("imports", flush=True)
            time.sleep(600)
        """,
    )
    assert script.line() == "imports"
    script.process.send_signal(signal.SIGTERM)
    assert script.end() == (0, "", "")


def test_a_stop_ends_an_import_that_waits_where_no_signal_reaches_it(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        import ctypes
        never = ctypes.create_string_buffer(64)
        ctypes.CDLL(None).sem_init(never, 0, 0)
        with signals.ending_at_once():
            print("imports", flush=True)
            ctypes.CDLL(None).sem_wait(never)  # the kernel restarts it after a signal
        """,
    )
    assert script.line() == "imports"
    script.process.send_signal(signal.SIGTERM)
    assert script.end() == (0, "", "")


def test_other_signals_during_an_import_wait_for_its_end(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        with signals.ending_at_once():
            os.kill(os.getpid(), signal.SIGHUP)
        print(signals.take() == [signal.SIGHUP], threading.active_count())
        os.kill(os.getpid(), signal.SIGTERM)
        signals.wait(5)
        print(signals.take() == [signal.SIGTERM])
        """,
    )
    assert script.end() == (0, "True 1\nTrue\n", "")


def test_a_crash_shows_where_every_thread_was(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        def somewhere():
            there.set()
            threading.Event().wait()
        there = threading.Event()
        threading.Thread(target=somewhere, daemon=True).start()
        there.wait()
        os.abort()
        """,
    )
    status, _, err = script.end()
    assert status == -signal.SIGABRT and "somewhere" in err


def test_programs_that_handlers_start_find_no_signal_ignored(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        import subprocess
        out = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
        libc_own = 1 << 31 | 1 << 32  # signals 32 and 33: GNU make hands them on ignored, and no program can reset them
        masks = [line.split()[1] for line in out.splitlines() if line.startswith(("SigIgn", "SigBlk"))]
        print([int(mask, 16) & ~libc_own for mask in masks])
        """,
    )
    assert script.end()[:2] == (0, "[0, 0]\n")


def test_no_signal_changes_the_exit_status_once_the_end_has_begun(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        signals.ignore()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            os.kill(os.getpid(), number)
        sys.exit(7)
        """,
    )
    assert script.end() == (7, "", "")


def test_thousands_of_signals_while_nobody_looks_lose_no_stop(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        for _ in range(70_000):
            os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGTERM)
        print(signal.SIGTERM in signals.take())
        """,
    )
    assert script.end() == (0, "True\n", "")


def test_a_forked_child_can_be_ended_as_any_program_and_wakes_nobody(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        ended = []
        def fork():
            for _ in range(20):
                if (pid := os.fork()) == 0:
                    time.sleep(60)
                    os._exit(0)
                os.kill(pid, signal.SIGTERM)
                ended.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join(20)
        print(set(ended))
        os.kill(os.getpid(), signal.SIGTERM)
        print(signals.take() == [signal.SIGTERM])
        """,
    )
    assert script.end()[:2] == (0, "{-15}\nTrue\n")


def test_neither_whoever_starts_us_nor_a_module_can_block_our_stop_or_hide_our_children(scripts: list[Script]) -> None:
    script = run(
        scripts,
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signals.install()
        os.kill(os.getpid(), signal.SIGTERM)
        print(signals.take() == [signal.SIGTERM])
        pid = os.posix_spawnp("sh", ["sh", "-c", "exit 3"], os.environ)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    )
    assert script.end() == (0, "True\n3\n", "")
