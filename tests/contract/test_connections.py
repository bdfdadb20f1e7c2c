"""Connections: what they are pinned to, how each kind of loss is met, and that nothing waits without end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from qd.clock import monotonic
from qd.errors import ConnectionLost, DataRefused, QdError, SetupWrong, StoreError
from qd.events import DatabaseErrorSeen, DatabaseLost, DatabaseRestored, Reconnected
from qd.outcome import Action, Verdict
from qd.store.dialect import Cursor
from qd.store.mysql.connection import connect, password
from qd.store.mysql.database import MySqlDatabase
from qd.store.store import SqlStore
from tests.contract.bench import Bench, ended, finished
from tests.contract.cutting import CuttingProxy
from tests.support.waiting import wait_for

PINNED = (
    "time_zone", "sql_mode", "innodb_lock_wait_timeout", "lock_wait_timeout", "character_set_connection",
    "collation_connection", "character_set_results", "wait_timeout", "autocommit",
)  # fmt: skip
BY_SERVER = {True: ("tx_isolation", "max_statement_time"), False: ("transaction_isolation", "max_execution_time")}
"""What MariaDB, and what MySQL, calls the isolation and the longest time of a statement."""


def variables(bench: Bench) -> dict[str, Any]:
    """What the store's own session is set to."""
    names = [*PINNED, *BY_SERVER[bench.is_mariadb()]]

    def work(cursor: Cursor) -> dict[str, Any]:
        cursor.execute(f"SELECT {', '.join('@@session.' + name for name in names)}")
        return dict(zip([*PINNED, "isolation", "longest"], cursor.fetchone(), strict=True))

    return bench.store._session.transaction(work)


def connection_id(store: SqlStore) -> int:
    """The server's number of the store's connection."""

    def work(cursor: Cursor) -> int:
        cursor.execute("SELECT CONNECTION_ID()")
        return int(cursor.fetchone()[0])

    return store._session.transaction(work)


def kill(bench: Bench, store: SqlStore) -> None:
    """Ends the store's connection from outside, and waits until it is gone."""
    number = connection_id(store)
    with bench.stranger(f"KILL {number}") as cursor:

        def gone() -> bool:
            cursor.execute("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %s", (number,))
            return bool(cursor.fetchall() == [(0,)])

        wait_for(gone, 5, "the killed connection to be gone")


def test_every_setting_is_pinned_and_pinned_again_after_a_reconnect(mariadb_bench: Bench) -> None:
    assert mariadb_bench.server is not None
    mariadb_bench.server.run("SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'")
    try:
        before = variables(mariadb_bench)
        kill(mariadb_bench, mariadb_bench.store)
        assert variables(mariadb_bench) == before
    finally:
        mariadb_bench.server.run("SET GLOBAL sql_mode = DEFAULT")
    assert (before["isolation"], before["time_zone"], before["autocommit"]) == ("READ-COMMITTED", "+00:00", 0)
    assert "STRICT_TRANS_TABLES" in before["sql_mode"]
    assert "BACKSLASH" not in before["sql_mode"]
    assert (before["character_set_connection"], before["collation_connection"]) == ("utf8mb4", "utf8mb4_bin")
    assert 1 <= before["innodb_lock_wait_timeout"] <= 3
    assert before["wait_timeout"] == (28_800 if mariadb_bench.is_mariadb() else 300)
    seconds = float(before["longest"]) / (1 if mariadb_bench.is_mariadb() else 1000)
    assert 0 < seconds < mariadb_bench.config.statement_timeout
    assert 0 < before["lock_wait_timeout"] < mariadb_bench.config.statement_timeout


def test_several_statements_in_one_are_refused(mariadb_bench: Bench) -> None:
    with pytest.raises(SetupWrong):
        mariadb_bench.store._session.transaction(lambda cursor: cursor.execute("SELECT 1; SELECT 2"))


def test_a_connection_that_was_killed_while_idle_is_replaced_without_an_error(mariadb_bench: Bench) -> None:
    ids = mariadb_bench.add(2)
    kill(mariadb_bench, mariadb_bench.store)
    (job,) = mariadb_bench.claim(1)
    assert (job.id, job.attempt) == (ids[0], 1)
    kill(mariadb_bench, mariadb_bench.store)
    assert mariadb_bench.store.settle([finished(job)]) == [Verdict.SETTLED]
    assert [event.connection for event in mariadb_bench.events(Reconnected)] == ["test", "test"]
    assert len(mariadb_bench.events(DatabaseLost)) == len(mariadb_bench.events(DatabaseRestored)) == 2
    assert mariadb_bench.database.up()


