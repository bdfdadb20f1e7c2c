"""Text on its way into a column (valid UTF-8, cut by bytes, marked as cut) and out of one. Pure."""

from __future__ import annotations

from typing import Any

TEXT_BYTES = 65_535
"""What a TEXT column holds."""

TRACEBACK_BYTES = 200_000
"""What is kept of a traceback, so that a dead letter fits a server's max_allowed_packet of 1 MiB."""

CUT = " ... [cut]"


def fitted(text: str | None, most: int = TEXT_BYTES) -> str | None:
    """The text in at most so many bytes of UTF-8, no character split; None stays None."""
    if text is None:
        return None
    raw = text.encode("utf-8", "backslashreplace")
    if len(raw) <= most:
        return raw.decode("utf-8")
    return raw[: most - len(CUT)].decode("utf-8", "ignore") + CUT


def as_text(value: Any) -> str:
    """A column's value as text; bytes that are no UTF-8 are shown as escapes, NULL is empty."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return "" if value is None else str(value)


def maybe_text(value: Any) -> str | None:
    """The same, None staying None."""
    return None if value is None else as_text(value)
