"""The claim path is found by behaviour, again where the server changed, and never from a passing error."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress
from typing import Any

import pytest

from qd.errors import SetupWrong, StoreError, TransactionFailed
from qd.events import ClaimPathChosen
from qd.outcome import Verdict
from qd.store.mysql.database import MySqlDatabase
from qd.store.mysql.probe import probe
from qd.store.posts import PROBE_QUEUE
from qd.store.protocol import ClaimPath
from tests.contract.bench import Bench, finished
from tests.contract.cutting import CuttingProxy
from tests.support.proxy import FaultProxy
from tests.support.waiting import wait_for


class OldServer(FaultProxy):
    """A proxy that makes a server look like one without SKIP LOCKED.

    Attributes:
        how: `knows` passes all on; `refuses` breaks the words, so that the server answers 1064;
            `ignores` takes them out, so that nothing is skipped.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.how = "knows"
        self.change = self._changed

    def _changed(self, data: bytes) -> bytes:
        """The same number of bytes: the packet's head tells it."""
        if self.how == "refuses":
            return data.replace(b"SKIP LOCKED", b"SKAP LOCKED")
        if self.how == "ignores":
            return data.replace(b"FOR UPDATE SKIP LOCKED", b" " * len(b"FOR UPDATE SKIP LOCKED"))
        return data


@pytest.fixture
def old(mariadb_bench: Bench) -> Iterator[tuple[OldServer, MySqlDatabase]]:
    assert mariadb_bench.server is not None
    proxy = OldServer(mariadb_bench.server.port)
    tls = mariadb_bench.config.tls.model_copy(update={"mode": "disabled"})
    config = mariadb_bench.config.model_copy(update={"port": proxy.port, "tls": tls})
    yield proxy, MySqlDatabase(config, mariadb_bench.database._shared.events)
    proxy.close()


def _chosen(bench: Bench) -> list[str]:
    return [event.claim_path for event in bench.events(ClaimPathChosen)]


def test_a_server_that_skips_locked_rows_is_known_as_such_and_said_once(skipping_bench: Bench) -> None:
    assert skipping_bench.database.info().claim_path is None
    info = skipping_bench.database.check()
    assert info.claim_path is ClaimPath.SKIP_LOCKED
    assert re.fullmatch(r"(MariaDB|MySQL) \d+\.\d+\.\d+", info.server)
    assert info.connector in ("c", "pure")
    skipping_bench.database.check()
    skipping_bench.claim()
    assert _chosen(skipping_bench) == ["skip_locked"]


@pytest.mark.parametrize("how", ["refuses", "ignores"])
def test_a_server_that_does_not_skip_is_claimed_from_conditionally(
    mariadb_bench: Bench, old: tuple[OldServer, MySqlDatabase], how: str
) -> None:
    proxy, database = old
    proxy.how = how
    assert database.check().claim_path is ClaimPath.CONDITIONAL
    ids = mariadb_bench.add(3)
    store = mariadb_bench.new_store("old", database)
    jobs = mariadb_bench.claim(3, store)
    assert [job.id for job in jobs] == ids
    assert store.settle([finished(job) for job in jobs]) == [Verdict.SETTLED] * 3
    assert _chosen(mariadb_bench) == ["conditional"]


def test_a_server_that_forgets_skip_locked_is_claimed_from_in_that_same_claim(
    skipping_bench: Bench, old: tuple[OldServer, MySqlDatabase]
) -> None:
    proxy, database = old
    store = skipping_bench.new_store("old", database)
    first, *rest = skipping_bench.add(4)
    assert [job.id for job in skipping_bench.claim(1, store)] == [first]
    proxy.how = "refuses"
    assert [job.id for job in skipping_bench.claim(3, store)] == rest
    assert _chosen(skipping_bench) == ["skip_locked", "conditional"]
    assert database.info().claim_path is ClaimPath.CONDITIONAL


def test_the_probe_leaves_no_row_behind_and_shows_none(mariadb_bench: Bench) -> None:
    mariadb_bench.database.check()
    assert mariadb_bench.one("SELECT COUNT(*) FROM qd_jobs") == 0
    mariadb_bench.sql(f"INSERT INTO qd_jobs (queue, type, lane) VALUES ('{PROBE_QUEUE}', 'qd.post', 2)")
    assert mariadb_bench.store.depths() == []
    mariadb_bench.sql("UPDATE qd_jobs SET created_at = NOW(6) - INTERVAL 2 HOUR")
    probe(mariadb_bench.database._connect)
    assert mariadb_bench.one("SELECT COUNT(*) FROM qd_jobs") == 0


