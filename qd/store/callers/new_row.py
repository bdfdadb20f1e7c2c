"""A job to be enqueued, checked: what can't be right is refused here, before anything is written.

Pure. May import: job, payload, errors.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from qd.errors import BadInput
from qd.job import NAME_PATTERN, OWN_PREFIX, PRIORITIES, NewJob
from qd.payload import encode

MAX_QUEUE, MAX_TYPE, MAX_UNIQUE_KEY = 64, 128, 191
"""Characters."""

LATEST = datetime(2038, 1, 19, tzinfo=timezone.utc)
"""TIMESTAMP columns end within this day (UTC) on most of the supported servers."""

_NAME = re.compile(NAME_PATTERN)
_ESCAPED = re.compile(rb"[\x00\n\r\x1a\"'\\]")


@dataclass(frozen=True, slots=True)
class NewRow:
    """The values of a row of qd_jobs.

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
        return (self.queue, self.type, self.payload, self.priority, self.unique_key, self.max_attempts)

    def size(self) -> int:
        """Bytes that it adds to a statement at most, with what the driver escapes."""
        raw = self.payload.encode() + (self.unique_key or "").encode()
        return len(raw) + len(_ESCAPED.findall(raw)) + len(self.queue) + len(self.type) + 200


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
    if isinstance(value, str) and _NAME.fullmatch(value) and len(value) <= longest:
        return str(value)
    raise _refused(field, value, f"1 to {longest} of the characters A-Z a-z 0-9 _ . : -")


def _type(value: object) -> str:
    name = _name("type", value, MAX_TYPE)
    if name.startswith(OWN_PREFIX):
        raise _refused("type", value, f"names beginning with {OWN_PREFIX!r} are qd's own")
    return name


def _priority(value: object) -> int:
    if isinstance(value, str) and value in PRIORITIES:
        return PRIORITIES[value]
    if isinstance(value, int) and not isinstance(value, bool) and value in PRIORITIES.values():
        return int(value)
    raise _refused("priority", value, ", ".join(f"{name} ({number})" for name, number in PRIORITIES.items()))


def _unique_key(value: object) -> str | None:
    if value is None:
        return None
    # a blank at the end doesn't count in a comparison: the second of `a` and `a ` would vanish
    if not isinstance(value, str) or not 0 < len(value) <= MAX_UNIQUE_KEY or value.endswith(" "):
        raise _refused("unique_key", value, f"1 to {MAX_UNIQUE_KEY} characters, the last no blank, or None")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refused("unique_key", value, "text that UTF-8 can hold") from None
    return str(value)


def _max_attempts(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535:
        return int(value)
    raise _refused("max_attempts", value, "1 to 65535, or None for the queue's")


def _delay(value: object) -> float:
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
