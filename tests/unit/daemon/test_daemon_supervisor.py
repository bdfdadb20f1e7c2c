"""The main loop: what it does on each signal, what it tells systemd, how it ends."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Iterator
from typing import cast

import pytest

from qd.clock import monotonic
from qd.config.model import Config, QueueConfig, ShutdownConfig
from qd.daemon.engines import Engines, Setup
from qd.daemon.reload import Reloads
from qd.daemon.signals import Signals
from qd.daemon.supervisor import Supervisor
from qd.daemon.watchdog import Proof, Watchdog
from qd.events import DaemonFailed, DaemonStopping
from qd.metrics.depths import DepthSnapshot
from qd.pulse import Pulse
from qd.store.protocol import QueueDepth
from tests.support.waiting import wait_for
from tests.unit.daemon.fakes import FakeEngine, Heard, Made, Told, setup_of


class FakeSignals:
    """A queue of signals that the test sends by hand."""

    def __init__(self) -> None:
        self._queued, self._woken = deque[int](), threading.Event()

    def send(self, *numbers: int) -> None:
        self._queued.extend(numbers)
        self.wake()

    def wake(self) -> None:
        self._woken.set()

    def wait(self, timeout: float) -> None:
        self._woken.wait(timeout)
        self._woken.clear()

    def take(self) -> list[int]:
        return [self._queued.popleft() for _ in range(len(self._queued))]


class Bench:
    """A supervisor with fake engines, in a thread of its own."""

    def __init__(self, grace: float) -> None:
        self.signals, self.told, self.heard, self.made = FakeSignals(), Told(), Heard(), Made()
        self.shown = list[int]()
        self.config = Config(shutdown=ShutdownConfig(grace=grace))
        engines = Engines(self.heard.events, self.made)
        setup = setup_of(self.config)
        engines.start(setup)
        self.pulse = Pulse("main loop", 0.0)
        self.reloads = Reloads(
            setup, lambda old, say: setup_of(self.config), lambda old, new: engines.start(new),
            self.told.notifier(), self.heard.events, self.signals.wake, self.told.ready,
        )  # fmt: skip
        watchdog = Watchdog(self.told.notifier(), Proof(list), self.heard.events, 0.0, lambda: None)
        self.supervisor = Supervisor(
            cast(Signals, self.signals), self.told.notifier(), engines, self.reloads, watchdog, self.pulse,
            self.heard.events, lambda: self.shown.append(1),
        )  # fmt: skip
        self.thread = threading.Thread(target=self.supervisor.run, daemon=True)
        self.thread.start()

    def engine(self) -> FakeEngine:
        """The one that was made last."""
        return self.made[-1]

    def ended(self) -> bool:
        return not self.thread.is_alive()

    def end(self) -> None:
        """Waits for the loop's end."""
        wait_for(self.ended, 5, "the end of the main loop")


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(grace=3600.0)
    yield bench
    for engine in bench.made:
        engine.jobs, engine.hangs = 0, False
    bench.signals.send(signal.SIGTERM)
    bench.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_is_told_once_waits_for_jobs_and_ends(bench: Bench, number: signal.Signals) -> None:
    bench.engine().jobs = 1
    bench.signals.send(number)
    wait_for(lambda: bench.heard.names() == ["daemon.stopping"], 5, "the event")
    assert bench.heard[0] == DaemonStopping(reason=number.name, grace=3600.0, running=1)
    assert not bench.ended()
    bench.engine().jobs = 0
    bench.end()
    assert bench.heard.names() == ["daemon.stopping", "daemon.stopped"]
    assert [line for line in bench.told if line.startswith("STOPPING")] == ["STOPPING stopping, 1 job running"]


def test_a_second_stop_hurries_and_neither_is_told_twice(bench: Bench) -> None:
    bench.engine().jobs = 1
    bench.signals.send(signal.SIGTERM, signal.SIGTERM, signal.SIGINT)
    bench.end()
    assert "hurry" in bench.engine().did
    assert bench.heard.names() == ["daemon.stopping", "daemon.stopped"]


def test_a_reload_starts_a_new_engine_and_the_old_ones_jobs_end_in_peace(bench: Bench) -> None:
    bench.engine().jobs = 1
    bench.config = Config(queues={"default": QueueConfig(max_attempts=9)})
    bench.signals.send(signal.SIGHUP)
    wait_for(lambda: len(bench.made) == 2, 5, "the new engine")
    wait_for(lambda: bench.told.count_ready() == 1, 5, "READY")
    assert bench.made[0].did == ["start", "retire"]
    assert not [line for line in bench.told if line.startswith("STOPPING")]


def test_a_stop_takes_the_engines_that_a_reload_retired_too(bench: Bench) -> None:
    bench.engine().jobs = 1
    bench.config = Config(queues={"default": QueueConfig(max_attempts=9)})
    bench.signals.send(signal.SIGHUP)
    wait_for(lambda: bench.told.count_ready() == 1, 5, "READY")
    bench.signals.send(signal.SIGTERM)
    wait_for(lambda: "stop" in bench.made[0].did and "stopped" in bench.made[1].did, 5, "both stops")
    assert not bench.ended()
    bench.made[0].jobs = 0
    bench.end()


