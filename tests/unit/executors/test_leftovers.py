"""What a handler leaves behind in its thread or process doesn't reach the jobs after it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import qd
from qd.config.model import LogConfig
from qd.events import Problem
from qd.log import LogListener
from qd.outcome import OutcomeKind
from qd.payload import decode, encode
from qd.store.settle.history import appended, entries, entry
from tests.unit.executors.jobs import Running, attempt


async def waits(job: qd.Job) -> str:
    await asyncio.sleep(0)
    return "done"


def test_signals_that_a_handler_blocks_are_free_again_for_the_next_ones_programs() -> None:
    masks: list[set[Any]] = []

    def both() -> None:
        attempt(lambda job: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGHUP])).run()
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    thread = threading.Thread(target=both)
    thread.start()
    thread.join(10)
    assert masks == [set()]


def test_a_loop_that_a_handler_was_torn_out_of_does_not_keep_the_next_coroutine_from_running() -> None:
    def torn(job: qd.Job) -> None:
        asyncio._set_running_loop(asyncio.new_event_loop())

    def both(job: qd.Job) -> str:
        attempt(torn).run()
        asyncio.get_running_loop().close()
        return str(attempt(waits).run().result)

    assert Running(attempt(both)).ended().result == "done"


class Awaitable:
    """What can be awaited and is no coroutine."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Compiled(Awaitable):
    """Has a coroutine's methods, as what a compiled `async def` returns."""

    def __init__(self) -> None:
        self._real = waits(None)  # type: ignore[arg-type]

    def __await__(self) -> Generator[Any, None, Any]:
        return self._real.__await__()

    def send(self, value: Any) -> Any:
        return self._real.send(value)

    def throw(self, *error: Any) -> Any:
        return self._real.throw(*error)

    def close(self) -> None:
        self._real.close()


def future(job: qd.Job) -> object:
    loop = asyncio.new_event_loop()
    loop.close()
    return loop.create_future()


@pytest.mark.parametrize("handler", [future, lambda job: Awaitable()])
def test_what_nobody_has_awaited_is_not_taken_for_done(handler: Any) -> None:
    outcome = attempt(handler).run()
    assert outcome.kind is OutcomeKind.FAILED and outcome.error is not None and "awaited" in outcome.error


def test_a_coroutine_of_another_kind_is_run() -> None:
    assert attempt(lambda job: Compiled()).run().result == "done"


def test_a_handler_that_raises_an_interruption_of_its_own_has_failed() -> None:
    def handler(job: qd.Job) -> None:
        raise qd.JobInterrupted("mine")

    assert attempt(handler).run().kind is OutcomeKind.FAILED


def test_a_file_that_takes_the_number_of_a_closed_log_gets_none_of_its_lines(tmp_path: Path) -> None:
    log = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY)
    listener = LogListener(LogConfig(format="json"), log)
    os.close(log)
    other = os.open(tmp_path / "other", os.O_CREAT | os.O_WRONLY)
    assert other == log
    listener(Problem("worker", "odd"))
    os.close(other)
    assert (tmp_path / "other").read_text() == "" and "odd" in (tmp_path / "log").read_text()
    listener.sink.close()


def test_the_log_goes_on_where_a_handler_replaces_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY)
    listener = LogListener(LogConfig(format="json"), log)
    for name in ("time", "gmtime", "strftime"):
        monkeypatch.setattr(f"time.{name}", None)
    listener(Problem("worker", "odd"))
    assert "odd" in (tmp_path / "log").read_text()
    listener.sink.close()
    os.close(log)


def test_jobs_are_read_and_settled_where_a_handler_replaces_json(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dumps", "loads"):
        monkeypatch.setattr(f"json.{name}", None)
    assert decode(encode({"a": [1]})) == {"a": [1]}
    assert entries(appended("[]", entry(1, None, None, "token", "failed", "odd")))[0]["error"] == "odd"
