"""Reading and judging the head of an HTTP request that anybody may have sent.

Strict on purpose: what isn't HTTP/1.x to the letter is refused, so that no two readers of a
request can differ on what it says. May import: config (what is a loopback address), clock.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from qd.clock import monotonic
from qd.config import is_loopback

HEAD = 16384
"""Bytes that a request line and its headers may have together."""

# No two parts of a pattern can match the same character: their time grows with the length only.
_LINE = re.compile(r"([A-Z]{1,20}) ([!-~]+) HTTP/1\.[01]")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\x00\n\r]*)")
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+))(?::[0-9]{1,5})?")


def names_loopback(host: str) -> bool:
    """True for `localhost` and for literal loopback addresses, with or without a port."""
    match = _HOST.fullmatch(host)
    return match is not None and is_loopback(match[1] or match[2])


@dataclass(frozen=True, slots=True)
class Request:
    """A request's head.

    Attributes:
        hosts: every host that it names, in its Host headers and in its target.
    """

    method: str
    path: str
    hosts: tuple[str, ...]
    accept: str


class Malformed(Exception):
    """Answered with a status; nothing of what was sent is repeated."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


def read_head(connection: socket.socket, within: float) -> bytes | None:
    """The bytes up to the empty line, or None: the client went away.

    Args:
        within: seconds for all of it.

    Raises:
        Malformed: there is no end to it.
        TimeoutError: it took too long.
    """
    deadline, head = monotonic() + within, b""
    while b"\r\n\r\n" not in head:
        if len(head) > HEAD:
            raise Malformed(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        connection.settimeout(max(0.001, deadline - monotonic()))
        more = connection.recv(4096)
        if not more:
            return None
        head += more
    return head[: head.index(b"\r\n\r\n")]


def parse_head(head: bytes) -> Request:
    """Reads a head, strictly: what isn't HTTP/1.x to the letter is refused, folded lines too."""
    first, *rest = head.decode("latin-1").split("\r\n")
    line = _LINE.fullmatch(first)
    fields = [_HEADER.fullmatch(text) for text in rest]
    if line is None or None in fields:
        raise Malformed(HTTPStatus.BAD_REQUEST)
    headers = [(field[1].lower(), field[2].strip(" \t")) for field in fields if field is not None]
    path, named = _target(line[2])
    hosts = [value for name, value in headers if name == "host"]
    accept = ", ".join(value for name, value in headers if name == "accept")
    # None or several are as wrong as a strange one: "" never passes for loopback.
    return Request(line[1], path, (*(hosts if len(hosts) == 1 else [""]), *named), accept)


def _target(target: str) -> tuple[str, list[str]]:
    """The path without its query, and the host that an absolute target names."""
    if not target.startswith("/"):
        try:
            parts = urlsplit(target)
        except ValueError:  # brackets that don't match
            raise Malformed(HTTPStatus.BAD_REQUEST) from None
        return parts.path or "/", [parts.netloc]
    return target.split("?", 1)[0], []
