"""A real `qd run` process with a notify socket, a log and a database of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from qd.clock import monotonic
from tests.support.mariadb import free_port
from tests.support.reaping import ends_with_us
from tests.support.server import ROOT, Server
from tests.support.waiting import wait_for

START = 30.0
"""Seconds that a daemon may take to say READY, on a busy machine."""

HANDLERS = "tests.acceptance.daemon_handlers"


def get(port: int, path: str) -> tuple[int, str]:
    """Status and text of a daemon's page; (0, error) where there is no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError as error:
        return 0, str(error)
    finally:
        connection.close()


class NotifySocket:
    """What the daemon told systemd: (monotonic seconds, datagram) in order."""

    def __init__(self, path: Path, abstract: bool = False) -> None:
        self.address = f"@qd-test-{os.getpid()}-{path.name}" if abstract else str(path)
        self.got: list[tuple[float, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + self.address[1:] if abstract else self.address)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            datagram = self._socket.recv(65536).decode()
            if datagram == "close":
                self._socket.close()
                return
            self.got.append((monotonic(), datagram))

    def close(self) -> None:
        """Ends its thread."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(b"close", "\0" + self.address[1:] if self.address.startswith("@") else self.address)

    def times(self, line: str) -> list[float]:
        """When a line was sent."""
        return [at for at, datagram in list(self.got) if line in datagram.split("\n")]

    def with_line(self, beginning: str) -> list[str]:
        """Datagrams that have a line that begins so."""
        return [text for _, text in list(self.got) if any(line.startswith(beginning) for line in text.split("\n"))]


class Qd:
    """A folder with a configuration, and the daemons that run with it.

    Args:
        folder: short, for unix sockets' sake.
        server: where the database is.
        database: its name; the tables belong to the test.
    """

    def __init__(self, folder: Path, server: Server, database: str) -> None:
        self.folder, self.server, self.database = folder, server, database
        self.file, self.ledger = folder / "qd.yaml", folder / "ledger"
        self.port = free_port()
        self.started: list[Daemon] = []
        self._twins: list[Qd] = []
        login = server.config(database)
        self.user = login.user
        self.config: dict[str, Any] = {
            "database": {
                "host": server.host, "port": server.port, "name": database,
                "user": login.user,
                "password": str(login.password),
                "connect_timeout": "1s", "statement_timeout": "1s",
            },
            "handlers": {"modules": [HANDLERS]},
            "queues": {"default": {"lease": "6s", "timeout": "60s"}},
            "workers": [{"queues": ["default"], "threads": 2}],
            "http": {"listen": f"127.0.0.1:{self.port}", "refresh": "1s"},
            "shutdown": {"grace": "10s"},
            "log": {"format": "text"},
        }  # fmt: skip
        self.write()

    def write(self, **sections: Any) -> None:
        """Writes the configuration, some sections replaced or, where both are maps, merged."""
        for name, section in sections.items():
            before = self.config.get(name)
            merge = isinstance(before, dict) and isinstance(section, dict) and name != "queues"
            self.config[name] = {**before, **section} if merge and before is not None else section
        whole = self.folder / "new.yaml"
        whole.write_text(json.dumps(self.config))  # JSON is YAML
        whole.chmod(0o600)
        whole.replace(self.file)

    def start(
        self,
        *,
        ready: bool = True,
        watchdog_usec: int = 0,
        abstract: bool = False,
        log_to_pipe: bool = False,
        within: Sequence[str] = (),
        **env: str,
    ) -> Daemon:
        """Starts a daemon; waits for its READY unless told not to.

        Args:
            log_to_pipe: to a pipe that nobody reads.
            within: a program that runs the rest of its arguments, e.g. in a namespace.
            env: more for its environment.
        """
        daemon = Daemon(self, len(self.started), watchdog_usec, abstract, log_to_pipe, within, env)
        self.started.append(daemon)
        if ready:
            daemon.wait_ready()
        return daemon

    def twin(self) -> Qd:
        """Another configuration for the same database and ledger, with an address of its own; ends with this one."""
        folder = self.folder / f"twin{len(self._twins)}"
        folder.mkdir()
        twin = Qd(folder, self.server, self.database)
        twin.ledger = self.ledger
        twin.config = {**self.config, "http": {**self.config["http"], "listen": f"127.0.0.1:{twin.port}"}}
        twin.write()
        self._twins.append(twin)
        return twin

    def enqueue(self, type: str, count: int = 1, queue: str = "default", **payload: Any) -> list[int]:
        """Puts jobs in by plain SQL; their ids."""
        values = ", ".join(["(%s, %s, %s)"] * count)
        params = (queue, type, json.dumps(payload)) * count
        with closing(self.server.connect(self.database)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(f"INSERT INTO qd_jobs (queue, type, payload) VALUES {values}", params)
            connection.commit()
            return list(range(cursor.lastrowid, cursor.lastrowid + count))  # some may be done by now

    def sql(self, text: str, params: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement as the administrator."""
        return self.server.run(text, params, self.database)

    def one(self, text: str, params: tuple[Any, ...] = ()) -> Any:
        """The first value of the first row."""
        return self.sql(text, params)[0][0]

    def jobs(self, where: str = "1") -> int:
        """Rows of qd_jobs, posts left out."""
        return int(self.one(f"SELECT COUNT(*) FROM qd_jobs WHERE type <> 'qd.post' AND ({where})"))

    def ran(self, what: str, job: int | None = None) -> list[int]:
        """The jobs, in order, for which the handlers noted `start`, `end` or `cut`."""
        lines = [line.split() for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []
        return [int(id) for id, noted in lines if noted == what and job in (None, int(id))]

    def end(self) -> None:
        """Ends what still runs."""
        for twin in self._twins:
            twin.end()
        for daemon in self.started:
            daemon.process.kill()
            daemon.process.wait()
            if daemon.process.stderr is not None:
                daemon.process.stderr.close()
            daemon.notify.close()


class Daemon:
    """One `python -m qd run`."""

    def __init__(
        self,
        qd: Qd,
        number: int,
        watchdog_usec: int,
        abstract: bool,
        log_to_pipe: bool,
        within: Sequence[str],
        env: Mapping[str, str],
    ) -> None:
        self.qd, self.log = qd, qd.folder / f"log{number}"
        self.notify = NotifySocket(qd.folder / f"n{number}", abstract)
        own = {"NOTIFY_SOCKET": self.notify.address, "LEDGER": str(qd.ledger), "PYTHONPATH": str(ROOT)}
        argv = [*within, sys.executable, "-m", "qd", "--config", str(qd.file), "run"]
        if watchdog_usec:
            own["WATCHDOG_USEC"] = str(watchdog_usec)
            argv = ["sh", "-c", 'WATCHDOG_PID=${OTHER_PID:-$$} exec "$@"', "sh", *argv]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("QD_", "WATCHDOG_"))}
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                argv, cwd=qd.folder, env={**inherited, **own, **env}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.PIPE if log_to_pipe else out, start_new_session=True,
            )  # fmt: skip
        ends_with_us(self.process.pid, qd.file)

    def wait_ready(self) -> None:
        """Waits for READY=1."""
        wait_for(lambda: self.notify.times("READY=1") or not self.alive(), START, "READY=1")
        assert self.alive(), f"ended with {self.process.returncode}: {self.said()}"

    def alive(self) -> bool:
        return self.process.poll() is None

    def said(self) -> str:
        """Its whole log."""
        return self.log.read_text(errors="replace")

    def lines(self, event: str) -> list[str]:
        """The log lines of an event."""
        return [line for line in self.said().splitlines() if f"event={event} " in f"{line} "]

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self.process.send_signal(number)

    def wait_exit(self, within: float) -> int:
        """Its exit status."""
        wait_for(lambda: not self.alive(), within, f"the daemon's end; its log: {self.said()[-2000:]}")
        return int(self.process.returncode)

    def stop(self, within: float = 20.0) -> int:
        """SIGTERM, and its exit status."""
        self.send(signal.SIGTERM)
        return self.wait_exit(within)

    def get(self, path: str, port: int | None = None) -> tuple[int, str]:
        """Status and text of a page; (0, error) where there is no answer."""
        return get(port or self.qd.port, path)

    def metric(self, series: str) -> float | None:
        """The value of one series, as it is written on the page; None where there is none."""
        lines = self.get("/metrics")[1].splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == series), None)

    def threads(self) -> int:
        """How many threads the process has."""
        return len(os.listdir(f"/proc/{self.process.pid}/task"))
