"""A reload takes the new configuration whole or leaves the old one whole, and systemd is always answered."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from qd.clock import monotonic
from qd.config.model import Config, ConsoleConfig, HttpConfig, LogConfig, QueueConfig, ShutdownConfig
from qd.daemon import reload as reload_module
from qd.daemon.engines import Setup
from qd.daemon.reload import Reloads, Say, Withheld, differences, needs_engine
from qd.errors import ConfigError, SetupWrong
from qd.events import DatabaseLost, DatabaseRestored, ReloadApplied, ReloadRefused
from tests.support.waiting import wait_for
from tests.unit.daemon.fakes import Heard, Told, setup_of

OLD = setup_of(Config())
NEW = setup_of(Config(queues={"default": QueueConfig(max_attempts=7)}))


class Bench:
    """Reloads whose preparation is what the test says, with ears."""

    def __init__(self, prepare: Callable[[Setup, Say], Setup]) -> None:
        self.told, self.heard, self.applied = Told(), Heard(), list[tuple[Setup, Setup]]()
        self.refuses: Exception | None = None
        self.reloads = Reloads(
            OLD, prepare, self.apply, self.told.notifier(), self.heard.events, lambda: None, self.told.ready
        )

    def apply(self, old: Setup, new: Setup) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.applied.append((old, new))

    def turn_until_told(self, answers: int) -> None:
        """Turns as the main loop does until so many READY were sent."""

        def turned() -> bool:
            self.reloads.turn()
            return self.told.count_ready() >= answers

        wait_for(turned, 5, f"{answers} times READY")


def good(old: Setup, say: Say) -> Setup:
    return NEW


def test_a_good_configuration_is_taken_on_and_what_changed_is_said() -> None:
    bench = Bench(good)
    bench.reloads.ask()
    bench.turn_until_told(1)
    assert bench.told == ["RELOADING", "READY configuration reloaded"]
    assert bench.heard == [ReloadApplied(changed="queues")]
    assert bench.applied == [(OLD, NEW)] and bench.reloads.setup is NEW


def test_an_unchanged_configuration_is_a_success() -> None:
    bench = Bench(lambda old, say: setup_of(Config()))
    bench.reloads.ask()
    bench.turn_until_told(1)
    assert bench.heard == [ReloadApplied(changed="nothing")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConfigError(["qd.yaml:3: queues.x: wrong", "qd.yaml:9: poll: wrong"]),
         "qd.yaml:3: queues.x: wrong; qd.yaml:9: poll: wrong"),
        (SetupWrong("access denied for user qd", 1045), "access denied for user qd"),
        (ImportError("no module named\n 'shop'"), "ImportError: no module named 'shop'"),
        (SystemExit(3), "RuntimeError: exit 3"),
        (RuntimeError(), "RuntimeError"),
    ],
)  # fmt: skip
def test_whatever_is_wrong_with_the_new_one_leaves_the_old_one(error: BaseException, reason: str) -> None:
    def prepare(old: Setup, say: Say) -> Setup:
        raise error

    bench = Bench(prepare)
    bench.reloads.ask()
    bench.turn_until_told(1)
    assert bench.told == ["RELOADING", f"READY reload refused: {reason}"]
    assert bench.heard == [ReloadRefused(reason=reason)]
    assert not bench.applied and bench.reloads.setup is OLD


def test_a_new_one_that_can_not_be_put_in_place_leaves_the_old_one() -> None:
    bench = Bench(good)
    bench.refuses = OSError("the port is taken")
    bench.reloads.ask()
    bench.turn_until_told(1)
    assert bench.heard == [ReloadRefused(reason="OSError: the port is taken")] and bench.reloads.setup is OLD


def test_a_preparation_that_hangs_is_refused_in_time_and_by_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload_module, "BOUND", 0.2)
    let_go, calls = threading.Event(), list[int]()

    def prepare(old: Setup, say: Say) -> Setup:
        calls.append(1)
        say("asking the new database")
        let_go.wait(30)
        return NEW

    bench = Bench(prepare)
    began = monotonic()
    bench.reloads.ask()
    bench.turn_until_told(1)
    assert monotonic() - began < 1.5 and "still at: asking the new database" in bench.told[-1]
    bench.reloads.ask()
    bench.reloads.turn()
    assert bench.told.count_ready() == 2 and len(calls) == 1, "a second thread was started beside the one that hangs"
    assert bench.told[-1].endswith("what ran goes on. If that never ends, restart the daemon")
    let_go.set()
    wait_for(lambda: "qd reload" not in [thread.name for thread in threading.enumerate()], 5, "the thread's end")
    assert bench.reloads.setup is OLD, "what was refused was taken on later"
    bench.reloads.ask()
    bench.turn_until_told(3)
    assert bench.reloads.setup is NEW


def test_requests_that_come_meanwhile_become_one_that_reads_the_file_again() -> None:
    let_go, reads = threading.Event(), list[int]()

    def prepare(old: Setup, say: Say) -> Setup:
        reads.append(1)
        let_go.wait(10)
        return setup_of(Config(queues={"default": QueueConfig(max_attempts=len(reads))}))

    bench = Bench(prepare)
    bench.reloads.ask()
    bench.reloads.turn()
    for _ in range(50):
        bench.reloads.ask()
        bench.reloads.turn()
    let_go.set()
    bench.turn_until_told(2)
    bench.reloads.turn()
    assert len(reads) == 2 and bench.reloads.setup.config.queues["default"].max_attempts == 2
    assert [line.split()[0] for line in bench.told] == ["RELOADING", "READY", "RELOADING", "READY"]


def test_only_what_engines_are_built_from_needs_a_new_engine() -> None:
    steady = Config(
        log=LogConfig(level="debug"),
        shutdown=ShutdownConfig(grace=1.0),
        http=HttpConfig(listen="127.0.0.1:1"),
        console=ConsoleConfig(step=True),
    )
    assert differences(OLD.config, steady) == ["http", "console", "shutdown", "log"]
    assert not needs_engine(OLD, setup_of(steady))
    assert needs_engine(OLD, NEW)
    assert needs_engine(OLD, setup_of(Config(http=HttpConfig(refresh=9.0))))
    assert needs_engine(OLD, setup_of(Config(), database=object()))


def test_a_new_database_is_heard_only_once_it_is_ours() -> None:
    heard = Heard()
    events, lost, back = Withheld(heard.events), DatabaseLost("poller", "away"), DatabaseRestored("poller", 1.0)
    events.publish(lost)
    assert not heard
    events.release()
    events.publish(back)
    assert heard == [lost, back]
