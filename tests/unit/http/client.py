"""A server on a free port, and clients that send what no browser would."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from qd.daemon.http import HttpServer, Route


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


def connect(server: HttpServer, timeout: float = 10.0) -> socket.socket:
    """A connection to it."""
    host, _, port = server.address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=timeout)


def read_all(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def parse(raw: bytes) -> Reply:
    """Reads a whole answer."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    version, status, _ = first.split(" ", 2)
    assert version == "HTTP/1.1"
    return Reply(int(status), dict(line.split(": ", 1) for line in lines), body)


def send(server: HttpServer, raw: bytes) -> Reply:
    """Sends these bytes and reads the answer."""
    with closing(connect(server)) as connection:
        connection.sendall(raw)
        return parse(read_all(connection))


def ask(server: HttpServer, path: str, method: str = "GET", host: str | None = None, *more: str) -> Reply:
    """Sends a proper request."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host if host is not None else server.address}", *more]
    return send(server, "\r\n".join([*lines, "", ""]).encode("latin-1"))


Serve = Callable[..., HttpServer]
"""Starts a server with these routes; the fixture `serve` closes it."""

Routes = dict[str, Route]