def test_a_connection_that_idled_past_the_servers_patience_is_replaced_without_an_error(mariadb_bench: Bench) -> None:
    mariadb_bench.store._session.transaction(lambda cursor: cursor.execute("SET SESSION wait_timeout = 1"))
    number = connection_id(mariadb_bench.store)
    gone = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %s"
    wait_for(lambda: mariadb_bench.one(gone, number) == 0, 10, "the server to drop the idle connection")
    assert mariadb_bench.claim() == []


def test_a_connection_that_is_killed_in_mid_transaction_undoes_it_and_tells(mariadb_bench: Bench) -> None:
    mariadb_bench.add(2)
    first, second = mariadb_bench.claim(2)
    ends = [ended(first, Action.RETRY), ended(second, Action.BURY)]
    number = connection_id(mariadb_bench.store)
    caught: list[StoreError] = []

    def settle() -> None:
        try:
            mariadb_bench.store.settle(ends)
        except StoreError as error:
            caught.append(error)

    with mariadb_bench.stranger(f"SELECT id FROM qd_jobs WHERE id = {second.id} FOR UPDATE"):
        settling = threading.Thread(target=settle)
        settling.start()
        wait_for(lambda: mariadb_bench.lock_waits() == 1, 5, "the end to wait for the stranger's lock")
        mariadb_bench.sql(f"KILL {number}")
        settling.join(10)
    assert [type(error) for error in caught] == [ConnectionLost]
    assert not caught[0].outcome_unknown  # type: ignore[attr-defined]
    assert mariadb_bench.row(first.id, "lane", "reserved_by") == (1, first.token)
    assert mariadb_bench.store.settle(ends) == [Verdict.SETTLED] * 2


def test_many_kills_leave_no_connection_behind(mariadb_bench: Bench) -> None:
    count = f"SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{mariadb_bench.config.name}'"
    mariadb_bench.claim()
    before = mariadb_bench.one(count)
    for _ in range(30):
        kill(mariadb_bench, mariadb_bench.store)
        mariadb_bench.claim()
    assert mariadb_bench.one(count) == before


def test_one_outage_is_said_once_over_all_connections(mariadb_bench: Bench) -> None:
    stores = [mariadb_bench.new_store(f"one {number}") for number in range(5)]
    for store in stores:
        store.look(["default"], full=False)
    for store in stores:
        kill(mariadb_bench, store)
    for store in stores:
        store.look(["default"], full=False)
    assert len(mariadb_bench.events(DatabaseLost)) == len(mariadb_bench.events(DatabaseRestored)) == 1
    assert len(mariadb_bench.events(Reconnected)) == 5
    assert [event.kind for event in mariadb_bench.events(DatabaseErrorSeen)] == ["lost"] * 5


def test_a_statement_longer_than_the_packet_is_that_datas_fault_not_an_outage(mariadb_bench: Bench) -> None:
    most = int(mariadb_bench.one("SELECT @@max_allowed_packet"))
    text = "x" * (most + 100)
    with pytest.raises(DataRefused, match="max_allowed_packet"):
        mariadb_bench.store._session.transaction(lambda cursor: cursor.execute("SELECT LENGTH(%s)", (text,)))
    assert mariadb_bench.claim() == []
    assert mariadb_bench.events(DatabaseLost) == []


def test_a_text_that_is_no_unicode_is_that_datas_fault(bench: Bench) -> None:
    with pytest.raises(DataRefused, match="Unicode"):
        bench.store._session.transaction(lambda cursor: cursor.execute("SELECT %s", ("\udcff",)))
    assert bench.claim() == []


@pytest.mark.parametrize("work", [ValueError, KeyError])
def test_what_the_work_raises_itself_undoes_the_transaction_and_goes_up(bench: Bench, work: type[Exception]) -> None:
    (job_id,) = bench.add(1)

    def fail(cursor: Cursor) -> None:
        cursor.execute("UPDATE qd_jobs SET last_error = 'half' WHERE id = %s", (job_id,))
        raise work("mine")

    with pytest.raises(work):
        bench.store._session.transaction(fail)
    assert bench.row(job_id, "last_error") == (None,)
    assert bench.claim(1)[0].id == job_id


def test_attempts_to_connect_are_paced(mariadb_bench: Bench) -> None:
    assert mariadb_bench.server is not None
    proxy = CuttingProxy(mariadb_bench.server.port)
    proxy.refusing = True
    tries = 0

    def count(connect: Callable[[], Any]) -> Callable[[], Any]:
        def counted() -> Any:
            nonlocal tries
            tries += 1
            return connect()

        return counted

    store = MySqlDatabase(
        mariadb_bench.config.model_copy(update={"port": proxy.port}), mariadb_bench.database._shared.events
    ).store("paced")
    session: Any = store._session
    session._connect = count(session._connect)
    until = monotonic() + 1.0
    while monotonic() < until:
        with pytest.raises(StoreError):
            store.look(["default"], full=False)
    proxy.close()
    assert 2 <= tries <= 12


