"""From what a handler did, to the outcome of its attempt. Pure but for reading source lines.

What a handler raised is hostile (see `qd.failure`), and so is what it put into a Retry or a Snooze.
May import: failure, outcome, job, clock, duration, interruption.
"""

from __future__ import annotations

import math
import sys
from types import AsyncGeneratorType, GeneratorType

from qd.duration import spell
from qd.executors.interruption import Interruption
from qd.failure import ERROR_LIMIT, class_name, cut, describe, text_of
from qd.outcome import JobInterrupted, JobTimeout, Outcome, OutcomeKind, Reason, Reject, Retry, Snooze

RESULT_LIMIT = 4 * 1024
"""Bytes that are kept of what a handler returned or a program wrote."""

LONGEST_DELAY = 365 * 86400.0
"""Seconds that a Retry or a Snooze may ask for at most."""


def returned(value: object, seconds: float) -> Outcome:
    """The handler has returned."""
    if value is None:
        return Outcome(OutcomeKind.SUCCEEDED, seconds=seconds)
    kind = type(value)
    if issubclass(kind, str):
        return Outcome(OutcomeKind.SUCCEEDED, result=cut(value, RESULT_LIMIT), seconds=seconds)  # type: ignore[arg-type]
    if issubclass(kind, GeneratorType | AsyncGeneratorType):
        error = "the handler is a generator: it must return, not yield; nothing of it was run"
        return Outcome(OutcomeKind.FAILED, error=error, seconds=seconds)
    if _has(kind, "__await__"):
        error = f"the handler returned what is yet to be awaited ({_name(kind)}): nobody has, so it may not have run"
        return Outcome(OutcomeKind.FAILED, error=error, seconds=seconds)
    return Outcome(OutcomeKind.SUCCEEDED, result=f"(not text: {_name(kind)})", seconds=seconds)


def is_coroutine(value: object) -> bool:
    """Whether it can be run as a coroutine can, though it is of another kind: a compiled module's."""
    return _has(type(value), "__await__", "send", "throw", "close")


def raised(error: BaseException, seconds: float, own: str) -> Outcome:
    """The handler has raised, of its own accord: a JobInterrupted that nobody threw is a failure, for an
    uncounted end would let it run for ever.

    Args:
        own: the file whose frames lead to the handler and aren't shown.
    """
    kind = type(error)
    if issubclass(kind, Snooze):
        return _snoozed(error, seconds, own)
    if issubclass(kind, Retry):
        return _retried(error, seconds, own)
    if issubclass(kind, Reject):
        text = _reason(error) or "rejected"
        return Outcome(OutcomeKind.REJECTED, Reason.REJECTED, text, describe(error, own)[1], seconds=seconds)
    if issubclass(kind, JobTimeout):
        return interrupted(Interruption.TIMEOUT, error, seconds, own)
    return failed(error, seconds, own)


def failed(error: BaseException, seconds: float, own: str) -> Outcome:
    """An ordinary failed attempt."""
    text, traceback = describe(error, own)
    return Outcome(OutcomeKind.FAILED, error=text, traceback=traceback or None, seconds=seconds)


def interrupted(why: Interruption, error: BaseException | None, seconds: float, own: str) -> Outcome:
    """The handler was interrupted; what it then did doesn't count, but is told.

    Args:
        error: what came out of it, or None if it returned all the same.
    """
    timed_out = why is Interruption.TIMEOUT
    text = f"{'timed out' if timed_out else 'interrupted by a stop'}; it ended after {spell(seconds)}"
    traceback = None
    if error is not None:
        described, traceback = describe(error, own)
        if not issubclass(type(error), JobTimeout | JobInterrupted | _cancelled()):
            text = cut(f"{text}; its end: {described}", ERROR_LIMIT)
    if timed_out:
        return Outcome(OutcomeKind.TIMEOUT, Reason.TIMEOUT, text, traceback or None, seconds=seconds)
    return Outcome(OutcomeKind.RELEASED, Reason.INTERRUPTED, text, traceback or None, seconds=seconds)


def _cancelled() -> type[BaseException]:
    """asyncio's CancelledError where asyncio is loaded: it is dear in memory, and few handlers use it."""
    loaded = sys.modules.get("asyncio")
    return getattr(loaded, "CancelledError", JobInterrupted)


def _snoozed(error: BaseException, seconds: float, own: str) -> Outcome:
    delay, wrong = _delay(error, "seconds")
    if wrong or delay is None:
        return _refused(error, f"Snooze: {wrong or 'needs its seconds'}", seconds, own)
    return Outcome(OutcomeKind.SNOOZED, delay=delay, seconds=seconds)


def _retried(error: BaseException, seconds: float, own: str) -> Outcome:
    delay, wrong = _delay(error, "after")
    if wrong:
        return _refused(error, f"Retry: {wrong}; its reason was: {_reason(error)}", seconds, own)
    text, traceback = _reason(error) or "asked for a retry", describe(error, own)[1]
    return Outcome(OutcomeKind.FAILED, error=text, traceback=traceback, delay=delay, seconds=seconds)


def _refused(error: BaseException, text: str, seconds: float, own: str) -> Outcome:
    return Outcome(OutcomeKind.FAILED, error=cut(text, ERROR_LIMIT), traceback=describe(error, own)[1], seconds=seconds)


def _delay(error: BaseException, name: str) -> tuple[float | None, str]:
    """The seconds asked for, or what is wrong with them."""
    try:
        value = getattr(error, name)
        if value is None:
            return None, ""
        number = float(value) if issubclass(type(value), int | float) and type(value) is not bool else math.nan
        if 0 <= number <= LONGEST_DELAY:
            return number, ""
        shown = text_of(value, 100)
    except OverflowError:  # an int beyond all floats
        shown = "a number without end"
    except BaseException as trouble:  # the exception's own attributes
        shown = f"what raises {class_name(trouble)}"
    return None, f"{name} must be a number of seconds from 0 to {LONGEST_DELAY:.0f}, not {shown}"


def _reason(error: BaseException) -> str:
    try:
        return text_of(error.reason, ERROR_LIMIT)  # type: ignore[attr-defined]
    except BaseException as trouble:  # a subclass that has no reason, or one that raises
        return f"(no reason: {class_name(trouble)})"


def _has(kind: type, *names: str) -> bool:
    """Whether instances have these attributes, asked of the interpreter and not of the class."""
    bases = type.__dict__["__mro__"].__get__(kind)
    return all(any(name in type.__dict__["__dict__"].__get__(base) for base in bases) for name in names)


def _name(kind: type) -> str:
    return cut(type.__dict__["__name__"].__get__(kind), 100)
