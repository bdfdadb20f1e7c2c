"""What an event is, and who hands it on. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Event:
    """The root; never published itself."""

    NAME: ClassVar[str | None] = None
    LEVEL: ClassVar[Level] = "info"


Listener = Callable[[Event], None]


class Events:
    """Hands each event to each listener, in the publisher's thread.

    A listener that raises is a bug, but must not cost a job: what it raised goes to
    `on_fault`, and the others are still called.
    """

    def __init__(self, *listeners: Listener, on_fault: Callable[[BaseException], None] | None = None) -> None:
        self._listeners: list[tuple[Listener, tuple[type[Event], ...]]] = [(one, ()) for one in listeners]
        self._routes: dict[type[Event], tuple[Listener, ...]] = {}
        self._on_fault = on_fault

    def listen(self, listener: Listener, *kinds: type[Event]) -> None:
        """Adds a listener; it sees what is published from now on.

        Args:
            kinds: what it wants to hear of; without them all.
        """
        self._listeners = [*self._listeners, (listener, kinds)]
        self._routes = {}

    def publish(self, event: Event) -> None:
        """Tells all listeners of one event."""
        for listener in self._routes.get(type(event)) or self._route(type(event)):
            try:
                listener(event)
            except Exception as error:  # said to on_fault: see the class
                if self._on_fault is not None:
                    self._on_fault(error)

    def _route(self, kind: type[Event]) -> tuple[Listener, ...]:
        """Who hears events of this kind, found once: thousands a second go this way."""
        routes = self._routes  # before the look at the listeners: one that is added meanwhile gets new routes
        heard_by = tuple(one for one, kinds in self._listeners if not kinds or issubclass(kind, kinds))
        routes[kind] = heard_by
        return heard_by
