"""Fixtures of the tests that drive real `qd run` processes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.alertmanager import Alertmanager, Webhook
from tests.support.daemon import Qd
from tests.support.mariadb import MariaDB
from tests.support.missing import without
from tests.support.pace import Watch
from tests.support.programs import HttpProgram
from tests.support.prometheus import Prometheus, Targets
from tests.support.server import Server, ServerMissing
from tests.support.systemd import Machine, boot
from tests.support.unit import Unit, machine_with_qd

Program = TypeVar("Program", bound=HttpProgram)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not under pytest's own folder: a socket's path has to be short."""
    path = Path(tempfile.mkdtemp(prefix="qd-t-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def qd(folder: Path, mariadb: Server, mysql_database: str) -> Iterator[Qd]:
    """A configuration for a fresh database on the shared server."""
    qd = Qd(folder, mariadb, mysql_database)
    yield qd
    qd.end()


@pytest.fixture
def frail(folder: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Qd]:
    """The same on a server of its own, which the test may freeze, stop and kill (`frail.server`)."""
    server = own_mariadb()
    qd = Qd(folder, server, server.new_database())
    yield qd
    if server.running():
        server.thaw()
    qd.end()


def started(folder: Path, kind: type[Program]) -> Iterator[Callable[..., Program]]:
    """Starts real servers of a kind, gone with the test. The arguments are the kind's, but for the folder."""
    servers: list[Program] = []

    def start(*args: Any, **more: Any) -> Program:
        try:
            servers.append(kind(folder / f"{kind.__name__.lower()}{len(servers)}", *args, **more))
        except ServerMissing as missing:
            without(missing)
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def prometheus(folder: Path) -> Iterator[Callable[..., Prometheus]]:
    """Starts Prometheus servers."""
    yield from started(folder, Prometheus)


@pytest.fixture
def alertmanager(folder: Path) -> Iterator[Callable[[Mapping[str, Any]], Alertmanager]]:
    """Starts Alertmanagers, each with a configuration."""
    yield from started(folder, Alertmanager)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    """Hears what an Alertmanager tells people."""
    webhook = Webhook()
    yield webhook
    webhook.close()


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A machine with a real systemd and qd's units, for the tests of a file."""
    try:
        machine = boot()
    except ServerMissing as missing:
        without(missing)
    try:
        yield machine_with_qd(machine)
    finally:
        machine.end()


@pytest.fixture
def unit(machine: Machine, folder: Path, mariadb: Server) -> Iterator[Callable[..., Unit]]:
    """Makes `qd@NAME` of that machine; the server is the shared one unless it is given."""
    units: list[Unit] = []

    def make(name: str, server: Server = mariadb) -> Unit:
        own = folder / name
        own.mkdir()
        units.append(Unit(machine, name, own, server, server.new_database()))
        return units[-1]

    yield make
    for one in units:
        one.end()


@pytest.fixture
def watching(
    folder: Path,
    prometheus: Callable[..., Prometheus],
    alertmanager: Callable[[Mapping[str, Any]], Alertmanager],
    webhook: Webhook,
) -> Callable[[Targets], Watch]:
    """Starts a Prometheus and an Alertmanager as shipped, thirty times as fast, that watch these daemons."""
    return lambda targets: Watch(folder, prometheus, alertmanager, webhook, targets)
