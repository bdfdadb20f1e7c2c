"""A proxy that greets with a version of its own, as they do: what the server can is found out by trying."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qd.events import ClaimPathChosen
from qd.outcome import Verdict
from qd.store.mysql.database import MySqlDatabase
from qd.store.protocol import ClaimPath, HeldLease, Renewal
from tests.contract.bench import Bench, finished
from tests.contract.test_connections import variables
from tests.support.answering import AnsweringProxy

GREETINGS = [
    "8.0.30",
    "5.7.44-log",
    "8.4.4-Vitess",
    "5.5.5-10.3.39-MariaDB",
    "5.5.5-10.11.6-MariaDB-log",
    "11.8.2-MariaDB",
]


@pytest.fixture
def proxy(mariadb_bench: Bench) -> Iterator[AnsweringProxy]:
    assert mariadb_bench.server is not None
    made = AnsweringProxy(mariadb_bench.server.port)
    yield made
    made.close()


@pytest.mark.parametrize("pure", [False, True], ids=["c", "pure"])
@pytest.mark.parametrize("version", GREETINGS)
def test_a_version_that_is_not_the_servers_changes_nothing(
    mariadb_bench: Bench, proxy: AnsweringProxy, version: str, pure: bool
) -> None:
    proxy.version = version
    tls = mariadb_bench.config.tls.model_copy(update={"mode": "disabled"})
    config = mariadb_bench.config.model_copy(update={"port": proxy.port, "tls": tls})
    database = MySqlDatabase(config, mariadb_bench.database._shared.events, pure=pure)
    assert database.check().claim_path is mariadb_bench.again(mariadb_bench.database._shared.events).check().claim_path
    through = Bench("mariadb", config, lambda events: MySqlDatabase(config, events, pure=pure), mariadb_bench.server)
    assert variables(through) == variables(mariadb_bench)
    ids = mariadb_bench.add(3)
    jobs = through.claim(3)
    assert [job.id for job in jobs] == ids
    assert through.store.renew([HeldLease(job.id, job.token, 60.0) for job in jobs]) == [Renewal.RENEWED] * 3
    assert through.store.settle([finished(job) for job in jobs]) == [Verdict.SETTLED] * 3
    through.close()


def test_the_path_is_found_out_again_where_another_server_answers(skipping_bench: Bench, proxy: AnsweringProxy) -> None:
    """A proxy that was switched over to a server that lacks SKIP LOCKED, and back."""
    tls = skipping_bench.config.tls.model_copy(update={"mode": "disabled"})
    config = skipping_bench.config.model_copy(update={"port": proxy.port, "tls": tls})
    database = MySqlDatabase(config, skipping_bench.database._shared.events)
    store = skipping_bench.new_store("switched", database)
    for refused, path in [(None, ClaimPath.SKIP_LOCKED), (1064, ClaimPath.CONDITIONAL), (1064, ClaimPath.CONDITIONAL)]:
        proxy.refusal = lambda talk, statement, refused=refused: refused if b"SKIP LOCKED" in statement else None  # type: ignore[misc]
        (job_id,) = skipping_bench.add(1)
        proxy.cut_all()
        assert [job.id for job in skipping_bench.claim(1, store)] == [job_id]
        assert database.info().claim_path is path
    assert [event.claim_path for event in skipping_bench.events(ClaimPathChosen)] == ["skip_locked", "conditional"]
