"""What the daemon and a child say to each other: length-prefixed JSON over a socket pair.

Four bytes, the length, then one JSON object. The daemon believes nothing of what a child says: a
handler can write to the socket too. May import: endings, failure, outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps, loads  # see `qd.payload`
from typing import Any

from qd.executors.endings import LONGEST_DELAY, RESULT_LIMIT
from qd.failure import ERROR_LIMIT, TRACEBACK_LIMIT, cut
from qd.outcome import Outcome, OutcomeKind, Reason

Message = dict[str, Any]
"""`say` names the kind, the rest is its own."""

PROTOCOL = 1
"""Raised with every change that the other side of another version couldn't follow: of a message that one of them
needs, or of the descriptors. A daemon that still runs after its files were replaced starts children of the new code;
these say that they don't fit, and no job is given to them."""

SOCKET, LAST_WORDS, OWNER = 3, 4, 5
"""The descriptors that a child is started with, beside the standard ones."""

ANSWER_LIMIT = 1 << 20
"""Bytes of a message from a child at most: an outcome's texts are cut to a tenth of it."""

_HEAD = 4


class BadMessage(Exception):
    """What came is no message: too long, not JSON, or none that may come now."""


def frame(say: str, **fields: Any) -> bytes:
    """One message, ready to be sent."""
    body = dumps({"say": say, **fields}).encode()
    return len(body).to_bytes(_HEAD, "big") + body


class Frames:
    """Cuts a stream into its messages.

    Args:
        limit: bytes of one message at most.
    """

    def __init__(self, limit: int = (1 << 32) - 1) -> None:
        self._buffer, self._limit = bytearray(), limit

    def feed(self, data: bytes) -> Iterator[Message]:
        """The stream goes on with these; the messages that are whole now.

        Raises:
            BadMessage: see there.
        """
        self._buffer += data
        while (body := self._next()) is not None:
            yield _parsed(body)

    def _next(self) -> bytes | None:
        if len(self._buffer) < _HEAD:
            return None
        length = int.from_bytes(self._buffer[:_HEAD], "big")
        if length > self._limit:
            raise BadMessage(f"announced {length} bytes")
        if len(self._buffer) < _HEAD + length:
            return None
        body = bytes(self._buffer[_HEAD : _HEAD + length])
        del self._buffer[: _HEAD + length]
        return body


def _parsed(body: bytes) -> Message:
    try:
        message = loads(body)
    except (ValueError, RecursionError):
        raise BadMessage("not JSON") from None
    if not isinstance(message, dict) or not isinstance(message.get("say"), str):
        raise BadMessage("says nothing")
    return message


def packed(outcome: Outcome) -> Message:
    """An outcome as fields of a message."""
    return {
        "kind": outcome.kind.value, "reason": outcome.reason.value, "error": outcome.error,
        "traceback": outcome.traceback, "delay": outcome.delay, "result": outcome.result, "entered": outcome.entered,
    }  # fmt: skip


def unpacked(message: Message, seconds: float) -> Outcome:
    """The outcome again, whatever the sender has made of it.

    Args:
        seconds: how long it took.

    Raises:
        BadMessage: it isn't one.
    """
    try:
        kind, reason = OutcomeKind(message["kind"]), Reason(message["reason"])
        delay = message["delay"]
        if delay is not None and not (type(delay) in (int, float) and 0 <= delay <= LONGEST_DELAY):
            raise BadMessage("no delay")
        error, traceback = _text(message["error"], ERROR_LIMIT), _text(message["traceback"], TRACEBACK_LIMIT)
        result, entered = _text(message["result"], RESULT_LIMIT), message.get("entered") is not False
        return Outcome(kind, reason, error, traceback, delay, result, seconds, entered=entered)
    except (KeyError, TypeError, ValueError):
        raise BadMessage("no outcome") from None


def _text(value: object, limit: int) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadMessage("no text")
    return cut(value, limit)
