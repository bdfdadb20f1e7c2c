"""A connection that is lost at any step of being opened is an outage like any other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qd.errors import ConnectionLost
from qd.store.mysql.database import MySqlDatabase
from tests.contract.bench import Bench
from tests.support.proxy import FaultProxy, Link, Rule


@pytest.fixture
def proxy(mariadb_bench: Bench) -> Iterator[FaultProxy]:
    assert mariadb_bench.server is not None
    made = FaultProxy(mariadb_bench.server.port)
    yield made
    made.close()


@pytest.mark.parametrize("pure", [False, True], ids=["c", "pure"])
@pytest.mark.parametrize("how", ["before", "after"])
def test_no_step_of_opening_a_connection_fails_in_a_way_of_its_own(
    mariadb_bench: Bench, proxy: FaultProxy, how: str, pure: bool
) -> None:
    tls = mariadb_bench.config.tls.model_copy(update={"mode": "disabled"})
    config = mariadb_bench.config.model_copy(update={"port": proxy.port, "tls": tls, "statement_timeout": 5.0})
    database = MySqlDatabase(config, mariadb_bench.database._shared.events, pure=pure)
    step, lost = 0, True
    while lost:
        step += 1
        proxy.rule = _cutting(step, how)
        store = database.store("cut")
        try:
            store.now()
            lost = False
        except ConnectionLost:
            pass
        finally:
            proxy.rule = _cutting(0, how)
            store.close()
    assert proxy.cuts > 6


def _cutting(step: int, how: str) -> Rule:
    def rule(link: Link, statement: bytes) -> str | None:
        return how if link.packets == step else None

    return rule
