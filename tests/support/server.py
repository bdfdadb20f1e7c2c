"""A MySQL or MariaDB server that tests use: databases with the schema, and the documented users."""

from __future__ import annotations

import re
import secrets
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import mysql.connector

from qd.config.model import DatabaseConfig

ROOT = Path(__file__).resolve().parents[2]
ADMIN = "qd_test_admin"
PASSWORD = "change-me"
"""Of every account: the one that docs/grants.sql shows."""

UNKNOWN_VARIABLE = 1193
OTHER_NAME = {"tx_isolation": "transaction_isolation"}
"""What MySQL calls a variable of MariaDB's."""


class ServerMissing(Exception):
    """There is no server to test against; the text says what would help."""


class Server:
    """A server that answers on a TCP port, and an account of it that may do anything.

    Attributes:
        host, port: where it listens.
        socket: the path of its unix socket, or None where it isn't known.
        prefix: of the accounts' names, so that those which a server has already are left alone.
    """

    socket: str | None = None

    def __init__(self, host: str, port: int, admin: str, password: str, prefix: str = "") -> None:
        self.host, self.port, self.prefix = host, port, prefix
        self._admin, self._password = admin, password

    def connect(self, database: str | None = None, user: str | None = None, **more: Any) -> Any:
        """A new MySQL Connector connection, the administrator's unless `user` is one of grants.sql.

        Args:
            more: further arguments of `mysql.connector.connect`, e.g. `autocommit=True`.
        """
        password = self._password if user is None else PASSWORD
        arguments: dict[str, Any] = {"host": self.host, "port": self.port, "connection_timeout": 10}
        arguments |= {"user": self.prefix + user if user else self._admin, "password": password, "database": database}
        return mysql.connector.connect(**(arguments | more))

    def run(self, sql: str, params: tuple[Any, ...] = (), database: str | None = None) -> list[tuple[Any, ...]]:
        """Runs one statement as the administrator, commits, and returns the rows it gave, if any."""
        with closing(self.connect(database, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(sql, params)
            return list(cursor.fetchall()) if cursor.description else []

    def set_default(self, name: str, value: str) -> None:
        """SET GLOBAL under this server's name for the variable; nothing where it has none such."""
        for known_as in (name, OTHER_NAME.get(name, name)):
            try:
                self.run(f"SET GLOBAL {known_as} = {value}")
            except mysql.connector.Error as error:
                if error.errno != UNKNOWN_VARIABLE:
                    raise
            else:
                return

    def answers(self) -> bool:
        """Whether it takes a connection now."""
        try:
            self.connect(connection_timeout=2).close()
        except mysql.connector.Error:
            return False
        return True

    def new_database(self, *, schema: bool = True) -> str:
        """Makes `qd_NONCE`, with the tables of schema.sql and the accounts of docs/grants.sql.

        Args:
            schema: False leaves it empty; call `grant` once the tables are there.
        """
        name = f"qd_{secrets.token_hex(5)}"
        self.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        if schema:
            self.load(name, ROOT / "schema.sql")
            self.grant(name)
        else:
            self._apply(name, [line for line in self._grants(name) if f"ON {name}.*" in line or "CREATE USER" in line])
        return name

    def drop_database(self, name: str) -> None:
        """Removes a database that `new_database` made."""
        self.run(f"DROP DATABASE IF EXISTS {name}")

    def load(self, database: str, script: Path) -> None:
        """Runs a file of statements in a database, as the administrator."""
        self._apply(database, statements(script.read_text()))

    def grant(self, database: str) -> None:
        """Gives the accounts of docs/grants.sql (`qd_migrator`, `qd`, `shop`) their rights here."""
        self._apply(database, self._grants(database))
        self.log_in_once()

    def log_in_once(self) -> None:
        """Each account logs in over TLS: before that MySQL takes its password in no other way.

        Tests that read what passes on the wire need to go without TLS.
        """
        sql = "SELECT DISTINCT user FROM mysql.user WHERE plugin = 'caching_sha2_password' AND user REGEXP %s"
        for (user,) in self.run(sql, (f"^{self.prefix}(qd|shop)",)):
            with suppress(mysql.connector.Error):  # a test has changed its password, or locked it
                self.connect(user=str(user).removeprefix(self.prefix)).close()

    def config(self, database: str, user: str = "qd", **more: Any) -> DatabaseConfig:
        """What qd needs to know to use this database as one of the accounts of docs/grants.sql."""
        place: dict[str, Any] = {"host": self.host, "port": self.port, "name": database}
        return DatabaseConfig(driver="mysql", **place, user=self.prefix + user, password=PASSWORD, **more)

    def _grants(self, database: str) -> list[str]:
        script = (ROOT / "docs" / "grants.sql").read_text()
        script = re.sub(r" ON qd\.", f" ON {database}.", script)
        return statements(re.sub(r"'(\w+)'@", rf"'{self.prefix}\1'@", script))

    def _apply(self, database: str, script: list[str]) -> None:
        with closing(self.connect(database, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
            for statement in script:
                cursor.execute(statement)


def statements(script: str) -> list[str]:
    """The statements of an SQL file whose every statement ends a line with `;`, comments left out."""
    bare = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("--"))
    return [statement.strip() for statement in re.split(r";\s*$", bare, flags=re.MULTILINE) if statement.strip()]


def server_from_dsn(dsn: str) -> Server:
    """The server that `mysql://user:password@host:port` names; the account must be an administrator's."""
    url = urlsplit(dsn)
    if url.scheme != "mysql" or not url.hostname or not url.username:
        raise ServerMissing(f"QD_TEST_DSN must be mysql://user:password@host:port, not {dsn!r}")
    server = Server(url.hostname, url.port or 3306, unquote(url.username), unquote(url.password or ""), "qdt_")
    if not server.answers():
        raise ServerMissing(f"the server of QD_TEST_DSN, {url.hostname}:{server.port}, does not answer")
    return server
