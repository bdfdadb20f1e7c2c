"""Migrations: equal to schema.sql, safe to repeat, to interrupt and to run twice at once."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from qd.errors import SetupWrong
from qd.store import schema
from qd.store.dialect import MYSQL, SQLITE, Dialect
from qd.store.protocol import SchemaState
from qd.store.schema import COMPATIBLE_FROM, SCHEMA_VERSION, TABLES, check_compatible, migrate, migrations, schema_state
from tests.contract.test_schema_checks import Percent
from tests.support.server import ROOT, Server, statements
from tests.support.waiting import wait_for

PACKAGED = ROOT / "qd" / "store" / "migrations"
LAST = [migration.name for migration in migrations(MYSQL)]
EXPAND = """-- A column that older code needn't know.
-- compatible_from: 1
ALTER TABLE qd_jobs ADD COLUMN cost INT UNSIGNED NOT NULL DEFAULT 1;
ALTER TABLE qd_jobs ADD KEY qd_jobs_cost (queue, cost);
"""
EXPAND_SQLITE = """-- compatible_from: 1
ALTER TABLE qd_jobs ADD COLUMN cost INTEGER NOT NULL DEFAULT 1;
CREATE INDEX qd_jobs_cost ON qd_jobs (queue, cost);
"""


@pytest.fixture
def empty(mariadb: Server) -> Iterator[str]:
    """A database without tables, on which the migrator has its rights."""
    name = mariadb.new_database(schema=False)
    yield name
    mariadb.drop_database(name)


@contextmanager
def migrator(server: Server, database: str) -> Iterator[Any]:
    with closing(server.connect(database, user="qd_migrator")) as connection:
        yield connection.cursor(buffered=True)


@contextmanager
def embedded(path: Path) -> Iterator[Percent]:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as connection:
        yield Percent(connection.cursor())


def with_0002(folder: Path, dialect: Dialect, text: str) -> Path:
    """The package's migrations and one more."""
    shutil.copytree(PACKAGED / dialect.name, folder / dialect.name)
    (folder / dialect.name / f"{SCHEMA_VERSION + 1:04}_cost.sql").write_text(text)
    return folder / dialect.name


DESCRIBED = {
    "columns": "table_name, column_name, ordinal_position, column_default, is_nullable, column_type, extra,"
    " character_set_name, collation_name",
    "statistics": "table_name, index_name, seq_in_index, column_name, non_unique, sub_part, index_type",
    "tables": "table_name, engine, table_collation, row_format",
}


def described(server: Server, database: str) -> dict[str, list[tuple[Any, ...]]]:
    """All that information_schema says of the tables, indexes and checks."""
    found = {
        view: sorted(
            server.run(f"SELECT {columns} FROM information_schema.{view} WHERE table_schema = %s", (database,)), key=str
        )
        for view, columns in DESCRIBED.items()
    }
    checks = server.run(
        "SELECT constraint_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = %s",
        (database,),
    )
    return found | {"checks": sorted(checks, key=str)}


def test_migrations_and_schema_sql_make_the_same(mariadb: Server, mysql_database: str, empty: str) -> None:
    with migrator(mariadb, empty) as cursor:
        assert migrate(cursor, MYSQL) == LAST
    made, loaded = described(mariadb, empty), described(mariadb, mysql_database)
    assert len(made["checks"]) >= 7 and len(made["columns"]) > 40
    assert made == loaded
    rows = [
        mariadb.run("SELECT version, compatible_from FROM qd_schema", database=name) for name in (empty, mysql_database)
    ]
    assert rows[0] == rows[1] == [(SCHEMA_VERSION, migrations(MYSQL)[-1].compatible_from)]


def test_the_packages_constants_are_those_of_its_migrations() -> None:
    for dialect in (MYSQL, SQLITE):
        assert migrations(dialect)[-1].number == SCHEMA_VERSION
    assert COMPATIBLE_FROM <= SCHEMA_VERSION
    assert [each.name for each in migrations(SQLITE)] == LAST


def test_sqlite_has_the_columns_and_indexes_of_schema_sql(mariadb: Server, mysql_database: str, tmp_path: Path) -> None:
    loaded = described(mariadb, mysql_database)
    with embedded(tmp_path / "qd.sqlite3") as cursor:
        assert migrate(cursor, SQLITE) == LAST
        for table in (*schema.TABLES, "qd_schema"):
            rows = [row for row in sorted(loaded["columns"], key=lambda row: row[2]) if row[0] == table]
            columns = [row[1] for row in rows if row[6] != "STORED GENERATED"]  # for clusters, which SQLite has none of
            cursor.execute("SELECT name FROM pragma_table_info(%s)", (table,))
            assert [row[0] for row in cursor.fetchall()] == columns
            indexes = {row[1] for row in loaded["statistics"] if row[0] == table} - {"PRIMARY"}
            cursor.execute("SELECT name FROM pragma_index_list(%s) WHERE origin = 'c'", (table,))
            assert {row[0] for row in cursor.fetchall()} == indexes


