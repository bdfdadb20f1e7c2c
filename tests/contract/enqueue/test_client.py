"""The client: enqueues in transactions of its own, wakes daemons, runs jobs here."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from enum import Enum
from pathlib import Path

import pytest

import qd
from qd.config.model import Config, DatabaseConfig, QueueConfig, WorkerConfig
from qd.errors import BadInput, ConfigError, ConnectionLost, SetupWrong
from qd.events import Events
from qd.registry import REGISTRY
from qd.store import open_database
from qd.store.protocol import Filter, JobRow
from qd.waking import WakeSocket
from tests.support.server import Server
from tests.support.waiting import wait_for


@pytest.fixture(params=["mysql", "sqlite"])
def config(request: pytest.FixtureRequest) -> Config:
    """A configuration with a fresh database."""
    database: DatabaseConfig = request.getfixturevalue(f"{request.param}_config")
    if request.param == "sqlite":
        open_database(database, Events()).migrate()
    queues = {"default": QueueConfig(), "mails": QueueConfig()}
    return Config(database=database, queues=queues, workers=(WorkerConfig(queues=("default", "mails")),))


@pytest.fixture
def client(config: Config) -> Iterator[qd.Client]:
    with qd.Client(config) as client:
        yield client


@pytest.fixture(autouse=True)
def ear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WakeSocket]:
    monkeypatch.setenv("QD_RUNTIME_DIR", str(tmp_path / "run"))
    with closing(WakeSocket()) as ear:
        yield ear


def count(config: Config) -> int:
    """Jobs that anybody sees."""
    store = open_database(config.database, Events()).store("test")
    try:
        return store.count_jobs(Filter())[0]
    finally:
        store.close()


def rows(config: Config) -> list[JobRow]:
    store = open_database(config.database, Events()).store("test")
    try:
        return store.list_jobs(Filter(limit=1000))
    finally:
        store.close()


def test_a_job_is_there_when_enqueue_returns_and_the_daemons_are_woken(
    client: qd.Client, config: Config, ear: WakeSocket
) -> None:
    job = client.enqueue("send_email", {"to": 7}, queue="mails", priority="urgent", unique_key="k", max_attempts=4)
    (row,) = rows(config)
    assert (row.id, row.queue, row.type, json.loads(row.payload)) == (job, "mails", "send_email", {"to": 7})
    assert (row.priority, row.unique_key, row.max_attempts, row.state) == (0, "k", 4, "ready")
    assert wait_for(ear.read, 5, "the wake") == {"mails"}


def test_a_job_for_later_wakes_nobody(client: qd.Client, config: Config, ear: WakeSocket) -> None:
    client.enqueue("t", delay=60)
    client.enqueue("t", at=datetime.now(timezone.utc) + timedelta(minutes=2))
    client.enqueue_many([qd.NewJob("t", delay=60)])
    assert [row.state for row in rows(config)] == ["delayed"] * 3
    assert ear.read() == set()


def test_many_jobs_are_one_transaction(client: qd.Client, config: Config, ear: WakeSocket) -> None:
    ids = client.enqueue_many([qd.NewJob("t", n, queue="mails" if n % 2 else "default") for n in range(30)])
    assert [(row.id, row.payload) for row in rows(config)] == [(job_id, str(n)) for n, job_id in enumerate(ids)]
    assert wait_for(ear.read, 5, "the wake") == {"mails", "default"}
    with pytest.raises(BadInput, match="job 1: type"):
        client.enqueue_many([qd.NewJob("t"), qd.NewJob("a b")])
    assert len(rows(config)) == 30


def test_with_each_every_thousand_is_committed_when_it_is_told(
    client: qd.Client, config: Config, ear: WakeSocket
) -> None:
    told: list[int] = []
    seen: list[tuple[int, int]] = []

    def each(ids: list[int]) -> None:
        told.extend(ids)
        seen.append((len(ids), count(config)))

    assert client.enqueue_many((qd.NewJob("t", n, queue="mails") for n in range(2100)), each=each) is None
    assert seen == [(1000, 1000), (1000, 2000), (100, 2100)]
    assert told == sorted(set(told)) and len(told) == 2100
    assert wait_for(ear.read, 5, "the wake") == {"mails"}


def test_with_each_a_bad_job_leaves_what_was_told_and_no_more(client: qd.Client, config: Config) -> None:
    told: list[int] = []
    with pytest.raises(BadInput, match=r"^job 1500: type: "):
        client.enqueue_many((qd.NewJob("t" if n != 1500 else "a b") for n in range(3000)), each=told.extend)
    assert count(config) == len(told) == 1000


def test_a_bad_job_in_a_list_is_found_before_the_first_thousand_is_sent(client: qd.Client, config: Config) -> None:
    jobs = [qd.NewJob("t") for _ in range(1500)] + [qd.NewJob("a b")]
    for each in ({}, {"each": lambda ids: None}):
        with pytest.raises(BadInput, match=r"^job 1500: type: "):
            client.enqueue_many(jobs, **each)
    assert count(config) == 0


def test_a_bad_job_of_an_iterator_leaves_nothing_where_all_is_one_transaction(
    client: qd.Client, config: Config
) -> None:
    with pytest.raises(BadInput, match=r"^job 1500: type: "):
        client.enqueue_many(qd.NewJob("t" if n != 1500 else "a b") for n in range(3000))
    assert count(config) == 0


def test_a_payload_over_the_servers_packet_is_named_by_its_jobs_own_number(
    own_mariadb: Callable[..., Server],
) -> None:
    server = own_mariadb("--max-allowed-packet=1M")
    config, told = Config(database=server.config(server.new_database())), list[int]()
    jobs = (qd.NewJob("t", "x" * 1_048_000 if n == 1001 else n) for n in range(1002))
    with qd.Client(config) as client, pytest.raises(BadInput, match=r"^job 1001: payload: "):
        client.enqueue_many(jobs, each=told.extend)
    assert count(config) == len(told) == 1000


def test_a_taken_unique_key_returns_its_holder(client: qd.Client) -> None:
    first = client.enqueue("t", unique_key="k")
    assert client.enqueue("t", unique_key="k") == first
    assert client.enqueue_many([qd.NewJob("t", unique_key="k")]) == [first]


def test_threads_may_share_a_client(client: qd.Client, config: Config) -> None:
    ids: list[int] = []
    threads = [threading.Thread(target=lambda: ids.extend(client.enqueue("t") for _ in range(20))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ids) == [row.id for row in rows(config)]
    assert len(ids) == 160


def test_a_closed_client_opens_again(client: qd.Client, config: Config) -> None:
    client.enqueue("t")
    client.close()
    client.enqueue("t")
    assert len(rows(config)) == 2


def test_a_killed_connection_is_replaced_unnoticed(mariadb: Server, mysql_config: DatabaseConfig) -> None:
    with qd.Client(Config(database=mysql_config)) as client:
        client.enqueue("t")
        sessions = mariadb.run("SELECT id FROM information_schema.processlist WHERE db = %s", (mysql_config.name,))
        for (session,) in sessions:
            mariadb.run(f"KILL {session}")
        client.enqueue("t")
    assert len(rows(Config(database=mysql_config))) == 2


def test_a_database_out_of_reach_is_a_lost_connection(mysql_config: DatabaseConfig) -> None:
    nowhere = mysql_config.model_copy(update={"host": "127.0.0.1", "port": 1})
    with qd.Client(Config(database=nowhere)) as client, pytest.raises(ConnectionLost):
        client.enqueue("t")


def test_a_database_without_the_tables_says_what_to_run(mariadb: Server) -> None:
    name = mariadb.new_database(schema=False)
    config = mariadb.config(name, user="qd_migrator")
    with qd.Client(Config(database=config)) as client, pytest.raises(SetupWrong, match="qd migrate"):
        client.enqueue("t")
    mariadb.drop_database(name)


def test_drain_runs_what_is_ready_here_and_leaves_what_is_delayed(client: qd.Client, config: Config) -> None:
    seen: list[int] = []
    name = f"drained_{id(seen)}"
    qd.handler(name)(lambda job: seen.append(job.payload))
    client.enqueue_many([qd.NewJob(name, n, queue="mails") for n in range(5)])
    later = client.enqueue(name, 9, queue="mails", delay=60)
    other = client.enqueue(name, 8)
    report = client.drain(["mails"])
    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert (report.succeeded, report.failed) == (5, 0)
    assert [row.id for row in rows(config)] == [later, other]


def test_members_of_an_enum_name_queues_and_types_everywhere(client: qd.Client, config: Config) -> None:
    class Name(str, Enum):
        MAILS = "mails"
        SEND = "sent_by_enum"

    seen: list[str] = []
    qd.handler(Name.SEND, queues=[Name.MAILS])(lambda job: seen.append(f"{job.queue} {job.type}"))
    try:
        client.enqueue(Name.SEND, queue=Name.MAILS)
        client.enqueue_many([qd.NewJob(Name.SEND, queue=Name.MAILS), qd.NewJob("sent_by_enum", queue="mails")])
        report = client.drain([Name.MAILS])
        assert client.drain(Name.MAILS).succeeded == 0
        handler = REGISTRY.get("sent_by_enum")
        assert handler and [f"{name!s}" for name in (handler.name, *(handler.queues or ()))] == [
            "sent_by_enum",
            "mails",
        ]
    finally:
        REGISTRY.remove("sent_by_enum")
    assert seen == ["mails sent_by_enum"] * 3
    assert (report.succeeded, count(config)) == (3, 0)


def test_a_client_is_made_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "qd.yaml"
    file.write_text(f"database: {{driver: sqlite, path: {tmp_path / 'qd.sqlite3'}}}\n")
    open_database(DatabaseConfig(driver="sqlite", path=str(tmp_path / "qd.sqlite3")), Events()).migrate()
    with qd.Client.from_config(str(file)) as client:
        assert client.enqueue("t") == 1
    with pytest.raises(ConfigError):
        qd.Client.from_config(str(tmp_path / "none.yaml"))
