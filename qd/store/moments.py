"""Times as the databases write them: UTC text of fixed width, which compares as time. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any


def written(value: Any) -> str:
    """A due time as text: MySQL's datetime in microseconds, SQLite's text as it is."""
    return value.isoformat(" ", "microseconds") if isinstance(value, datetime) else str(value)


def read(text: str) -> datetime:
    """The opposite, as an aware UTC datetime."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def earlier(text: str, span: timedelta) -> str:
    """The same time less a span, in the same width."""
    width = "microseconds" if len(text) > 23 else "milliseconds"
    return (datetime.fromisoformat(text) - span).isoformat(" ", width)


def seconds_between(start: Any, end: Any) -> float:
    """Seconds from one time to another, 0.0 at least."""
    return max(0.0, (_plain(end) - _plain(start)).total_seconds())


def stamp(value: Any) -> str | None:
    """A time as the history tells it: ISO 8601, UTC, with milliseconds."""
    if value is None:
        return None
    return _plain(value).isoformat("T", "milliseconds") + "Z"


def _plain(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
