"""What a child does: loads the handlers, runs one job after the other, ends when its daemon does.

The main thread runs handlers, so that signals reach them; `listening` has the other one.
May import: listening, orphan, wire, loading, log, payload, registry, errors, failure, outcome, and of the store
what `job.complete` needs; version. Owns: the child's signals, descriptors and log.
"""

from __future__ import annotations

import faulthandler
import logging
import signal
import socket
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from qd.errors import BadInput
from qd.executors.listening import Line, Listener, Task
from qd.executors.orphan import bind_to, keep_to_ourselves, offer_to_oom_killer
from qd.executors.wire import LAST_WORDS, PROTOCOL, SOCKET, Message, packed
from qd.failure import describe
from qd.job import Job
from qd.loading import import_module, load_public
from qd.log import setup_logging
from qd.outcome import Outcome, OutcomeKind, Reason
from qd.payload import decode
from qd.registry import REGISTRY
from qd.store.callers.complete import complete
from qd.version import __version__

_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


@dataclass(frozen=True, slots=True)
class Settings:
    """The log as the daemon's is."""

    level: str
    format: str
    jobs: str = "failures"


def main() -> int:
    """Serves the daemon at the other end of the socket; the exit status."""
    keep_to_ourselves()
    faulthandler.enable(file=LAST_WORDS)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    take_signals()
    line = Line(socket.socket(fileno=SOCKET))
    start = line.first()
    if start is None:
        return 0
    if (problem := misfit(start)) is not None:
        line.say("refused", problem=problem)
        return 1
    bind_to(start["daemon"])
    offer_to_oom_killer()
    try:
        return Inside(line, start["database"]).serve(start)
    except OSError:  # the daemon is gone, or a handler has closed what isn't its own
        return 1


def misfit(start: Message) -> str | None:
    """Why a daemon of another version must not give its jobs to this code; None: it may."""
    if start.get("protocol") == PROTOCOL:
        return None
    return (
        f"the program on the disk is qd {__version__} by now, whose child processes don't fit to this daemon's "
        f"{start.get('version', 'older version')}: restart the daemon"
    )


def take_signals() -> None:
    """SIGTERM is the daemon's word to the whole group: it wakes a handler, the reason comes by the line.

    One without a reason (systemd's, to all of a service) means nothing here.
    """
    signal.signal(signal.SIGTERM, _woken)


def idle_timers() -> list[int]:
    """The interval timers that don't run; one that a module runs, for a profile say, is its own affair."""
    return [timer for timer in _TIMERS if signal.getitimer(timer)[0] == 0]


def stop_timers(timers: list[int]) -> None:
    """An alarm that a handler has set and not taken back would hit the job after its own."""
    for timer in timers:
        signal.setitimer(timer, 0)


def _woken(number: int, frame: FrameType | None) -> None:
    for _ in range(3):  # what the listener has thrown in hits here, in the middle of a system call
        pass


class Inside:
    """One child's work.

    Args:
        database: where qd's tables are, for `job.complete`.
    """

    def __init__(self, line: Line, database: str | None) -> None:
        self._line, self._database = line, database
        self._listener = Listener(line, self._finish)
        self._log: tuple[str, str] | None = None

    def serve(self, start: Message) -> int:
        """Loads, says so, and runs what comes until the line is closed."""
        self._set_log(start["log"])
        sys.path[:] = start["path"]
        for module in start["modules"]:
            if (problem := import_module(module, REGISTRY)) is not None:
                self._line.say("refused", problem=problem)
                return 1
        load_public("Client")  # it takes 17 MB, in each child
        if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(line_buffering=True)  # what is printed is there though the job be killed
        self._listener.start()
        self._line.say("ready", types=list(REGISTRY.names()))
        while (task := self._listener.next()) is not None:
            self._run(task)
        return 0

    def _run(self, task: Task) -> None:
        take_signals()  # a handler may have taken them
        self._set_log(task.log)
        idle = idle_timers()
        outcome = self._outcome(task)
        stop_timers(idle)
        self._listener.over()  # before the answer, after which the next job may come
        self._line.say("ended", token=task.job.token, completed=task.job.completed, **packed(outcome))

    def _outcome(self, task: Task) -> Outcome:
        try:
            task.job.payload = decode(task.payload)
            return task.run.run()
        except BadInput as error:
            return Outcome(OutcomeKind.REJECTED, Reason.PAYLOAD, error=str(error))
        except BaseException as error:  # a fault in here, or no memory left: told all the same
            text, traceback = describe(error)
            return Outcome(OutcomeKind.FAILED, error=text, traceback=traceback, entered=task.run.entered)

    def _finish(self, cursor: Any, job: Job) -> bool:
        """The daemon knows of it before the row can be gone, or it would take the lease for lost."""
        self._listener.announce_completion(job.token)
        return complete(cursor, job.id, job.token, database=self._database)

    def _set_log(self, wanted: list[str] | None) -> None:
        if wanted is None or self._log == tuple(wanted):
            return
        level, format_ = wanted
        if self._log is None or self._log[1] != format_:
            setup_logging(Settings(level, format_))
        logging.getLogger().setLevel(level.upper())
        self._log = (level, format_)
