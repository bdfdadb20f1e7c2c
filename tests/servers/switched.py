"""A primary and its replica behind HAProxy, which a test may switch over while jobs run.

Clients know the proxy's port alone. Replication is asynchronous: a switch waits for the replica, unless the
test asks for one that loses what the replica hasn't got.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.servers.fetching import Programs
from tests.servers.unpacked import CLOCK, Unpacked, UnpackedKind
from tests.support.mariadb import FAST_MARIADB
from tests.support.private import INIT_SQL, OneProcess, PrivateServer, started
from tests.support.server import ADMIN, PASSWORD
from tests.support.waiting import wait_for

REPLICATED = ("--log-bin=bin", "--binlog-format=ROW", "--log-slave-updates", "--gtid-strict-mode=ON")

CONFIG = """
global
    stats socket {folder}/h.sock mode 600 level admin
defaults
    mode tcp
    timeout connect 1s
    timeout client {idle}s
    timeout server {idle}s
listen db
    bind 127.0.0.1:{port}
    option tcp-check
    default-server check inter 300ms fall 2 rise 1 on-marked-down shutdown-sessions
    server a 127.0.0.1:{a}
    server b 127.0.0.1:{b} backup
"""


class Haproxy(OneProcess):
    """The proxy; its port is where clients go.

    Args:
        idle: seconds after which it cuts a connection on which nothing was said.
    """

    def __init__(self, folder: Path, programs: Programs, nodes: list[Unpacked], idle: float) -> None:
        super().__init__(folder)
        self._programs, (self._a, self._b), self.idle = programs, nodes, idle

    def command(self) -> list[str]:
        file = self.folder / "h.cfg"
        ports = {"port": self.port, "a": self._a.port, "b": self._b.port}
        file.write_text(CONFIG.format(folder=self.folder, idle=f"{self.idle:g}", **ports))
        return self._programs.command("usr/sbin/haproxy", "-db", "-f", str(file))

    def tell(self, command: str) -> str:
        """An order at its control socket, e.g. `set server db/a state maint`; its answer."""
        with closing(socket.socket(socket.AF_UNIX)) as control:
            control.connect(str(self.folder / "h.sock"))
            control.sendall(f"{command}\n".encode())
            return b"".join(iter(lambda: control.recv(65536), b"")).decode()


class Switched(PrivateServer):
    """The pair as one server: `port` is the proxy's.

    Attributes:
        primary: takes the writes now.
        replica: follows it.
        proxy: leads to the primary.
    """

    def __init__(
        self, kind: SwitchedKind, options: tuple[str, ...] = (), zone: str | None = None, idle: float = 60.0
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qd-db-"))
        self.nodes: list[Unpacked] = []
        for number in (1, 2):
            node = kind.made(*REPLICATED, f"--server-id={number}", *options, zone=zone)
            node.folder.joinpath("init.sql").write_text("SET SESSION sql_log_bin = 0;\n" + INIT_SQL)
            self.nodes.append(node)
        self.primary, self.replica = self.nodes
        self.proxy = Haproxy(self.folder, kind.programs, self.nodes, idle)
        super().__init__("127.0.0.1", self.proxy.port, ADMIN, PASSWORD)

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        self._follow(self.replica, self.primary)
        if not self.proxy.running():
            self.proxy.start()
        wait_for(self.answers, 30, f"an answer through HAProxy on port {self.port}")

    def demote(self) -> None:
        """The primary takes no more writes; connections to it stay."""
        self.primary.run("SET GLOBAL read_only = 1")

    def caught_up(self) -> None:
        """Waits until the replica has all that the primary has written."""
        position = self.primary.run("SELECT @@gtid_binlog_pos")[0][0]
        assert self.replica.run("SELECT MASTER_GTID_WAIT(%s, 30)", (position,)) == [(0,)], "the replica lags"

    def promote(self) -> None:
        """The replica becomes the primary, and the proxy leads to it; the other follows it if it runs."""
        self.replica.run("STOP SLAVE")
        self.replica.run("RESET SLAVE ALL")
        self.replica.run("SET GLOBAL read_only = 0")
        self.primary, self.replica = self.replica, self.primary
        old, new = ("a", "b") if self.primary is self.nodes[1] else ("b", "a")
        self.proxy.tell(f"set server db/{new} state ready")
        self.proxy.tell(f"set server db/{old} state maint")
        self.proxy.tell(f"shutdown sessions server db/{old}")
        if self.replica.running():
            self._follow(self.replica, self.primary)

    def switch(self) -> None:
        """A switch-over in order: nothing is lost."""
        self.demote()
        self.caught_up()
        self.promote()

    def _follow(self, replica: Unpacked, primary: Unpacked) -> None:
        replica.run("SET GLOBAL read_only = 1")
        replica.run("STOP SLAVE")
        replica.run(
            f"CHANGE MASTER TO master_host = '127.0.0.1', master_port = {primary.port}, master_user = '{ADMIN}', "
            f"master_password = '{PASSWORD}', master_use_gtid = current_pos, master_connect_retry = 1"
        )
        replica.run("START SLAVE")

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def freeze(self) -> None:
        self.primary.freeze()

    def thaw(self) -> None:
        for node in self.nodes:
            node.thaw()

    def running(self) -> bool:
        return self.primary.running()

    def discard(self) -> None:
        for one in (*self.nodes, self.proxy):
            with suppress(ProcessLookupError):
                one.discard()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class SwitchedKind(UnpackedKind):
    """See ServerKind."""

    def new_server(self, *options: str, zone: str | None = None) -> Switched:  # type: ignore[override]
        """A pair that runs."""
        return self.new_pair(*options, zone=zone)

    def new_pair(self, *options: str, zone: str | None = None, idle: float = 60.0) -> Switched:
        """The same, with a time-out of the proxy's own choosing."""
        server = Switched(self, options, zone, idle)
        started(server)
        return server


def kind(name: str) -> SwitchedKind:
    """The kind of that name."""
    title, packages = "MariaDB pair behind HAProxy", ("mariadb-server-core", "haproxy", CLOCK)
    return SwitchedKind(name, title, "bookworm", packages, "usr/sbin/mariadbd", FAST_MARIADB)
