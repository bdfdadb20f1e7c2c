"""Servers that end with their test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qd.daemon.http import PATIENCE, Answer, HttpServer
from tests.unit.http.client import Routes, Serve


@pytest.fixture
def faults() -> list[BaseException]:
    """What servers said of their routes."""
    return []


@pytest.fixture
def serve(faults: list[BaseException]) -> Iterator[Serve]:
    """`serve(routes, listen, patience)`: a started server; by default with one page, `/page`."""
    servers: list[HttpServer] = []

    def start(routes: Routes | None = None, listen: str = "127.0.0.1:0", patience: float = PATIENCE) -> HttpServer:
        server = HttpServer(listen, routes or {"/page": lambda accept: Answer(200, "secret")}, faults.append, patience)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.close()
