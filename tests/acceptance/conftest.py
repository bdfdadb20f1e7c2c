"""Fixtures of the tests that drive real `qd run` processes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Qd
from tests.support.mariadb import MariaDB
from tests.support.server import Server


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
