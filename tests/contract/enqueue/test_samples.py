"""Every sample of docs/enqueueing.md, run in its order, as an application would run it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pymysql
import pytest
import yaml

import qd
from qd.config.model import Config, DatabaseConfig
from qd.registry import REGISTRY
from tests.support.server import PASSWORD, ROOT, Server, statements

PAGE = (ROOT / "docs" / "enqueueing.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
SQL = [code for language, code in BLOCKS if language == "sql"]
PHP = [statement for _, code in BLOCKS for _, statement in re.findall(r"prepare\(([\"'])(INSERT .*?)\1\)", code)]
ORDERS = "CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT NOT NULL, paid INT NOT NULL DEFAULT 0)"


@pytest.fixture
def shop(mariadb: Server, mysql_database: str) -> str:
    """A database with an application's table beside qd's, and the application's rights on both."""
    mariadb.run(ORDERS, database=mysql_database)
    mariadb.run(f"GRANT ALL ON {mysql_database}.orders TO '{mariadb.prefix}shop'@'%'")
    mariadb.run(f"GRANT DELETE ON {mysql_database}.qd_jobs TO '{mariadb.prefix}shop'@'%'")
    return mysql_database


@pytest.fixture(params=["mysql.connector", "pymysql"])
def connection(request: pytest.FixtureRequest, mariadb: Server, shop: str) -> Iterator[Any]:
    if request.param == "pymysql":
        place = {"host": mariadb.host, "port": mariadb.port, "database": shop}
        opened: Any = pymysql.connect(user=f"{mariadb.prefix}shop", password=PASSWORD, **place)
    else:
        opened = mariadb.connect(shop, user="shop")
    with closing(opened):
        yield opened


def write_config(path: Path, database: DatabaseConfig) -> None:
    place = {key: getattr(database, key) for key in ("driver", "host", "port", "name", "user")}
    path.write_text(yaml.safe_dump({"database": {**place, "password": PASSWORD}}))


def test_the_python_samples_run(
    connection: Any, mariadb: Server, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = mariadb.config(shop)
    write_config(tmp_path / "qd.yaml", config)
    place = {"host": mariadb.host, "port": mariadb.port, "database": shop}
    names: dict[str, Any] = {"connection": connection}
    names["SHOP"] = {**place, "user": f"{mariadb.prefix}shop", "password": PASSWORD}
    try:
        for code in PYTHON:
            exec(compile(code, "docs/enqueueing.md", "exec"), names)
        qd.enqueue(names["cursor"], "book_payment", {"order": 1})
        connection.commit()
        mariadb.run("DELETE FROM qd_jobs WHERE type <> 'book_payment'", database=shop)
        report = qd.Client(Config(database=config)).drain(["default"])
    finally:
        REGISTRY._handlers.pop("book_payment", None)  # the registry is the process's, other tests have their own
    assert (report.succeeded, report.failed) == (1, 0)
    assert mariadb.run("SELECT paid FROM orders WHERE id = 1", database=shop) == [(1,)]
    assert mariadb.run("SELECT COUNT(*) FROM qd_jobs WHERE type <> 'qd.post'", database=shop) == [(0,)]


def test_the_python_samples_enqueue_what_they_say(connection: Any, mariadb: Server, shop: str) -> None:
    names: dict[str, Any] = {"connection": connection}
    for code in PYTHON[:2]:
        exec(compile(code, "docs/enqueueing.md", "exec"), names)
    counted = mariadb.run("SELECT queue, type, COUNT(*) FROM qd_jobs GROUP BY queue, type", database=shop)
    assert counted == [("mails", "send_email", 5001)]
    assert names["ids"] == sorted(set(names["ids"])) and names["job_id"] < names["ids"][0]


def test_the_sql_samples_run_in_a_lax_session_of_another_zone(mariadb: Server, shop: str) -> None:
    mariadb.run("INSERT INTO orders (customer) VALUES (7), (8)", database=shop)
    with closing(mariadb.connect(shop, user="shop")) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SET time_zone = '-07:00', sql_mode = ''")
        for code in SQL[:-1]:
            for statement in statements(code):
                cursor.execute(statement)
                if cursor.description:
                    assert cursor.fetchall()
        connection.commit()
    counted = mariadb.run("SELECT type, COUNT(*) FROM qd_jobs GROUP BY type ORDER BY type", database=shop)
    assert counted == [("rebuild_index", 2), ("send_email", 6), ("send_reminder", 2)]
    waits = mariadb.run(
        "SELECT TIMESTAMPDIFF(MICROSECOND, created_at, available_at) FROM qd_jobs WHERE type = 'send_reminder'",
        database=shop,
    )
    assert waits == [(300_000_000,), (300_000_000,)]


def test_the_grants_shown_are_those_of_the_file_that_tests_use() -> None:
    assert SQL[-1] == (ROOT / "docs" / "grants.sql").read_text()


def test_the_statements_of_the_php_sample_run(mariadb: Server, shop: str) -> None:
    with closing(mariadb.connect(shop, user="shop")) as connection:
        cursor = connection.cursor()
        for statement, value in zip(PHP, (7, '{"order":1}'), strict=True):
            cursor.execute(statement.replace("?", "%s"), (value,))
        connection.commit()
    assert mariadb.run("SELECT queue, payload FROM qd_jobs", database=shop) == [("mails", '{"order":1}')]


def test_every_block_is_run_by_one_of_these_tests() -> None:
    assert {language for language, _ in BLOCKS} == {"python", "sql", "php"}
    assert len(PYTHON) >= 6 and len(SQL) >= 7
