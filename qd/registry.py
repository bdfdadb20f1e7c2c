"""The handlers by name: what a job's type means here. May import: job, errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from qd.errors import HandlerError
from qd.job import NAME_PATTERN, OWN_PREFIX, Job, OwnType, plain

Function = Callable[[Job], "str | None"]
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered handler: a function, or a program's argv. Exactly one of the two is set.

    Attributes:
        queues: where it is expected, or None for anywhere; bounds the metrics' series.
    """

    name: str
    function: Function | None = None
    argv: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None


class Registry:
    """Handlers by type name."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def add(self, handler: Handler) -> None:
        """Registers a handler.

        Raises:
            HandlerError: the name is not allowed, or taken.
        """
        if not isinstance(handler.name, str) or not re.fullmatch(NAME_PATTERN, handler.name) or len(handler.name) > 128:
            raise HandlerError(f"handler {handler.name!r}: a name has 1 to 128 of the characters A-Z a-z 0-9 _ . : -")
        if handler.name.startswith(OWN_PREFIX) and not isinstance(handler.name, OwnType):
            raise HandlerError(f"handler {handler.name!r}: names beginning with {OWN_PREFIX!r} are qd's own")
        if handler.name in self._handlers:
            raise HandlerError(f"handler {handler.name!r} is registered twice; each type has one handler")
        self._handlers[handler.name] = handler

    def remove(self, name: str) -> None:
        """Takes a handler back: its module failed to load."""
        self._handlers.pop(name, None)

    def get(self, name: str) -> Handler | None:
        """The handler of this type, or None."""
        return self._handlers.get(name)

    def names(self) -> tuple[str, ...]:
        """All types, sorted."""
        return tuple(sorted(self._handlers))

    def handlers(self) -> tuple[Handler, ...]:
        """All handlers, by name."""
        return tuple(self._handlers[name] for name in self.names())

    def copy(self) -> Registry:
        """A registry of its own with the same handlers."""
        other = Registry()
        other._handlers = dict(self._handlers)
        return other


REGISTRY = Registry()
"""Where `@qd.handler` registers."""


def handler(name: str, queues: Sequence[str] | None = None) -> Callable[[F], F]:
    """Registers the decorated function as the handler of a type.

    Args:
        name: the type, as jobs name it.
        queues: where it is expected (bounds the number of metrics' series), or None.

    Raises:
        HandlerError: the name is not allowed, or a second handler has it.
    """
    expected = None if queues is None else tuple(map(plain, queues))

    def register(function: F) -> F:
        REGISTRY.add(Handler(plain(name), function=function, queues=expected))  # type: ignore[arg-type]
        return function

    return register