@pytest.mark.parametrize("number", [1045, 1049])
def test_wrong_credentials_and_a_missing_database_are_said_plainly(mariadb_bench: Bench, number: int) -> None:
    wrong = {1045: {"password": "s3cret-and-wrong"}, 1049: {"name": "qd_not_there", "user": None}}[number]
    config = mariadb_bench.config.model_copy(update={k: v for k, v in wrong.items() if v is not None})
    if number == 1049:
        assert mariadb_bench.server is not None
        admin = mariadb_bench.server
        config = config.model_copy(update={"user": admin._admin, "password": admin._password})
    with pytest.raises(SetupWrong) as caught:
        MySqlDatabase(config, mariadb_bench.database._shared.events).check()
    assert caught.value.errno == number
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_table_says_to_migrate(mariadb_bench: Bench) -> None:
    mariadb_bench.sql("DROP TABLE qd_jobs")
    with pytest.raises(SetupWrong, match="qd migrate"):
        mariadb_bench.store._session.transaction(lambda cursor: cursor.execute("SELECT id FROM qd_jobs"))


def test_a_missing_claim_index_says_so(mariadb_bench: Bench) -> None:
    mariadb_bench.store.look(["default"], full=True)
    mariadb_bench.sql("ALTER TABLE qd_jobs DROP INDEX qd_jobs_claim")
    with pytest.raises(SetupWrong, match="index"):
        mariadb_bench.claim()


@pytest.fixture
def secret_file(tmp_path: Any) -> Iterator[Any]:
    path = tmp_path / "qd.db-password"
    path.write_text("change-me\n")
    yield path


def test_the_password_comes_from_a_file_or_the_systemd_credential(
    mariadb_bench: Bench, secret_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = mariadb_bench.config.model_copy(update={"password": None})
    from_file = config.model_copy(update={"password_file": str(secret_file)})
    assert password(from_file) == "change-me"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(secret_file.parent))
    assert password(config) == "change-me"
    with closing(connect(config, "test").raw):
        pass
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    assert password(config) == ""


def test_a_login_without_any_password_says_where_one_was_looked_for(
    mariadb_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    config = mariadb_bench.config.model_copy(update={"password": None})
    none = "no password is configured, neither database.password nor database.password_file, nor did a systemd"
    with pytest.raises(SetupWrong, match=f"errno 1045.; {none} credential qd.db-password come: .* isn't set$"):
        connect(config, "test")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    cure = r"a service gets it at its start only: once it is in /etc/credstore, `systemctl restart` \(no reload\)$"
    with pytest.raises(
        SetupWrong, match=f"{none} credential .*: there is none in CREDENTIALS_DIRECTORY, {tmp_path}; {cure}"
    ):
        connect(config, "test")
    with pytest.raises(SetupWrong, match=r"errno 1045\); check database.user and its password$"):
        connect(config.model_copy(update={"password": "wrong"}), "test")


@pytest.mark.parametrize("content", ["", "\n", "change-me\n\n", "change-me\r\n\r\n", "a\0b"])
def test_a_password_file_counts_as_the_documentation_says(mariadb_bench: Bench, secret_file: Any, content: str) -> None:
    secret_file.write_bytes(content.encode())
    config = mariadb_bench.config.model_copy(update={"password": None, "password_file": str(secret_file)})
    with pytest.raises(SetupWrong):
        connect(config, "test")


def test_a_password_file_that_cannot_be_read_is_said_by_its_name(mariadb_bench: Bench) -> None:
    config = mariadb_bench.config.model_copy(update={"password": None, "password_file": "/nowhere/secret"})
    with pytest.raises(QdError, match="/nowhere/secret"):
        connect(config, "test")


def test_tls_that_is_required_is_spoken_or_the_server_refused(mariadb_bench: Bench) -> None:
    required = mariadb_bench.config.tls.model_copy(update={"mode": "required"})
    config = mariadb_bench.config.model_copy(update={"tls": required})
    if mariadb_bench.sql("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1]:
        connect(config, "test").discard()
        return
    with pytest.raises(SetupWrong, match="TLS"):
        connect(config, "test")


def test_a_password_that_the_server_takes_only_over_tls_is_a_wrong_setup_that_says_so(mariadb_bench: Bench) -> None:
    server = mariadb_bench.server
    assert server is not None
    if mariadb_bench.is_mariadb():
        pytest.skip("MariaDB's accounts take their password without TLS")
    disabled = mariadb_bench.config.tls.model_copy(update={"mode": "disabled"})
    config = mariadb_bench.config.model_copy(update={"tls": disabled})
    server.run("FLUSH PRIVILEGES")  # it forgets who logged in over TLS, as at its start
    with pytest.raises(SetupWrong, match=r"database\.tls\.mode"):
        connect(config, "test")
    server.log_in_once()
    connect(config, "test").discard()
