"""Fixtures of the tests that belong to one kind of server: `make test-servers` runs them, `make test` doesn't."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet
from tests.servers.galera import Galera, GaleraKind
from tests.servers.kinds import kind_named
from tests.servers.switched import Switched, SwitchedKind
from tests.support.private import PrivateServer


@pytest.fixture
def galera() -> Iterator[Galera]:
    """Three nodes that run."""
    kind = kind_named("galera")
    assert isinstance(kind, GaleraKind)
    server = kind.new_server()
    yield server
    server.discard()


@pytest.fixture
def new_pair() -> Iterator[Callable[..., Switched]]:
    """Starts pairs behind HAProxy; the arguments are new_pair's."""
    kind = kind_named("switched")
    assert isinstance(kind, SwitchedKind)
    servers: list[Switched] = []

    def start(idle: float = 60.0) -> Switched:
        servers.append(kind.new_pair(idle=idle))
        return servers[-1]

    yield start
    for server in servers:
        server.discard()


@pytest.fixture
def new_fleet() -> Iterator[Callable[[PrivateServer], Fleet]]:
    """Three daemons on a server, each on a port of its own where it has several."""
    fleets: list[tuple[Fleet, Path]] = []

    def start(server: PrivateServer, *batches: object) -> Fleet:
        folder = Path(tempfile.mkdtemp(prefix="qd-f-"))
        ports = server.ports if len(server.ports) > 1 else server.ports * 3
        fleets.append((Fleet(folder, server, batches or ("auto", 50, "auto"), ports=ports), folder))
        fleets[-1][0].until_ready()
        return fleets[-1][0]

    yield start
    for fleet, folder in fleets:
        fleet.server.thaw()
        fleet.end()
        shutil.rmtree(folder, ignore_errors=True)
