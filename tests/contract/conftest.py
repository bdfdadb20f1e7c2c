"""The store suite's fixtures: every test with `bench` runs over SQLite and MariaDB, both claim paths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from qd.config.model import DatabaseConfig
from qd.events import Events
from qd.store.mysql.database import MySqlDatabase
from qd.store.protocol import ClaimPath
from qd.store.sqlite.database import SqliteDatabase
from tests.contract.bench import Bench
from tests.contract.engine_shop import Shop
from tests.support.server import Server

SERVER_KINDS = ("mariadb", "conditional")


@pytest.fixture(params=["sqlite", *SERVER_KINDS])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A fresh database of each kind."""
    made = _sqlite(request) if request.param == "sqlite" else _server(request, request.param)
    yield made
    made.close()


@pytest.fixture
def shop(bench: Bench) -> Iterator[Shop]:
    """An engine on each of them, to be started; stopped after the test."""
    made = Shop(bench)
    yield made
    made.close()


@pytest.fixture(params=SERVER_KINDS)
def server_bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A fresh database on MariaDB, claims with SKIP LOCKED and without."""
    made = _server(request, request.param)
    yield made
    made.close()


@pytest.fixture
def mariadb_bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A fresh database on MariaDB as it is."""
    made = _server(request, "mariadb")
    yield made
    made.close()


@pytest.fixture
def skipping_bench(mariadb_bench: Bench) -> Bench:
    """A fresh database on a server that has SKIP LOCKED."""
    if mariadb_bench.again(Events()).check().claim_path is not ClaimPath.SKIP_LOCKED:
        pytest.skip("this server has no SKIP LOCKED, and the test is about those that have")
    return mariadb_bench


@pytest.fixture
def sqlite_bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A fresh SQLite database."""
    made = _sqlite(request)
    yield made
    made.close()


def _sqlite(request: pytest.FixtureRequest) -> Bench:
    config: DatabaseConfig = request.getfixturevalue("sqlite_config")
    SqliteDatabase(config, Events()).migrate()
    return Bench("sqlite", config, partial(SqliteDatabase, config))


def _server(request: pytest.FixtureRequest, kind: str) -> Bench:
    server: Server = request.getfixturevalue("mariadb")
    config: DatabaseConfig = request.getfixturevalue("mysql_config")
    config = config.model_copy(update={"statement_timeout": 6.0})  # so that a lock is waited for for 1 s, not for 3
    path = ClaimPath.CONDITIONAL if kind == "conditional" else None
    return Bench(kind, config, partial(MySqlDatabase, config, claim_path=path), server)
