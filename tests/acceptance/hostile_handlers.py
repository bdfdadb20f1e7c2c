"""Handlers whose exceptions do all they can not to be recorded; `HOSTILE` and `TEXTS` have them by name."""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import qd
from tests.acceptance.daemon_handlers import note


def explode(*args: object, **kwargs: object) -> NoReturn:
    raise KeyboardInterrupt("from within")


class Hostile(Exception):
    """Whatever is asked of it raises a BaseException."""

    __str__ = __repr__ = __reduce__ = __getattr__ = __eq__ = __hash__ = __bool__ = explode
    __class__ = __traceback__ = __cause__ = __context__ = __notes__ = property(explode)
    __suppress_context__ = args = property(explode)


class HostileBase(BaseException):
    """The same, and no Exception."""

    __str__ = __repr__ = explode


class HostileMeta(type):
    """A class that can't be asked for its name."""

    def __getattribute__(cls, name: str) -> NoReturn:
        raise MemoryError


class Renamed(Exception, metaclass=HostileMeta):
    __module__ = 7  # type: ignore[assignment]


class Huge(Exception):
    def __str__(self) -> str:
        return "x" * 500_000_000


class Sleepy(Exception):
    """Takes its time to say what it is."""

    def __str__(self) -> str:
        time.sleep(3)
        return "awake at last"


class Holder(Exception):
    """Refers to what can't be copied or pickled."""


class Endless(Exception):
    def __str__(self) -> str:
        return str(self)


def cycle() -> BaseException:
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def long_chain() -> BaseException:
    """Some 1 GB of text, were it written out: 10,000 exceptions with the same 100 KB."""
    text, error = "y" * 100_000, ValueError("oldest")
    for number in range(10_000):
        following = ValueError(f"number {number}", text)
        following.__cause__ = error
        error = following
    return error


def group() -> BaseException:
    made: Callable[..., BaseException] = getattr(builtins, "ExceptionGroup", RuntimeError)  # from Python 3.11 on
    return made("many", [ValueError(number) for number in range(10_000)])


def deep() -> NoReturn:
    deep()


HOSTILE: dict[str, tuple[Callable[[], BaseException], str]] = {
    "hostile": (Hostile, "Hostile"),
    "hostile_base": (HostileBase, "HostileBase"),
    "renamed": (lambda: Renamed("text"), "Renamed"),
    "huge": (Huge, "Huge: xxx"),
    "sleepy": (Sleepy, "Sleepy: awake at last"),
    "lock": (lambda: Holder(threading.Lock()), "Holder: <unlocked _thread.lock"),
    "endless": (Endless, "Endless"),
    "cycle": (cycle, "ValueError: first"),
    "group": (group, "many"),
    "memory": (MemoryError, "MemoryError"),
}
"""By name: how to make it, and what must at least be kept of it."""

TEXTS: dict[str, Callable[[], BaseException]] = {
    "20 MB": lambda: ValueError("z" * 20_000_000),
    "a surrogate": lambda: ValueError("before \udcff after"),
    "a NUL": lambda: ValueError("before \x00 after"),
    "emoji": lambda: ValueError("boom \U0001f4a5" * 20_000),
    "bytes": lambda: ValueError(b"caf\xe9"),
    "a chain": long_chain,
    "a cycle": cycle,
}
"""Errors whose text no column takes as it is."""


@qd.handler("raise_hostile")
def raise_hostile(job: qd.Job) -> None:
    """Raises one of HOSTILE."""
    note(job, "start")
    if job.payload["what"] == "recursion":
        deep()
    raise HOSTILE[job.payload["what"]][0]()


@qd.handler("raise_text")
def raise_text(job: qd.Job) -> None:
    """Raises one of TEXTS."""
    note(job, "start")
    raise TEXTS[job.payload["what"]]()


ALL: dict[str, Any] = {**{what: name for what, (_, name) in HOSTILE.items()}, "recursion": "RecursionError"}
"""What must at least be kept of each of raise_hostile's."""