def test_migrating_again_does_nothing(mariadb: Server, empty: str, tmp_path: Path) -> None:
    with migrator(mariadb, empty) as cursor:
        assert schema_state(cursor, MYSQL) == SchemaState(0, 0, LAST)
        migrate(cursor, MYSQL)
        before = described(mariadb, empty)
        assert migrate(cursor, MYSQL) == []
        assert described(mariadb, empty) == before
        assert schema_state(cursor, MYSQL) == SchemaState(SCHEMA_VERSION, 1, [])
    with embedded(tmp_path / "qd.sqlite3") as cursor:
        assert schema_state(cursor, SQLITE) == SchemaState(0, 0, LAST)
        assert migrate(cursor, SQLITE) == LAST
        assert migrate(cursor, SQLITE) == []


def at_once(acts: list[Any]) -> list[Any]:
    """Runs all acts at once, each in a thread; their results or errors."""
    results: list[Any] = [None] * len(acts)
    gate = threading.Barrier(len(acts))

    def run(place: int) -> None:
        gate.wait(20)
        try:
            results[place] = acts[place]()
        except Exception as error:  # to be seen by the test, which compares it with a list
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_four_migrations_at_once_apply_each_file_once(mariadb: Server, empty: str) -> None:
    def act() -> list[str]:
        with migrator(mariadb, empty) as cursor:
            return migrate(cursor, MYSQL)

    results = at_once([act] * 4)
    assert sorted(results, key=str) == sorted([LAST, [], [], []], key=str)


def test_four_migrations_of_sqlite_at_once_apply_each_file_once(tmp_path: Path) -> None:
    def act() -> list[str]:
        with embedded(tmp_path / "qd.sqlite3") as cursor:
            return migrate(cursor, SQLITE)

    results = at_once([act] * 4)
    assert sorted(results, key=str) == sorted([LAST, [], [], []], key=str)


def test_a_migration_that_waits_in_vain_for_another_says_so(
    mariadb: Server, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "LOCK_WAIT", 0.0)
    monkeypatch.setattr(schema, "_LOCK_STEP", 0)
    with migrator(mariadb, empty) as first, migrator(mariadb, empty) as second:
        first.execute("SELECT GET_LOCK(CONCAT('qd.migrate.', LEFT(SHA2(DATABASE(), 256), 40)), 1)")
        assert first.fetchall() == [(1,)]
        with pytest.raises(schema.ServerBusy, match="another migration"):
            migrate(second, MYSQL)
    with migrator(mariadb, empty) as again:
        assert wait_for(lambda: migrate(again, MYSQL), 5, "the lock to be free") == LAST


def interrupted_after() -> list[int]:
    return list(range(len(migrations(MYSQL)[0].statements) + 1))


@pytest.mark.parametrize("done", interrupted_after())
def test_an_interrupted_first_migration_is_run_again(
    mariadb: Server, empty: str, mysql_database: str, done: int
) -> None:
    with migrator(mariadb, empty) as cursor:
        for statement in migrations(MYSQL)[0].statements[:done]:
            cursor.execute(statement)
        assert schema_state(cursor, MYSQL).version == 0
        assert migrate(cursor, MYSQL) == LAST
    assert described(mariadb, empty) == described(mariadb, mysql_database)


@pytest.mark.parametrize("done", [0, 1, 2])
def test_an_interrupted_later_migration_is_run_again(
    mariadb: Server, mysql_database: str, tmp_path: Path, done: int
) -> None:
    folder = with_0002(tmp_path, MYSQL, EXPAND)
    with migrator(mariadb, mysql_database) as cursor:
        for statement in statements(EXPAND)[:done]:
            cursor.execute(statement)
        assert migrate(cursor, MYSQL, folder) == ["0002_cost"]
        assert migrate(cursor, MYSQL, folder) == []
    columns = mariadb.run("SHOW COLUMNS FROM qd_jobs LIKE 'cost'", database=mysql_database)
    indexes = mariadb.run("SHOW INDEX FROM qd_jobs WHERE key_name = 'qd_jobs_cost'", database=mysql_database)
    assert (len(columns), len(indexes)) == (1, 2)


def test_a_migration_of_sqlite_that_fails_leaves_nothing(tmp_path: Path) -> None:
    broken = with_0002(tmp_path, SQLITE, EXPAND_SQLITE + "CREATE INDEX nonsense ON qd_jobs (no_such_column);\n")
    with embedded(tmp_path / "qd.sqlite3") as cursor:
        migrate(cursor, SQLITE)
        with pytest.raises(sqlite3.OperationalError):
            migrate(cursor, SQLITE, broken)
        assert schema_state(cursor, SQLITE, broken) == SchemaState(SCHEMA_VERSION, 1, ["0002_cost"])
        cursor.execute("SELECT COUNT(*) FROM pragma_table_info('qd_jobs') WHERE name = 'cost'")
        assert cursor.fetchone()[0] == 0


