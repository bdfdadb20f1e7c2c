"""What a line looks like: text (logfmt), json or journal. Pure.

The same fields in all three. Values are made clean (see `qd.failure.clean`) and cut, so that a line
is one line, whatever a job has carried into it, and a terminal can show it. May import: failure.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from time import gmtime, strftime  # our own names: a handler may replace the module's
from typing import Literal

from qd.failure import cut, text_of

VALUE_LIMIT = 4 * 1024
"""Bytes of UTF-8 that a value has at most."""

Format = Literal["journal", "text", "json"]
Scalar = str | int | float | bool
Pairs = Iterable[tuple[str, object]]
Formatter = Callable[[float, str, Pairs], str]
"""Of seconds since the epoch, a level and (name, value) pairs; None values are left out."""

_SYSLOG = {"debug": 7, "info": 6, "warning": 4, "error": 3}
_BARE = re.compile(r'[^\s"=\\]+')
_NOT_BARE = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"})
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def formatter(name: Format) -> Formatter:
    """The function that makes this format's lines."""
    return {"journal": _journal, "text": _text, "json": _json}[name]


def choose(wanted: str, fd: int) -> Format:
    """What `log.format` means for this descriptor: auto is journal where the descriptor is systemd's,
    text on a terminal, else json."""
    if wanted in ("journal", "text", "json"):
        return wanted  # type: ignore[return-value]
    if _is_journal(fd):
        return "journal"
    try:
        return "text" if os.isatty(fd) else "json"
    except OSError:
        return "json"


def scalar(value: object) -> Scalar:
    """The value as it is logged in every format: clean text, a number that JSON knows, or a bool."""
    kind = type(value)
    if issubclass(kind, str):
        return cut(value, VALUE_LIMIT)  # type: ignore[arg-type]
    if kind is bool:
        return value  # type: ignore[return-value]
    if kind is int and abs(value) < 1 << 63:  # type: ignore[arg-type]
        return value  # type: ignore[return-value]
    if kind is float and math.isfinite(value):  # type: ignore[arg-type]
        return round(value, 6)  # type: ignore[call-overload, no-any-return]
    return text_of(value, VALUE_LIMIT)


def _is_journal(fd: int) -> bool:
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def _time(seconds: float) -> str:
    whole = math.floor(seconds)
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(whole))}.{int((seconds - whole) * 1000):03d}Z"


def _json(now: float, level: str, pairs: Pairs) -> str:
    fields: dict[str, Scalar] = {"time": _time(now), "level": level}
    fields.update((name, scalar(value)) for name, value in pairs if value is not None)
    return _encode(fields)


def _text(now: float, level: str, pairs: Pairs) -> str:
    return f"time={_time(now)} level={level} {_logfmt(pairs)}"


def _journal(now: float, level: str, pairs: Pairs) -> str:
    return f"<{_SYSLOG[level]}>{_logfmt(pairs)}"


def _logfmt(pairs: Pairs) -> str:
    return " ".join(f"{name}={_quoted(scalar(value))}" for name, value in pairs if value is not None)


def _quoted(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    return value if _BARE.fullmatch(value) else f'"{value.translate(_NOT_BARE)}"'
