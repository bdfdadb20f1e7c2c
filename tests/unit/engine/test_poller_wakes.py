"""Which wakes begin a look, and how soon."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from qd.bell import Bell
from qd.clock import monotonic
from qd.config.model import PollConfig
from qd.maintenance.service import ServiceThread
from qd.poller import Poller
from qd.waking import WakeSocket, directories, wake
from tests.support.waiting import wait_for
from tests.unit.engine.fakes import FakeStore, listening

SLOWEST = 60.0


class Waked:
    """A poller with a wake socket, and the store that it looks into."""

    def __init__(self, least: float) -> None:
        self.store = FakeStore()
        config = PollConfig(min=least, max=SLOWEST)
        self.poller = Poller(cast(Any, self.store), ["mails"], Bell(), config, lambda queues: None, WakeSocket())

    def heard(self, within: float) -> bool:
        """Waits as the poller's thread does, in pieces."""
        end = monotonic() + within
        while (left := end - monotonic()) > 0:
            if self.poller.wait(min(left, 0.25)):
                return True
        return False


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QD_RUNTIME_DIR", str(tmp_path / "run"))


@pytest.fixture
def quick(folder: None) -> Iterator[Waked]:
    made = Waked(0.01)
    yield made
    made.poller.close()


@pytest.fixture
def slow(folder: None) -> Iterator[Waked]:
    made = Waked(1.0)
    yield made
    made.poller.close()


def test_wakes_for_queues_that_are_served_elsewhere_begin_no_look(quick: Waked) -> None:
    quick.poller.run_once()
    for _ in range(100):
        wake("reports", "exports")
        assert not quick.poller.wait(0.01)
    wake("reports", "mails")
    assert quick.heard(SLOWEST)


def test_datagrams_that_name_nothing_begin_no_look(quick: Waked) -> None:
    quick.poller.run_once()
    (path,) = directories()[0].iterdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"", str(path))
        stranger.sendto(b"\xff", str(path))
    assert not quick.poller.wait(0.05)


def test_the_least_pause_since_the_last_look_is_kept_and_the_wake_not_forgotten(slow: Waked) -> None:
    slow.poller.run_once()
    looked = monotonic()
    wake("mails")
    assert not slow.poller.wait(0.25)
    assert slow.heard(SLOWEST)
    assert monotonic() - looked >= 0.99
    slow.poller.run_once()
    assert not slow.poller.wait(0.05)


def test_a_lone_wake_after_a_rest_begins_a_look_at_once(slow: Waked) -> None:
    slow.poller.run_once()
    assert not slow.heard(1.1)
    wake("mails")
    assert slow.poller.wait(0.5)


def test_looks_are_quick_after_a_wake(quick: Waked) -> None:
    for _ in range(5):
        quick.poller.run_once()
    assert quick.poller.run_once() > 0.01
    wake("mails")
    assert quick.heard(SLOWEST)
    assert quick.poller.run_once() == 0.01


def test_many_wakes_at_once_are_one_look(slow: Waked) -> None:
    thread = ServiceThread(slow.poller, listening()[0], patience=5.0)
    thread.start()
    wait_for(lambda: slow.store.looks, 5, "the first look")
    for _ in range(50):
        wake("mails")
    wait_for(lambda: len(slow.store.looks) == 2, 10, "the look that was asked for")
    thread.stop()
    assert thread.join(5) and len(slow.store.looks) == 2
