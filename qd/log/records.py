"""Takes in what the standard library's `logging` records, handlers' own among it, and stray tracebacks.

Owns the root logger's handlers and the interpreter's hooks for errors that nobody catches.
May import: listener, lines, current, failure.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

from qd.failure import cut, describe
from qd.log.current import JOB_ID
from qd.log.lines import VALUE_LIMIT
from qd.log.listener import LEVELS, LogListener, LogSettings

EVENT = "log.written"
"""The event of a line that comes from a record."""


_current: LogListener | None = None


def current() -> LogListener | None:
    """The process's log, if `setup_logging` has made one."""
    return _current


def setup_logging(config: LogSettings, fd: int = 2) -> LogListener:
    """Makes stderr the log: events through the returned listener, all records through the root logger.

    Warnings and errors that end a thread or a `__del__` become records too, so that no traceback of
    many lines stands between the log's. A second call replaces the first.
    """
    global _current
    listener = _current = _Setup(config, fd)
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(RecordHandler(listener))
    listener.apply(config)
    logging.captureWarnings(True)
    threading.excepthook = _thread_ended
    sys.unraisablehook = _unraisable
    return listener


class _Setup(LogListener):
    """The listener whose level is also the root logger's."""

    def apply(self, config: LogSettings) -> None:
        """See the root."""
        super().apply(config)
        logging.getLogger().setLevel(LEVELS[config.level])


class RecordHandler(logging.Handler):
    """Writes records as lines with `logger`, `message`, the running job's id and a traceback.

    Args:
        listener: whose format and descriptor it shares.
    """

    def __init__(self, listener: LogListener) -> None:
        super().__init__()
        self._listener = listener

    def createLock(self) -> None:
        """None: a line is one write, and a lock could be held at a fork or by what a signal interrupts."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> Any:
        """As the root's, without its lock."""
        kept: Any = self.filter(record)
        if kept:
            self.emit(kept if isinstance(kept, logging.LogRecord) else record)
        return kept

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record. Never raises, whatever the record holds."""
        try:
            pairs: list[tuple[str, object]] = [("logger", record.name), ("job_id", JOB_ID.get())]
            pairs += [("message", _message(record)), ("traceback", _traceback(record))]
            self._listener.write(_level(record.levelno), EVENT, pairs)
        except Exception:  # nobody could be told: this is the log
            self._listener.sink.dropped += 1


def _level(number: int) -> str:
    for name, least in (("error", 40), ("warning", 30), ("info", 20)):
        if number >= least:
            return name
    return "debug"


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # wrong arguments, or one whose __str__ raises: what was meant is still told
        return f"{cut(str(record.msg), VALUE_LIMIT // 2)} [its arguments can't be formatted: {type(error).__name__}]"


def _traceback(record: logging.LogRecord) -> str | None:
    error = record.exc_info[1] if record.exc_info else None
    return describe(error)[1] if error is not None else None


def _thread_ended(args: Any) -> None:
    if args.exc_type is not SystemExit:
        name = args.thread.name if args.thread is not None else "?"
        _record("thread %s ended by an error", name, args.exc_value)


def _unraisable(args: Any) -> None:
    _record("an error that could not be raised: %s", args.err_msg or "in a destructor or callback", args.exc_value)


def _record(message: str, detail: str, error: BaseException | None) -> None:
    info = (type(error), error, None) if error is not None else None
    logging.getLogger("qd.uncaught").error(message, detail, exc_info=info)
