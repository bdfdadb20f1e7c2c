"""Fixtures of the tests of what applications call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.contract.enqueue.callers import CALLERS, Caller, sqlite_caller
from tests.support.server import Server


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
    if request.param == "sqlite":
        caller = sqlite_caller(tmp_path / "qd.sqlite3")
    else:
        mariadb = request.getfixturevalue("mariadb")
        caller = CALLERS[request.param](mariadb, request.getfixturevalue("mysql_database"))
    yield caller
    with suppress(Exception):  # a test may have broken it on purpose
        caller.connection.close()
