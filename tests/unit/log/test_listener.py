"""Which events become lines."""

from __future__ import annotations

import inspect
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from qd import events
from qd.config.model import LogConfig
from qd.events import Event, Events, JobFailed, JobReleased, JobsClaimed, JobStarted, JobSucceeded, Problem, TypeUnknown
from qd.log import LogListener
from qd.log.listener import MOST_TYPES

STARTED = JobStarted(7, "mails", "send_email", 1, 0.5)
QUICK = JobSucceeded(7, "mails", "send_email", 1, 0.2, result="sent")
SLOW = JobSucceeded(7, "mails", "send_email", 1, 1.2)
FAILED = JobFailed(7, "mails", "send_email", 1, 0.2, error="ValueError: x", retry_in=10.0)


class Log:
    """A log in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def listener(self, **config: Any) -> LogListener:
        return LogListener(LogConfig(format="json", **config), self.fd)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def names(self) -> list[str]:
        return [line["event"] for line in self.lines()]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path / "log")
    yield log
    os.close(log.fd)


def test_an_event_is_a_line_with_its_name_its_level_and_its_fields(log: Log) -> None:
    Events(log.listener()).publish(FAILED)
    line = log.lines()[0]
    del line["time"]
    assert line == {
        "level": "warning",
        "event": "job.failed",
        "job_id": 7,
        "queue": "mails",
        "type": "send_email",
        "attempt": 1,
        "seconds": 0.2,
        "error": "ValueError: x",
        "retry_in": 10.0,
    }


@pytest.mark.parametrize(
    ("jobs", "names"),
    [
        ("failures", ["job.failed"]),
        ("slow", ["job.succeeded", "job.failed"]),
        ("all", ["job.started", "job.succeeded", "job.succeeded", "job.failed"]),
    ],
)
def test_log_jobs_says_which_jobs_are_written(log: Log, jobs: str, names: list[str]) -> None:
    listener = log.listener(jobs=jobs)
    for event in (STARTED, QUICK, SLOW, FAILED):
        listener(event)
    assert log.names() == names


def test_a_job_that_is_given_back_is_a_line_if_it_had_begun(log: Log) -> None:
    for jobs in ("failures", "all"):
        listener = log.listener(jobs=jobs)
        listener(JobReleased(7, "mails", "send_email", 1, 0.0, reason="no handler here"))
        listener(JobReleased(8, "mails", "send_email", 1, 5.0, reason="interrupted by a stop", ran=True))
    assert [line["job_id"] for line in log.lines()] == [8, 7, 8]


def test_the_level_says_what_is_too_little_to_be_written(log: Log) -> None:
    listener = log.listener(jobs="all", level="warning")
    listener(QUICK)
    listener(FAILED)
    listener.apply(LogConfig(format="json", level="error"))
    listener(FAILED)
    assert log.names() == ["job.failed"]


def test_what_only_the_metrics_want_is_not_written(log: Log) -> None:
    log.listener(level="debug")(JobsClaimed("mails", 3, 0.1))
    assert log.lines() == []


def example(kind: type[Event]) -> Event:
    """An event with some value in each field."""
    values = {"int": 1, "float": 0.5, "str": "text", "bool": True}
    return kind(**{field.name: values.get(str(field.type).split(" ")[0], "text") for field in fields(kind)})


def test_each_event_that_there_is_can_be_written_without_losing_a_field(log: Log) -> None:
    kinds = [kind for _, kind in inspect.getmembers(events, inspect.isclass) if issubclass(kind, Event) and kind.NAME]
    listener = log.listener(jobs="all", level="debug")
    for kind in kinds:
        listener(example(kind))
    for kind, line in zip(kinds, log.lines(), strict=True):
        assert set(line) == {"time", "level", "event", *(field.name for field in fields(kind))}


def test_an_unknown_type_is_named_once_a_minute_per_queue(log: Log) -> None:
    listener = log.listener()
    for number in range(100):
        listener(TypeUnknown(number, "mails", "no_such", "handlers here: none"))
        listener(TypeUnknown(number, "other", "no_such", "handlers here: none"))
    assert [line["queue"] for line in log.lines()] == ["mails", "other"]


def test_a_flood_of_unknown_types_is_bounded_in_lines_and_memory(log: Log) -> None:
    listener = log.listener()
    for number in range(MOST_TYPES + 500):
        listener(TypeUnknown(number, "mails", f"type-{number}", "handlers here: none"))
    assert len(log.lines()) == MOST_TYPES


def test_lines_of_many_threads_stay_whole() -> None:
    reading, writing = os.pipe()
    listener = LogListener(LogConfig(format="json"), writing)
    received = bytearray()

    def read() -> None:
        while chunk := os.read(reading, 65536):
            received.extend(chunk)

    def write(name: str) -> None:
        for number in range(300):
            listener(Problem(name, f"{number}" + name * 3000))

    threads = [threading.Thread(target=write, args=[name]) for name in "abcd"]
    reader = threading.Thread(target=read)
    reader.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listener.sink.close()
    os.close(writing)
    reader.join()
    os.close(reading)
    lines = [json.loads(line) for line in received.decode().splitlines()]
    assert len(lines) == 1200 and {line["where"] for line in lines} == set("abcd")
