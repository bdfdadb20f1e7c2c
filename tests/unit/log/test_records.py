"""What the standard library's logging records stands in the same log."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qd.config.model import LogConfig
from qd.events import Problem
from qd.log import LogListener, setup_logging
from qd.log.records import RecordHandler
from tests.unit.executors.jobs import attempt

Read = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[LogListener, Read]]:
    """A log in a file; the process's own logging is put back afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, threading.excepthook, sys.unraisablehook
    path = tmp_path / "log"
    fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    listener = setup_logging(LogConfig(format="json"), fd)
    yield listener, lambda: [json.loads(line) for line in path.read_text().splitlines()]
    logging.captureWarnings(False)
    root.handlers[:], root.level, threading.excepthook, sys.unraisablehook = before
    os.close(fd)


def test_a_record_is_a_line_with_logger_and_message(log: tuple[LogListener, Read]) -> None:
    logging.getLogger("shop.jobs").warning("sent %d mails\nin all", 7)
    line = log[1]()[0]
    del line["time"]
    assert line == {
        "level": "warning",
        "event": "log.written",
        "logger": "shop.jobs",
        "message": "sent 7 mails\nin all",
    }


def test_events_and_records_stand_in_one_log(log: tuple[LogListener, Read]) -> None:
    log[0](Problem("here", "odd"))
    logging.getLogger().error("x")
    assert [line["event"] for line in log[1]()] == ["daemon.problem_seen", "log.written"]


def test_the_level_holds_for_records_too_also_after_a_change(log: tuple[LogListener, Read]) -> None:
    logger = logging.getLogger("shop.jobs")
    logger.debug("not this")
    log[0].apply(LogConfig(format="json", level="debug"))
    logger.debug("but this")
    log[0].apply(LogConfig(format="json", level="error"))
    logger.warning("not this either")
    assert [line["message"] for line in log[1]()] == ["but this"]


def test_a_record_within_a_handler_names_its_job(log: tuple[LogListener, Read]) -> None:
    def handler(job: object) -> None:
        logging.getLogger("shop.jobs").info("working")

    attempt(handler).run()
    logging.getLogger("shop.jobs").info("afterwards")
    assert [line.get("job_id") for line in log[1]()] == [7, None]


def test_an_exception_is_one_line_with_its_traceback(log: tuple[LogListener, Read]) -> None:
    try:
        raise ValueError("x")
    except ValueError:
        logging.getLogger("shop.jobs").exception("failed")
    line = log[1]()[0]
    assert line["level"] == "error" and "ValueError: x" in line["traceback"]


class Hostile:
    def __str__(self) -> str:
        raise ValueError("no")


def without_pytests_own() -> None:
    """Leaves the log's handler alone: pytest's raises at a record that can't be formatted."""
    root = logging.getLogger()
    root.handlers[:] = [handler for handler in root.handlers if isinstance(handler, RecordHandler)]


def test_a_record_that_can_not_be_formatted_is_written_as_far_as_it_goes(log: tuple[LogListener, Read]) -> None:
    without_pytests_own()
    logging.getLogger("shop.jobs").info("sent %d of %s", "seven")
    logging.getLogger("shop.jobs").info("sent %s", Hostile())
    messages = [line["message"] for line in log[1]()]
    assert messages[0] == "sent %d of %s [its arguments can't be formatted: TypeError]"
    assert messages[1] == "sent %s [its arguments can't be formatted: ValueError]"


def test_a_message_that_has_no_text_costs_a_line_and_nothing_else(log: tuple[LogListener, Read]) -> None:
    without_pytests_own()
    logging.getLogger("shop.jobs").info(Hostile())
    logging.getLogger("shop.jobs").info("the next")
    assert log[1]()[-1]["message"] == "the next"


def test_a_handler_with_a_time_out_in_mid_record_is_not_kept_from_it(log: tuple[LogListener, Read]) -> None:
    import qd

    class TimesOut:
        def __str__(self) -> str:
            raise qd.JobTimeout

    with pytest.raises(qd.JobTimeout):
        logging.getLogger("shop.jobs").info("%s", TimesOut())


def test_warnings_and_the_end_of_a_thread_are_lines(log: tuple[LogListener, Read]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("old ways", DeprecationWarning, stacklevel=1)
    threading.excepthook = sys.modules["qd.log.records"]._thread_ended
    thread = threading.Thread(target=lambda: 1 / 0, name="helper")
    thread.start()
    thread.join()
    lines = log[1]()
    assert "old ways" in lines[0]["message"] and lines[0]["logger"] == "py.warnings"
    assert lines[1]["message"] == "thread helper ended by an error"
    assert "ZeroDivisionError" in lines[1]["traceback"]


def test_an_error_in_a_destructor_is_a_line(log: tuple[LogListener, Read]) -> None:
    class Breaks:
        def __del__(self) -> None:
            raise ValueError("in __del__")

    sys.unraisablehook = sys.modules["qd.log.records"]._unraisable
    Breaks()
    assert "in __del__" in log[1]()[0]["traceback"]


def test_a_second_set_up_replaces_the_first(log: tuple[LogListener, Read]) -> None:
    setup_logging(LogConfig(), log[0].sink.fd)
    assert [type(handler) for handler in logging.getLogger().handlers] == [RecordHandler]
