"""Makes any text fit a column: valid UTF-8, cut by bytes, marked as cut. Pure."""

from __future__ import annotations

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
