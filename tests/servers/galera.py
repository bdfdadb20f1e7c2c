"""A three-node Galera cluster on this machine, writers on all nodes.

Every node begins from the same data directory and the same position, so that none needs a transfer of
its state; one that was killed finds its position out and is brought up to date from the others' memory.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import mysql.connector

from tests.servers.unpacked import Unpacked, UnpackedKind
from tests.support.mariadb import FAST_MARIADB
from tests.support.private import INIT_SQL, START, PrivateServer, free_port, started
from tests.support.server import ADMIN, PASSWORD
from tests.support.waiting import wait_for

NODES = 3

CLUSTER = "6b1f6f0e-7a52-11ee-9d0b-2f3a5c7e9b10"
"""The cluster's id, the same in every node's first state."""

QUICK = (
    "evs.keepalive_period=PT0.3S;evs.suspect_timeout=PT2S;evs.inactive_check_period=PT0.3S;"
    "evs.inactive_timeout=PT4S;evs.install_timeout=PT4S;gcache.size=64M;gcache.recover=no"
)
"""A node that is silent is given up after 2 to 4 s instead of 5 to 15."""


class Node(Unpacked):
    """One of them.

    Attributes:
        gcomm: the port on which nodes talk to each other.
        bootstraps: the next start begins a cluster instead of joining one.
    """

    def __init__(self, kind: UnpackedKind, cluster: Galera, number: int, options: tuple[str, ...], zone: str | None):
        folder = cluster.folder / f"n{number}"
        shutil.copytree(kind.template(), folder / "data")
        super().__init__(kind, folder, options, zone)
        self._cluster, self.number = cluster, number
        self.gcomm, self._ist, self._sst = free_port(), free_port(), free_port()
        self.bootstraps = False
        (folder / "init.sql").touch()
        self.write_state(0)

    def command(self) -> list[str]:
        peers = "" if self.bootstraps else ",".join(f"127.0.0.1:{node.gcomm}" for node in self._cluster.nodes)
        provider = f"gmcast.listen_addr=tcp://127.0.0.1:{self.gcomm};ist.recv_addr=127.0.0.1:{self._ist};{QUICK}"
        return [
            *super().command(), "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON",
            f"--wsrep-provider={self.kind.programs.one('usr/lib/libgalera_smm.so')}", "--wsrep-cluster-name=qd",
            f"--wsrep-cluster-address=gcomm://{peers}", f"--wsrep-node-name=n{self.number}",
            "--wsrep-node-address=127.0.0.1", f"--wsrep-node-incoming-address=127.0.0.1:{self.port}",
            f"--wsrep-sst-receive-address=127.0.0.1:{self._sst}", "--wsrep-slave-threads=2",
            f"--wsrep-provider-options={provider}",
        ]  # fmt: skip

    def start(self) -> None:
        """Starts it and waits until the node is in step with its cluster."""
        self.launch()
        wait_for(self._synced, START, f"node {self.number} to be synced, see {self.folder / 'error.log'}")

    def status(self, name: str) -> str:
        """A status variable of the cluster, e.g. `wsrep_cluster_status`; empty where it doesn't answer."""
        with suppress(mysql.connector.Error):
            return str(self.run("SHOW GLOBAL STATUS LIKE %s", (name,))[0][1])
        return ""

    def recover(self) -> int:
        """The position that its data are at, written down for its next start; it must not run."""
        log = self.folder / "recover.log"
        log.unlink(missing_ok=True)
        options = [option for option in self.command() if not option.startswith(("--wsrep-cl", "--log-error", "--init"))]
        subprocess.run([*options, "--wsrep-recover", f"--log-error={log}"], check=True, capture_output=True)
        position = int(re.findall(r"Recovered position: [\w-]+:(-?\d+)", log.read_text())[-1])
        self.write_state(position)
        return position

    def write_state(self, position: int) -> None:
        """What the node believes to be at when it starts."""
        lines = ["# GALERA saved state", "version: 2.1", f"uuid: {CLUSTER}", f"seqno: {position}"]
        (self.folder / "data/grastate.dat").write_text("\n".join([*lines, "safe_to_bootstrap: 1", ""]))

    def _synced(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"node {self.number} ended: {self._last_words()}"
        return self.answers() and self.status("wsrep_local_state_comment") == "Synced"


class Galera(PrivateServer):
    """The cluster as one server: `port` is the first node's.

    Attributes:
        nodes: each may be killed, frozen and started on its own.
    """

    def __init__(self, kind: UnpackedKind, options: tuple[str, ...] = (), zone: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qd-db-"))
        self.nodes: list[Node] = []
        self.nodes += [Node(kind, self, number, options, zone) for number in range(1, NODES + 1)]
        super().__init__("127.0.0.1", self.nodes[0].port, ADMIN, PASSWORD)
        self._fresh = True

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(node.port for node in self.nodes)

    def start(self) -> None:
        """Begins with the node that has most, and lets the others join it."""
        first = self.nodes[0] if self._fresh else max(self.nodes, key=Node.recover)
        (first.folder / "init.sql").write_text(INIT_SQL if self._fresh else "")
        first.bootstraps = True
        first.start()
        first.bootstraps = False
        (first.folder / "init.sql").write_text("")
        self._fresh = False
        for node in self.nodes:
            if node is not first:
                node.start()

    def rejoin(self, node: Node) -> None:
        """Starts a node that was killed."""
        node.recover()
        node.start()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def freeze(self) -> None:
        for node in self.nodes:
            node.freeze()

    def thaw(self) -> None:
        for node in self.nodes:
            node.thaw()

    def running(self) -> bool:
        return any(node.running() for node in self.nodes)

    def discard(self) -> None:
        """Ends all nodes and removes their folders."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def in_step(self) -> None:
        """Waits until every node has applied what was committed anywhere before."""
        for node in self.nodes:
            node.run("SET STATEMENT wsrep_sync_wait = 7 FOR SELECT COUNT(*) FROM mysql.db")


@dataclass(frozen=True)
class GaleraKind(UnpackedKind):
    """See ServerKind."""

    def new_server(self, *options: str, zone: str | None = None) -> Galera:  # type: ignore[override]
        server = Galera(self, options, zone)
        started(server)
        return server


def kind(name: str) -> GaleraKind:
    """The kind of that name."""
    packages = ("mariadb-server-core", "galera-4")
    return GaleraKind(name, "Galera, three nodes", "bookworm", packages, "usr/sbin/mariadbd", FAST_MARIADB)
