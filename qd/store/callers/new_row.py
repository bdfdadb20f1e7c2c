"""A job to be enqueued, checked: what can't be right is refused here, before anything is written.

Pure. May import: job, payload, errors.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from qd.errors import BadInput
from qd.job import NAME_PATTERN, OWN_PREFIX, PRIORITIES, NewJob, OwnType
from qd.payload import encode

MAX_QUEUE, MAX_TYPE, MAX_UNIQUE_KEY = 64, 128, 191
"""Characters."""

LATEST = datetime(2038, 1, 19, tzinfo=timezone.utc)
"""TIMESTAMP columns end within this day (UTC) on most of the supported servers."""

_NAME = re.compile(NAME_PATTERN)
_ESCAPED = re.compile(rb"[\x00\n\r\x1a\"'\\]")
_REST = 200  # bytes that the other columns and the punctuation take at most
_NUMBERS = frozenset(PRIORITIES.values())


class NewRow(NamedTuple):
    """The values of a row of qd_jobs: exact `str` and `int`, nobody's subclasses, whose text could be another.

    Attributes:
        delay: seconds from the database's now; 0.0 with `at` None: due at once.
        at: when it is due, UTC.
    """

    queue: str
    type: str
    payload: str
    priority: int
    unique_key: str | None
    max_attempts: int | None
    delay: float
    at: datetime | None

    @property
    def waits(self) -> bool:
        """Whether its due time is another than the moment of its INSERT."""
        return self.delay > 0 or self.at is not None

    @property
    def values(self) -> tuple[Any, ...]:
        """For the columns queue, type, payload, priority, unique_key, max_attempts."""
        return self[:6]

    def most(self) -> int:
        """Bytes that it can't add more than to a statement; `size()` or above it, and cheap to know."""
        key = len(self.unique_key) * 4 if self.unique_key else 0
        # what is escaped takes two bytes, what isn't ASCII at most four
        return len(self.payload) * (2 if self.payload.isascii() else 4) + key + len(self.queue) + len(self.type) + _REST

    def size(self) -> int:
        """Bytes that it adds to a statement at most, with what the driver escapes."""
        raw = self.payload.encode() + (self.unique_key or "").encode()
        return len(raw) + len(_ESCAPED.findall(raw)) + len(self.queue) + len(self.type) + _REST


def new_row(job: NewJob, at: datetime | None = None) -> NewRow:
    """Checks a job.

    Raises:
        BadInput: one line that names the field and says what is allowed.
    """
    if not isinstance(job, NewJob):
        raise BadInput(f"job: {_shown(job)} is not allowed; give a qd.NewJob")
    if at is not None and job.delay:
        raise BadInput("delay: not together with at; give one of them")
    return NewRow(
        _name("queue", job.queue, MAX_QUEUE),
        _type(job.type),
        "{}" if job.payload is None else encode(job.payload),
        _priority(job.priority),
        _unique_key(job.unique_key),
        _max_attempts(job.max_attempts),
        _delay(job.delay),
        _at(at),
    )


def _name(field: str, value: object, longest: int) -> str:
    if isinstance(value, str):
        text = str.__str__(value)  # `str()` of an Enum's member is its name
        if len(text) <= longest and _NAME.fullmatch(text):
            return text
    raise _refused(field, value, f"1 to {longest} of the characters A-Z a-z 0-9 _ . : -")


def _type(value: object) -> str:
    name = _name("type", value, MAX_TYPE)
    if name.startswith(OWN_PREFIX) and not isinstance(value, OwnType):
        raise _refused("type", value, f"names beginning with {OWN_PREFIX!r} are qd's own")
    return name


def _priority(value: object) -> int:
    if isinstance(value, str):
        number = PRIORITIES.get(str.__str__(value))
    else:
        number = int.__index__(value) if isinstance(value, int) and not isinstance(value, bool) else None
    if number in _NUMBERS:
        return number
    raise _refused("priority", value, ", ".join(f"{name} ({number})" for name, number in PRIORITIES.items()))


def _unique_key(value: object) -> str | None:
    if value is None:
        return None
    # a blank at the end doesn't count in a comparison: the second of `a` and `a ` would vanish
    text = str.__str__(value) if isinstance(value, str) else ""
    if not 0 < len(text) <= MAX_UNIQUE_KEY or text.endswith(" "):
        raise _refused("unique_key", value, f"1 to {MAX_UNIQUE_KEY} characters, the last no blank, or None")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refused("unique_key", value, "text that UTF-8 can hold") from None
    return text


def _max_attempts(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= (number := int.__index__(value)) <= 65535:
        return number
    raise _refused("max_attempts", value, "1 to 65535, or None for the queue's")


def _delay(value: object) -> float:
    if (type(value) is int or type(value) is float) and value == 0:
        return 0.0  # nearly all jobs: no clock is asked
    allowed = f"seconds (0 or more) or a timedelta, until {LATEST:%Y-%m-%d} at most"
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = min(value, 1e12)  # an int of any size would not fit a float
    else:
        raise _refused("delay", value, allowed)
    left = (LATEST - datetime.now(timezone.utc)).total_seconds()
    if not math.isfinite(seconds) or not 0 <= seconds <= left:
        raise _refused("delay", value, allowed)
    return float(seconds)


def _at(value: object) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise _refused("at", value, "a datetime with a time zone")
    # compared before converted: a shift of zones past the year 1 or 9999 overflows
    if value > LATEST:
        raise _refused("at", value, f"a time until {LATEST:%Y-%m-%d} UTC at most")
    return max(value, datetime(1971, 1, 1, tzinfo=timezone.utc)).astimezone(timezone.utc)


def _refused(field: str, value: object, allowed: str) -> BadInput:
    return BadInput(f"{field}: {_shown(value)} is not allowed; allowed: {allowed}")


def _shown(value: object) -> str:
    try:
        text = value.isoformat() if isinstance(value, datetime) else ascii(value)
    except Exception:  # a stranger's __repr__ may raise anything; its type says enough
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
