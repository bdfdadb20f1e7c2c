"""The kinds of servers, by the name that `make test-servers SERVERS=...` and QD_TEST_SERVER know them by.

A kind is one object in a module of its own or a shared one, found by that module's `kind(name)`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from tests.support.private import PrivateServer
from tests.support.server import ServerMissing

MODULES = {
    "mariadb105": "unpacked",
    "mariadb1011": "unpacked",
    "mariadb118": "unpacked",
    "mysql97": "unpacked",
    "galera": "galera",
    "switched": "switched",
}
"""In the order of the table: each kind's module in this package."""


class ServerKind(Protocol):
    """One kind.

    Attributes:
        name: as in `MODULES`.
        title: for people, e.g. `MySQL 9.7`.
    """

    name: str
    title: str

    def fetch(self) -> None:
        """Sees to it that its programs are there, in `fetching.CACHE`; quick where they are already.

        Raises:
            ServerMissing: they can't be had; one line says why.
        """

    def new_server(self, *options: str, zone: str | None = None) -> PrivateServer:
        """One that runs; the caller calls `discard()`. Several of one kind may run at once.

        Args:
            options: further options of the server program, e.g. `--max-connections=5`.
            zone: its system time zone, as TZ has it.

        Raises:
            ServerMissing: it wasn't fetched.
        """


def kind_named(name: str) -> ServerKind:
    """The kind of that name.

    Raises:
        ServerMissing: there is none.
    """
    if name not in MODULES:
        raise ServerMissing(f"there is no kind of server named {name!r}; there are {', '.join(MODULES)}")
    kind: ServerKind = import_module(f"tests.servers.{MODULES[name]}").kind(name)
    return kind
