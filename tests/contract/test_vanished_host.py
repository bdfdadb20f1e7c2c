"""A host that vanishes in the middle of a transaction: the server hears no goodbye, and ends it by its own limit."""

from __future__ import annotations

from contextlib import closing

from qd.store.mysql.connection import connect
from tests.contract.bench import Bench
from tests.support.proxy import FaultProxy
from tests.support.waiting import wait_for


def test_the_rows_of_a_host_that_vanished_in_a_transaction_are_free_again_after_the_servers_limit(
    mariadb_bench: Bench,
) -> None:
    server, (job_id,) = mariadb_bench.server, mariadb_bench.add(1)
    assert server is not None
    with closing(FaultProxy(server.port)) as proxy:
        disabled = mariadb_bench.config.tls.model_copy(update={"mode": "disabled"})
        more = {"port": proxy.port, "tls": disabled, "statement_timeout": 2.0}
        connection = connect(mariadb_bench.config.model_copy(update=more), "vanishing")
        if not mariadb_bench.is_mariadb():  # MySQL limits only what is idle; the limit itself is held elsewhere
            connection.cursor.execute("SET SESSION wait_timeout = 2")
        connection.cursor.execute("SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", (job_id,))
        assert not free(mariadb_bench, job_id)
        end = proxy.forsake()
        wait_for(lambda: free(mariadb_bench, job_id), 30, "the row's lock to be gone")
        end()
        connection.discard()


def free(bench: Bench, job_id: int) -> bool:
    """Whether a stranger can lock the row at once."""
    with bench.stranger("SET SESSION innodb_lock_wait_timeout = 1") as cursor:
        try:
            cursor.execute("SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", (job_id,))
        except Exception as error:
            assert getattr(error, "errno", None) == 1205, error
            return False
        return bool(cursor.fetchall())
