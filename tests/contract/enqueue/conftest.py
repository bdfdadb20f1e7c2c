"""Fixtures of the tests of what applications call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.contract.enqueue.callers import CALLERS, Caller, sqlite_caller
from tests.support.server import Server


@pytest.fixture(params=["connector", "sqlite"])
def plain_caller(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Caller]:
    """As caller, but one cursor for each kind of database."""
    caller = _open(request, tmp_path)
    yield caller
    caller.connection.close()


@pytest.fixture(params=CALLERS)
def mysql_caller(request: pytest.FixtureRequest, mariadb: Server, mysql_database: str) -> Iterator[Caller]:
    """An application with each kind of cursor on a fresh database, as the account `shop`."""
    caller = CALLERS[request.param](mariadb, mysql_database)
    yield caller
    with suppress(Exception):  # a test may have broken it on purpose
        caller.connection.close()


@pytest.fixture(params=[*CALLERS, "sqlite"])
def caller(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Caller]:
    """As mysql_caller, and sqlite3's."""
    caller = _open(request, tmp_path)
    yield caller
    with suppress(Exception):  # a test may have broken it on purpose
        caller.connection.close()


def _open(request: pytest.FixtureRequest, tmp_path: Path) -> Caller:
    if request.param == "sqlite":
        return sqlite_caller(tmp_path / "qd.sqlite3")
    mariadb = request.getfixturevalue("mariadb")
    return CALLERS[request.param](mariadb, request.getfixturevalue("mysql_database"))
