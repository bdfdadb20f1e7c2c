"""A three-node Galera cluster on this machine, writers on all nodes.

Every node begins from the same data directory and the same position, so that none needs a transfer of
its state; one that was killed finds its position out and is brought up to date from the others' memory.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import mysql.connector

from tests.servers.fetching import CACHE
from tests.servers.unpacked import CLOCK, Unpacked, UnpackedKind
from tests.support.mariadb import FAST_MARIADB
from tests.support.private import INIT_SQL, START, PrivateServer, free_port, lock, started
from tests.support.server import ADMIN, PASSWORD
from tests.support.waiting import wait_for

NODES = 3

QUICK = (
    "evs.keepalive_period=PT0.3S;evs.suspect_timeout=PT2S;evs.inactive_check_period=PT0.3S;"
    "evs.inactive_timeout=PT4S;evs.install_timeout=PT4S;gcache.size=64M;gcache.recover=no"
)
"""A node that is silent is given up after 2 to 4 s instead of 5 to 15."""

NO_TRANSFER = """#!/bin/sh
# How a node gets its first state from another: it has it, and needs only what was written since.
while [ $# -gt 0 ]; do
    case $1 in --role) role=$2 ;; --datadir) data=$2 ;; --gtid) at=$2 ;; --bypass) bypass=1 ;; esac
    shift
done
if [ "$role" = joiner ]; then
    echo "ready 127.0.0.1:1/nothing"
    cat "$data/../position"
elif [ -n "$bypass" ]; then
    echo continue
    echo "done $at"
else
    exit 93
fi
"""
"""A program of the cluster's; a real one copies gigabytes, runs as its own account and needs rsync."""


class Node(Unpacked):
    """One of them.

    Args:
        data: what its data directory is a copy of.

    Attributes:
        gcomm: the port on which nodes talk to each other.
        bootstraps: the next start begins a cluster instead of joining one.
    """

    def __init__(
        self, kind: GaleraKind, cluster: Galera, number: int, data: Path, options: tuple[str, ...], zone: str | None
    ) -> None:
        folder = cluster.folder / f"n{number}"
        shutil.copytree(data, folder / "data")
        super().__init__(kind, folder, options, zone)
        self._cluster, self.number = cluster, number
        self.gcomm, self._ist = free_port(), free_port()
        self.bootstraps = False
        (folder / "init.sql").touch()

    def command(self) -> list[str]:
        programs = self._cluster.folder / "bin"
        peers = "" if self.bootstraps else ",".join(f"127.0.0.1:{node.gcomm}" for node in self._cluster.nodes)
        provider = f"gmcast.listen_addr=tcp://127.0.0.1:{self.gcomm};ist.recv_addr=127.0.0.1:{self._ist};{QUICK}"
        return [
            "env", f"PATH={programs}:{os.environ['PATH']}", *super().command(),
            "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON",
            f"--wsrep-provider={self.kind.programs.one('usr/lib/libgalera_smm.so')}", "--wsrep-cluster-name=qd",
            f"--wsrep-cluster-address=gcomm://{peers}", f"--wsrep-node-name=n{self.number}",
            "--wsrep-node-address=127.0.0.1", f"--wsrep-node-incoming-address=127.0.0.1:{self.port}",
            "--wsrep-sst-method=nothing", "--wsrep-slave-threads=2", f"--wsrep-provider-options={provider}",
        ]  # fmt: skip

    def start(self) -> None:
        """Starts it and waits until the node is in step with its cluster."""
        self.launch()
        wait_for(self._synced, START, f"node {self.number} to be synced, see {self.folder / 'error.log'}")

    def kill(self) -> None:
        """See PrivateServer; also where it has ended by itself."""
        with suppress(ProcessLookupError):
            super().kill()

    def status(self, name: str) -> str:
        """A status variable, e.g. `wsrep_cluster_status`; empty where the node doesn't answer."""
        with suppress(mysql.connector.Error):
            return str(self.run("SHOW GLOBAL STATUS LIKE %s", (name,))[0][1])
        return ""

    def recover(self) -> int:
        """The position that its data are at, written down for its next start; it must not run."""
        log = self.folder / "recover.log"
        log.unlink(missing_ok=True)
        options = [option for option in self.command() if not option.startswith(("--wsrep-sst", "--log-error"))]
        subprocess.run([*options, "--wsrep-recover", f"--log-error={log}"], check=True, capture_output=True)
        cluster, position = re.findall(r"Recovered position: ([\w-]+):(-?\d+)", log.read_text())[-1]
        lines = ["# GALERA saved state", "version: 2.1", f"uuid: {cluster}", f"seqno: {position}"]
        (self.folder / "data/grastate.dat").write_text("\n".join([*lines, "safe_to_bootstrap: 1", ""]))
        (self.folder / "position").write_text(f"{cluster}:{position}\n")
        return int(position)

    def _synced(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"node {self.number} ended: {self._last_words()}"
        return self.answers() and self.status("wsrep_local_state_comment") == "Synced"


class Galera(PrivateServer):
    """The cluster as one server: `port` is the first node's.

    Attributes:
        nodes: each may be killed, frozen and started on its own.
    """

    def __init__(
        self, kind: GaleraKind, data: Path, options: tuple[str, ...] = (), zone: str | None = None, nodes: int = NODES
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qd-db-"))
        self._put_programs()
        self.nodes: list[Node] = []
        self.nodes += [Node(kind, self, number, data, options, zone) for number in range(1, nodes + 1)]
        super().__init__("127.0.0.1", self.nodes[0].port, ADMIN, PASSWORD)

    def _put_programs(self) -> None:
        program = self.folder / "bin/wsrep_sst_nothing"
        program.parent.mkdir()
        program.write_text(NO_TRANSFER)
        program.chmod(0o755)

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(node.port for node in self.nodes)

    def start(self) -> None:
        """Begins with the node that has most, and lets the others join it."""
        positions = {node.number: node.recover() for node in self.nodes}
        first, *others = sorted(self.nodes, key=lambda node: -positions[node.number])
        first.bootstraps = True
        first.start()
        first.bootstraps = False
        for node in others:
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

    def fetch(self) -> None:
        """Downloads and unpacks it, and makes the data directory that all nodes begin with."""
        super().fetch()
        self._seed()

    def new_server(self, *options: str, zone: str | None = None) -> Galera:  # type: ignore[override]
        """A cluster that runs."""
        server = Galera(self, self._seed(), options, zone)
        started(server)
        return server

    def _seed(self) -> Path:
        """The data of a node that has once been a cluster by itself: it bears that cluster's id and position."""
        template, folder = self.template(), CACHE / self.name / "seed"
        with lock(CACHE / f"{self.name}.lock"):
            if not folder.exists():
                self._make_seed(template, folder)
        return folder

    def _make_seed(self, template: Path, folder: Path) -> None:
        alone = Galera(self, template, nodes=1)
        (node,) = alone.nodes
        (node.folder / "init.sql").write_text(INIT_SQL)
        node.bootstraps = True
        try:
            node.start()
            node.stop()
            shutil.copytree(node.folder / "data", folder)
        finally:
            alone.discard()


def kind(name: str) -> GaleraKind:
    """The kind of that name."""
    packages = ("mariadb-server-core", "galera-4", CLOCK)
    return GaleraKind(name, "Galera, three nodes", "bookworm", packages, "usr/sbin/mariadbd", FAST_MARIADB)
