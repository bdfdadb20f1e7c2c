"""Tables that somebody changed, or that bear qd's names by chance: told by name, before anything is done to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from qd.errors import SetupWrong, TransactionFailed
from qd.events import Events
from qd.store import open_database
from qd.store.dialect import MYSQL, SQLITE
from qd.store.schema import migrate, schema_state
from tests.contract.bench import Bench
from tests.contract.test_schema_checks import Percent
from tests.support.changing import changing
from tests.support.server import Server

STRANGERS = [
    "CREATE TABLE qd_jobs (id INT PRIMARY KEY, title TEXT)",
    "CREATE TABLE qd_failed_jobs (id INT PRIMARY KEY, job_id INT, queue TEXT)",
    "CREATE TABLE qd_daemons (name VARCHAR(9) PRIMARY KEY)",
]
EMPTY = "CREATE TABLE qd_schema (version INT NOT NULL PRIMARY KEY, compatible_from INT NOT NULL)"
"""As an interrupted migration leaves it."""


@pytest.fixture
def empty(mariadb: Server) -> Iterator[str]:
    """A database without tables."""
    name = mariadb.new_database(schema=False)
    yield name
    mariadb.drop_database(name)


def tables(server: Server, database: str) -> list[Any]:
    """Every column of every table, and what stands in qd_schema."""
    columns = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2"
    return [*server.run(columns, (database,)), *server.run("SELECT * FROM qd_schema", database=database)]


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_strangers_table_beside_an_empty_qd_schema_is_refused_and_left_alone(
    mariadb: Server, empty: str, stranger: str
) -> None:
    for statement in (EMPTY, stranger):
        mariadb.run(statement, database=empty)
    before = tables(mariadb, empty)
    refusal = pytest.raises(SetupWrong, match=r"qd_\w+ has no column .*isn't qd's")
    with closing(mariadb.connect(empty, user="qd_migrator")) as connection, refusal as refused:
        migrate(connection.cursor(buffered=True), MYSQL)
    assert "\n" not in str(refused.value)
    assert tables(mariadb, empty) == before


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_strangers_table_in_an_sqlite_file_is_refused_too(tmp_path: Path, stranger: str) -> None:
    with closing(sqlite3.connect(tmp_path / "qd.sqlite3", isolation_level=None)) as connection:
        cursor = Percent(connection.cursor())
        for statement in (EMPTY, stranger):
            cursor.execute(statement)
        with pytest.raises(SetupWrong, match=r"qd_\w+ has no column"):
            migrate(cursor, SQLITE)
        assert connection.execute("SELECT COUNT(*) FROM qd_schema").fetchone() == (0,)


@pytest.mark.parametrize(
    ("table", "column"), [("qd_jobs", "crashes"), ("qd_failed_jobs", "traceback"), ("qd_daemons", "host")]
)
def test_a_column_that_was_lost_is_named_before_any_work_begins(bench: Bench, table: str, column: str) -> None:
    bench.database.check()
    bench.sql(f"ALTER TABLE {table} DROP COLUMN {column}")
    database = bench.again(Events())
    for act in (database.schema, database.check):
        with pytest.raises(SetupWrong, match=f"{table} has no column {column}") as refused:
            act()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("table", ["qd_jobs", "qd_daemons", "qd_schema"])
def test_a_table_that_is_being_changed_is_not_called_lost(mariadb_bench: Bench, table: str) -> None:
    mariadb_bench.database.check()
    database = mariadb_bench.again_with(statement_timeout=1.0).database
    assert mariadb_bench.server is not None
    with changing(mariadb_bench.server, mariadb_bench.config.name, table):
        for act in (database.schema, database.check):
            with suppress(TransactionFailed):  # MySQL, which keeps its dictionary in tables, can tell
                act()
    assert database.schema().pending == []


def test_what_a_newer_qd_has_dropped_is_its_own_affair(mariadb_bench: Bench) -> None:
    mariadb_bench.sql("ALTER TABLE qd_jobs DROP COLUMN history")
    mariadb_bench.sql("UPDATE qd_schema SET version = 99, compatible_from = 99")
    assert mariadb_bench.database.schema().version == 99
    with pytest.raises(SetupWrong, match="upgrade qd"):
        mariadb_bench.database.check()


def test_more_columns_than_ours_are_no_fault(mariadb_bench: Bench) -> None:
    mariadb_bench.sql("ALTER TABLE qd_jobs ADD COLUMN ours_to_come INT NULL")
    assert mariadb_bench.database.check().claim_path is not None
    with mariadb_bench.stranger() as cursor:
        assert schema_state(cursor, MYSQL).pending == []
        assert open_database(mariadb_bench.config, Events()).schema().version == 1
