"""Fixtures that several kinds of tests share: real databases, each test with a fresh one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qd.config.model import DatabaseConfig
from tests.support.mariadb import new_server, shared_server
from tests.support.missing import without
from tests.support.private import PrivateServer
from tests.support.server import Server, ServerMissing


def pytest_configure() -> None:
    """Takes signals back that were ignored when the tests were started.

    A shell starts background jobs so, and CI may; programs that the tests start would inherit it, and
    Ctrl-C could not end them.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Server]:
    """A server for the whole run, MariaDB or what QD_TEST_SERVER or QD_TEST_DSN name. Don't stop or freeze it."""
    try:
        server = shared_server()
    except ServerMissing as missing:
        without(missing)
    yield server
    if isinstance(server, PrivateServer):
        server.discard()


@pytest.fixture
def own_mariadb() -> Iterator[Callable[..., PrivateServer]]:
    """Starts private servers, of the kind that QD_TEST_SERVER names, which the test may stop, kill and freeze.

    The arguments are new_server's.
    """
    servers: list[PrivateServer] = []

    def start(*options: str, zone: str | None = None) -> PrivateServer:
        try:
            servers.append(new_server(*options, zone=zone))
        except ServerMissing as missing:
            without(missing)
        return servers[-1]

    yield start
    for server in servers:
        server.discard()


@pytest.fixture
def mysql_database(mariadb: Server) -> Iterator[str]:
    """The name of a fresh database with the schema, on the `mariadb` server."""
    name = mariadb.new_database()
    yield name
    mariadb.drop_database(name)


@pytest.fixture
def mysql_config(mariadb: Server, mysql_database: str) -> DatabaseConfig:
    """A fresh database with the schema, as the daemon's user sees it."""
    return mariadb.config(mysql_database)


@pytest.fixture
def sqlite_config(tmp_path: Path) -> DatabaseConfig:
    """A fresh SQLite file, not there yet."""
    return DatabaseConfig(driver="sqlite", path=str(tmp_path / "qd.sqlite3"))