def test_a_statement_that_is_wrong_ends_the_migration_with_the_servers_error(
    mariadb: Server, mysql_database: str, tmp_path: Path
) -> None:
    folder = with_0002(tmp_path, MYSQL, EXPAND + "ALTER TABLE qd_jobs ADD KEY nonsense (no_such_column);\n")
    with migrator(mariadb, mysql_database) as cursor:
        with pytest.raises(Exception, match="no_such_column"):
            migrate(cursor, MYSQL, folder)
        assert schema_state(cursor, MYSQL, folder).version == SCHEMA_VERSION


def test_old_code_runs_with_a_schema_that_was_only_expanded(
    mariadb: Server, mysql_database: str, tmp_path: Path
) -> None:
    folder = with_0002(tmp_path, MYSQL, EXPAND)
    with migrator(mariadb, mysql_database) as cursor:
        check_compatible(schema_state(cursor, MYSQL, folder), version=SCHEMA_VERSION + 1, oldest=COMPATIBLE_FROM)
        migrate(cursor, MYSQL, folder)
        state = schema_state(cursor, MYSQL)
        assert (state.version, state.compatible_from, state.pending) == (SCHEMA_VERSION + 1, 1, [])
        check_compatible(state)
        with pytest.raises(SetupWrong, match="upgrade qd"):
            migrate(cursor, MYSQL)
        cursor.execute("INSERT INTO qd_jobs (type) VALUES ('of_old_code')")


@pytest.mark.parametrize(
    ("state", "version", "oldest", "advice"),
    [
        (SchemaState(0, 0), 1, 1, "qd migrate"),
        (SchemaState(1, 1), 1, 1, None),
        (SchemaState(1, 1), 3, 1, None),
        (SchemaState(1, 1), 3, 2, "qd migrate"),
        (SchemaState(3, 1), 2, 2, None),
        (SchemaState(3, 2), 2, 1, None),
        (SchemaState(3, 3), 2, 2, "upgrade qd"),
    ],
)
def test_a_daemon_runs_with_any_schema_between(
    state: SchemaState, version: int, oldest: int, advice: str | None
) -> None:
    if advice is None:
        check_compatible(state, version=version, oldest=oldest)
        return
    with pytest.raises(SetupWrong, match=advice) as refused:
        check_compatible(state, version=version, oldest=oldest)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "foreign", ["CREATE TABLE qd_jobs (id INT PRIMARY KEY)", "CREATE TABLE qd_schema (v INT PRIMARY KEY)"]
)
def test_tables_of_others_with_qds_names_are_left_alone(
    mariadb: Server, empty: str, tmp_path: Path, foreign: str
) -> None:
    mariadb.run(foreign, database=empty)
    before = described(mariadb, empty)
    with migrator(mariadb, empty) as cursor:
        for act in (schema_state, migrate):
            with pytest.raises(SetupWrong, match=r"qd_(jobs|schema)"):
                act(cursor, MYSQL)
    assert described(mariadb, empty) == before
    with embedded(tmp_path / "qd.sqlite3") as cursor:
        cursor.execute(foreign)
        with pytest.raises(SetupWrong, match=r"qd_(jobs|schema)"):
            migrate(cursor, SQLITE)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_was_lost_is_named(mariadb: Server, mysql_database: str, table: str) -> None:
    mariadb.run(f"DROP TABLE {table}", database=mysql_database)
    with migrator(mariadb, mysql_database) as cursor, pytest.raises(SetupWrong, match=f"no {table} "):
        schema_state(cursor, MYSQL)


def test_the_sessions_limits_are_as_before_after_a_migration(mariadb: Server, empty: str) -> None:
    with migrator(mariadb, empty) as cursor:
        cursor.execute("SET SESSION lock_wait_timeout = 77")
        migrate(cursor, MYSQL)
        cursor.execute("SELECT @@session.lock_wait_timeout")
        assert cursor.fetchall() == [(77,)]


def test_the_daemons_account_can_read_the_schemas_version(mariadb: Server, mysql_database: str) -> None:
    with closing(mariadb.connect(mysql_database, user="qd")) as connection:
        check_compatible(schema_state(connection.cursor(buffered=True), MYSQL))


def test_an_account_without_rights_is_told_so(mariadb: Server, mysql_database: str) -> None:
    with closing(mariadb.connect(mysql_database, user="shop")) as connection:
        cursor = connection.cursor(buffered=True)
        with pytest.raises(SetupWrong):
            check_compatible(schema_state(cursor, MYSQL))


def test_a_migration_whose_transaction_sqlite_ended_itself_tells_its_own_error(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_full.sql").write_text(
        "-- compatible_from: 1\nROLLBACK;\nSELECT no_such_column FROM sqlite_master;\n"
    )
    with embedded(tmp_path / "qd.sqlite3") as cursor, pytest.raises(sqlite3.OperationalError, match="no_such_column"):
        migrate(cursor, SQLITE, folder)
