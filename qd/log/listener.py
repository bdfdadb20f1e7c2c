"""Writes events as log lines: which of them, how often, never what they cost.

May import: lines, sink, events, clock.
"""

from __future__ import annotations

from dataclasses import fields
from time import time  # our own name: a handler may replace the module's
from typing import Protocol

from qd.clock import monotonic
from qd.events import Event, JobReleased, JobStarted, JobSucceeded, TypeUnknown
from qd.log.lines import Pairs, choose, formatter
from qd.log.sink import Sink

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}

SLOW = 1.0
"""Seconds from which on a success is slow (`log.jobs: slow`)."""

REPEAT_AFTER = 60.0
"""Seconds between two lines on the same unknown type."""

MOST_TYPES = 1000
"""Unknown types that are named within REPEAT_AFTER; a flood of others is not."""


class LogSettings(Protocol):
    """What `log:` of the configuration says; a child process gets it without the model."""

    @property
    def level(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def jobs(self) -> str: ...


class LogListener:
    """An `Events` listener that writes one line per event. Never raises.

    Args:
        fd: where the lines go.

    Attributes:
        format, level: what holds now; never `auto`.
    """

    def __init__(self, config: LogSettings, fd: int = 2) -> None:
        self.sink = Sink(fd)
        self._names: dict[type[Event], tuple[str, ...]] = {}
        self._unknown: dict[tuple[str, str], float] = {}
        self.apply(config)

    def apply(self, config: LogSettings) -> None:
        """Takes a new configuration, from the next line on."""
        self.format, self.level = choose(config.format, self.sink.fd), config.level
        self._line = formatter(self.format)
        self._threshold, self._jobs = LEVELS[config.level], config.jobs

    def __call__(self, event: Event) -> None:
        """Logs an event, if it is one to be logged."""
        name = event.NAME
        if name is None or LEVELS[event.LEVEL] < self._threshold or not self._is_wanted(event):
            return
        names = self._names.get(type(event))
        if names is None:
            names = self._names[type(event)] = tuple(field.name for field in fields(event))
        self.write(event.LEVEL, name, [(each, getattr(event, each)) for each in names])

    def write(self, level: str, event: str, pairs: Pairs) -> None:
        """Writes one line whatever the level."""
        try:
            line = self._line(time(), level, [("event", event), *pairs])
        except Exception as error:  # a value that defies all care: the line says so and goes out
            line = self._line(time(), level, [("event", event), ("unloggable", type(error).__name__)])
        self.sink.write(line)

    def _is_wanted(self, event: Event) -> bool:
        if isinstance(event, JobSucceeded):
            return self._jobs == "all" or (self._jobs == "slow" and event.seconds > SLOW)
        if isinstance(event, JobStarted):
            return self._jobs == "all"
        if isinstance(event, JobReleased):  # one that never ran comes back, by the hundred, at each stop or look
            return event.ran or self._jobs == "all"
        if isinstance(event, TypeUnknown):
            return self._is_news((event.queue, event.type), monotonic())
        return True

    def _is_news(self, key: tuple[str, str], now: float) -> bool:
        """Whether this unknown type wasn't named within the last minute; forgets the older ones."""
        said = self._unknown.get(key)
        if said is not None and now - said < REPEAT_AFTER:
            return False
        if len(self._unknown) >= MOST_TYPES:
            self._unknown = {each: at for each, at in self._unknown.copy().items() if now - at < REPEAT_AFTER}
            if len(self._unknown) >= MOST_TYPES and key not in self._unknown:
                return False
        self._unknown[key] = now
        return True