def test_probes_side_by_side_do_not_disturb_each_other(skipping_bench: Bench) -> None:
    paths: list[ClaimPath] = []
    threads = [
        threading.Thread(target=lambda: paths.append(probe(skipping_bench.database._connect)[0])) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert paths == [ClaimPath.SKIP_LOCKED] * 6


def _failing(bench: Bench, break_it: Callable[[Any], None], mend: Callable[[Any], None]) -> None:
    """While it is broken nothing is found out; once it is mended the path is."""
    database = bench.again(bench.database._shared.events)
    break_it(bench)
    try:
        with pytest.raises(StoreError):
            database.check()
        assert database.info().claim_path is None
    finally:
        mend(bench)
    _until_known(database)
    assert database.info().claim_path is ClaimPath.SKIP_LOCKED


def _until_known(database: MySqlDatabase) -> None:
    def known() -> bool:
        with suppress(StoreError):
            database.check()
        return database.info().claim_path is not None

    wait_for(known, 20, "the path to be found out")


def test_a_missing_right_or_table_settles_nothing(skipping_bench: Bench) -> None:
    _failing(
        skipping_bench,
        lambda bench: bench.sql("RENAME TABLE qd_jobs TO hidden"),
        lambda bench: bench.sql("RENAME TABLE hidden TO qd_jobs"),
    )


@pytest.mark.parametrize(("times", "known"), [(2, True), (9, False)])
def test_a_deadlock_that_undid_the_probe_is_tried_again_and_not_without_end(
    skipping_bench: Bench, times: int, known: bool
) -> None:
    """As beside a rebuild of the table; a number that was given out isn't taken back with the transaction."""
    skipping_bench.sql("CREATE TABLE tried (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB")
    skipping_bench.sql(
        "CREATE TRIGGER undone BEFORE INSERT ON qd_jobs FOR EACH ROW BEGIN INSERT INTO tried VALUES (NULL); "
        f"IF (SELECT MAX(id) FROM tried) <= {times} THEN "
        "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found'; END IF; END"
    )
    database = skipping_bench.again(skipping_bench.database._shared.events)
    with nullcontext() if known else pytest.raises(TransactionFailed):
        database.check()
    assert (database.info().claim_path is ClaimPath.SKIP_LOCKED) is known
    skipping_bench.sql("INSERT INTO tried VALUES (NULL)")
    assert skipping_bench.one("SELECT MAX(id) FROM tried") == 3 + 1


def test_a_lock_that_is_not_given_in_time_settles_nothing(skipping_bench: Bench) -> None:
    assert skipping_bench.server is not None
    with closing(skipping_bench.server.connect(skipping_bench.config.name)) as connection:
        cursor = connection.cursor()
        _failing(
            skipping_bench.again_with(statement_timeout=2.0),
            lambda bench: cursor.execute("LOCK TABLES qd_jobs WRITE"),
            lambda bench: cursor.execute("UNLOCK TABLES"),
        )


def test_a_connection_that_is_cut_settles_nothing(skipping_bench: Bench) -> None:
    assert skipping_bench.server is not None
    proxy = CuttingProxy(skipping_bench.server.port)
    tls = skipping_bench.config.tls.model_copy(update={"mode": "disabled"})
    config = skipping_bench.config.model_copy(update={"port": proxy.port, "tls": tls})
    database = MySqlDatabase(config, skipping_bench.database._shared.events)
    database.schema()
    proxy.cut = "before"
    with pytest.raises(StoreError):
        database.check()
    assert database.info().claim_path is None
    _until_known(database)
    assert database.info().claim_path is ClaimPath.SKIP_LOCKED
    proxy.close()


def test_another_servers_version_makes_the_path_unknown_again(skipping_bench: Bench) -> None:
    skipping_bench.database.check()
    skipping_bench.claim()
    paths = skipping_bench.database._paths
    paths.server_seen(paths._version)
    assert paths.known is ClaimPath.SKIP_LOCKED
    paths.server_seen("10.5.8-MariaDB")
    assert paths.known is None
    skipping_bench.add(1)
    assert len(skipping_bench.claim()) == 1
    assert paths.known is ClaimPath.SKIP_LOCKED


def test_a_wrong_schema_is_refused_before_anything_is_probed(mariadb_bench: Bench) -> None:
    mariadb_bench.sql("UPDATE qd_schema SET version = 99, compatible_from = 99")
    with pytest.raises(SetupWrong, match="upgrade qd"):
        mariadb_bench.database.check()
    assert mariadb_bench.database.info().claim_path is None
