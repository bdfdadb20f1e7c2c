"""What is waited for may have any number that the process's limit allows."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from qd.bell import Bell
from qd.config.model import PollConfig
from qd.daemon.signals import Signals
from qd.poller import Poller
from qd.readiness import readable
from qd.waking import WakeSocket, wake
from tests.unit.engine.fakes import FakeStore

QD = Path(__file__).resolve().parents[2] / "qd"
BEYOND_SELECT = 1500
"""Over the 1,024 descriptors that a fd_set holds."""


@pytest.fixture
def high_numbers() -> Iterator[None]:
    """Each new descriptor gets a number beyond what select takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * BEYOND_SELECT:
        pytest.skip(f"no more than {hard} descriptors may be open here (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * BEYOND_SELECT), hard))
    held = [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] < BEYOND_SELECT:
        held.append(os.open(os.devnull, os.O_RDONLY))
    yield
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def pipes(high_numbers: None) -> Iterator[Callable[[], tuple[int, int]]]:
    """Makes pipes, and closes them at the end."""
    made: list[int] = []

    def make() -> tuple[int, int]:
        made.extend(ends := os.pipe())
        return ends

    yield make
    for end in made:
        with suppress(OSError):
            os.close(end)


def test_what_can_be_read_is_told_whatever_its_number(pipes: Callable[[], tuple[int, int]]) -> None:
    (reader, writer), (quiet, _) = pipes(), pipes()
    assert reader >= BEYOND_SELECT
    assert readable(reader, quiet, within=0) == set()
    os.write(writer, b".")
    assert readable(reader, quiet, within=60) == {reader}


def test_an_end_whose_other_has_gone_is_told_too(pipes: Callable[[], tuple[int, int]]) -> None:
    reader, writer = pipes()
    os.close(writer)
    assert readable(reader) == {reader}


def test_a_closed_descriptor_is_an_error_and_no_endless_readiness(pipes: Callable[[], tuple[int, int]]) -> None:
    reader, _ = pipes()
    os.close(reader)
    with pytest.raises(ValueError, match="closed"):
        readable(reader, within=60)


def test_the_main_loop_waits_for_signals_at_any_number(high_numbers: None) -> None:
    signals = Signals()
    signals.wake()
    signals.wait(60)
    with signals.ending_at_once():
        pass


def test_wakes_are_heard_at_any_number(high_numbers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QD_RUNTIME_DIR", str(tmp_path))
    ear, store = WakeSocket(), FakeStore()
    poller = Poller(cast(Any, store), ["mails"], Bell(), PollConfig(), lambda queues: None, ear)
    try:
        assert ear.fileno() > BEYOND_SELECT
        wake("mails")
        assert poller.wait(60)
    finally:
        poller.close()


def test_nothing_in_qd_waits_by_a_call_that_takes_low_numbers_only() -> None:
    uses = [str(path) for path in QD.rglob("*.py") if re.search(r"\bselect\.select\(", path.read_text())]
    assert uses == []
