"""Starts the children of one engine, and says once, not at each try, when they can't be started.

May import: child, environment, wire, clock, duration, events, failure, log, registry, version.
Owns: the record of that outage.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Sequence

from qd.clock import monotonic
from qd.duration import spell
from qd.events import ChildrenFailing, ChildrenRestored, Events, Problem
from qd.executors.child import Child
from qd.executors.environment import for_child
from qd.executors.wire import PROTOCOL
from qd.failure import cut
from qd.log import current
from qd.registry import Registry
from qd.version import __version__

START_WITHIN = 60.0
"""Seconds that a child may take to import the handlers."""

MOST_TOLD = 10
"""Reasons that are told of in one outage: they may be others at each try."""

_LIMITS = {
    errno.EMFILE: "ulimit -n, LimitNOFILE= of the unit",
    errno.ENFILE: "fs.file-max",
    errno.EAGAIN: "ulimit -u, TasksMax= of the unit",
}
"""What to raise where the system has no more to give."""

_TURN = 0.25  # seconds between looks whether the start is still wanted
_PROBLEM_LIMIT = 2000


class Children:
    """Starts children that know the same handlers.

    Args:
        modules: what they import.
        database: the name under which `job.complete` finds qd's tables, or None.
        needed: whether any handler runs in them at all.
    """

    def __init__(self, modules: Sequence[str], database: str | None, events: Events, *, needed: bool = True) -> None:
        self._modules, self._database, self._events, self.needed = list(modules), database, events, needed
        self.start_within = START_WITHIN
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._since = 0.0
        self._told: list[str] = []

    @property
    def problem(self) -> str | None:
        """Why the last one could not be started; None: it could."""
        return self._problem

    def start(self, label: str, turn: Callable[[], None], unwanted: Callable[[], bool] = lambda: False) -> Child | None:
        """Starts a child and waits until it knows its handlers.

        Args:
            label: stands in the process list.
            turn: called while it waits, so that the caller's pulse is kept.
            unwanted: ends the wait.

        Returns:
            None: it can't be started, which has been said, or isn't wanted any more.
        """
        try:
            child = Child(f"qd {label}", for_child())
        except (OSError, ValueError) as error:
            self.note(f"can't be started: {_why(error)}")
            return None
        ready = False
        try:
            problem = self._introduce(child, turn, unwanted)
            ready = problem is None
        finally:
            if not ready:
                child.kill()
        if problem is None:
            self._succeeded()
            return child
        if problem:
            self.note(problem)
        return None

    def _introduce(self, child: Child, turn: Callable[[], None], unwanted: Callable[[], bool]) -> str | None:
        """None: it is ready; else why not, empty where it isn't wanted."""
        child.say(
            "start", daemon=os.getpid(), modules=self._modules, path=[str(each) for each in sys.path],
            database=self._database, log=log_settings(), protocol=PROTOCOL, version=__version__,
        )  # fmt: skip
        until = monotonic() + self.start_within
        while monotonic() < until:
            turn()
            gone = child.gone()
            for message in child.heard():
                if message["say"] == "ready" and isinstance(message.get("types"), list):
                    child.types = frozenset(map(str, message["types"]))
                    return None
                return cut(str(message.get("problem", "says nothing that makes sense")), _PROBLEM_LIMIT)
            if gone or child.closed:
                child.kill()
                return f"{child.died()} while it imported the handlers"
            if unwanted():
                return ""
            child.wait(min(_TURN, until - monotonic()))
        return f"hasn't imported the handlers within {spell(self.start_within)}"

    def note(self, problem: str) -> None:
        """One could not be started, or ended by itself; said unless it is known."""
        with self._lock:
            if self._problem is None:
                self._since, self._told = monotonic(), []
            self._problem = problem
            told = problem in self._told or len(self._told) >= MOST_TOLD
            if not told:
                self._told.append(problem)
        if not told:
            self._events.publish(ChildrenFailing(problem))

    def tell_of(self, child: Child, label: str) -> None:
        """One has ended by itself between two jobs: no attempt's end, so that nobody else says so."""
        words = cut(child.last_words().strip(), _PROBLEM_LIMIT)
        error = f"{child.died()} between two jobs, by what one of them has left behind; another takes its place"
        self._events.publish(Problem(f"child of {label}", f"{error}\n{words}" if words else error))

    def _succeeded(self) -> None:
        with self._lock:
            known, self._problem = self._problem, None
        if known is not None:
            self._events.publish(ChildrenRestored(monotonic() - self._since))


def _why(error: OSError | ValueError) -> str:
    """Without the file that was the one too many: it is another each time."""
    number = getattr(error, "errno", None)
    return f"{os.strerror(number)} ({_LIMITS[number]})" if number in _LIMITS else str(error)


def log_settings() -> list[str] | None:
    """Level and format of the log as they are now, for a child."""
    log = current()
    return None if log is None else [log.level, log.format]


def modules_of(configured: Sequence[str], registry: Registry) -> list[str]:
    """What a child imports to know the functions of a registry: the configuration's modules, and those where
    functions were registered by a program that uses qd; its main module can't be among them."""
    own = {getattr(handler.function, "__module__", None) for handler in registry.handlers() if handler.function}
    more = {name for name in own if isinstance(name, str) and name in sys.modules and name != "__main__"}
    return [*configured, *sorted(more - set(configured))]