def test_a_reload_asked_for_during_a_stop_is_not_begun(bench: Bench) -> None:
    bench.engine().jobs = 1
    bench.signals.send(signal.SIGTERM, signal.SIGHUP)
    wait_for(lambda: bench.heard.names() == ["daemon.stopping"], 5, "the stop")
    bench.engine().jobs = 0
    bench.end()
    assert "RELOADING" not in bench.told


def test_a_change_of_readiness_is_told_at_the_next_turn(bench: Bench) -> None:
    wait_for(lambda: bench.told == ["STATUS ready, 0 jobs running"], 5, "the first status")
    bench.engine().reason = "waiting for database"
    wait_for(lambda: bench.told[-1] == "STATUS waiting for database", 5, "the change")
    bench.engine().jobs, bench.engine().reason = 2, None
    wait_for(lambda: bench.told[-1] == "STATUS ready, 2 jobs running", 5, "the change back")


def test_the_status_has_what_the_last_count_of_the_rows_found(bench: Bench) -> None:
    rows = (QueueDepth("default", ready=1200, stale=2, delayed=7), QueueDepth("_other", ready=34, failed=1))
    bench.engine().counted = DepthSnapshot(rows, interval=60.0, stamp=1.0)
    assert bench.supervisor.status(None) == "ready, 0 jobs running, 1,234 waiting, 2 stale, 1 dead letter"
    bench.engine().counted = DepthSnapshot(rows, interval=60.0, stamp=1.0, taken=monotonic() - 301.0)
    assert bench.supervisor.status(None) == "ready, 0 jobs running"


def test_a_refused_reload_is_said_with_its_reason_until_one_is_taken_on(bench: Bench) -> None:
    bench.reloads.refused = "qd.yaml:3: odd: is not a key"
    kept = "ready, 0 jobs running; the last reload was refused: qd.yaml:3: odd: is not a key"
    assert bench.supervisor.status(None) == kept
    word = "reload refused: qd.yaml:3: odd: is not a key"
    assert bench.supervisor.status(None, word) == f"ready, 0 jobs running; {word}"
    wait_for(lambda: bench.told[-1] == f"STATUS {kept}", 10, "the status that stays")
    bench.signals.send(signal.SIGHUP)
    wait_for(lambda: "READY configuration reloaded" in bench.told, 5, "a reload that is taken on")
    assert bench.supervisor.status(None) == "ready, 0 jobs running"


def test_however_long_a_reason_is_the_numbers_are_before_it(bench: Bench) -> None:
    bench.engine().jobs = 3
    bench.reloads.refused = "x" * 500
    assert bench.supervisor.status(None).startswith("ready, 3 jobs running; ")
    assert ", 3 jobs running; the last" in bench.supervisor.status("waiting for database: " + "y" * 500)[:200]


def test_a_schema_that_was_changed_under_it_ends_the_daemon(bench: Bench) -> None:
    bench.engine().wrong = "the schema is of version 9"
    bench.end()
    assert bench.supervisor.wrong == "the schema is of version 9"
    assert bench.heard[0] == DaemonFailed(where="schema", error="the schema is of version 9")
    assert bench.heard.names() == ["daemon.failed", "daemon.stopping", "daemon.stopped"]


def test_the_main_loop_gives_a_sign_of_life_each_turn(bench: Bench) -> None:
    wait_for(lambda: bench.pulse.overdue() == 0.0, 5, "the first turn")
    bench.pulse.beat(-1.0)
    wait_for(lambda: bench.pulse.overdue() == 0.0, 5, "the next turn")


def test_signals_that_mean_nothing_change_nothing(bench: Bench) -> None:
    bench.signals.send(*[signal.SIGUSR1, signal.SIGUSR2] * 50)
    wait_for(lambda: bench.told == ["STATUS ready, 0 jobs running"], 5, "a turn")
    assert not bench.heard and not bench.ended()


def test_sigquit_shows_the_stacks_and_the_loop_goes_on(bench: Bench) -> None:
    bench.signals.send(signal.SIGQUIT, signal.SIGQUIT)
    wait_for(lambda: len(bench.shown) == 2, 5, "the stacks")
    assert not bench.heard and not bench.ended()


def test_the_setup_in_force_decides_the_grace(bench: Bench) -> None:
    bench.config = Config(shutdown=ShutdownConfig(grace=0.1))
    bench.signals.send(signal.SIGHUP)
    wait_for(lambda: bench.told.count_ready() == 1, 5, "READY")
    current: Setup = bench.reloads.setup
    assert current.config.shutdown.grace == 0.1
    bench.engine().jobs = 1
    bench.signals.send(signal.SIGTERM)
    bench.end()
