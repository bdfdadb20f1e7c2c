"""Every connection of a daemon is pinned before it is used, and again whenever another takes its place."""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB
from tests.support.waiting import wait_for

PINNED = (
    "sql_mode", "time_zone", "tx_isolation", "innodb_lock_wait_timeout", "lock_wait_timeout", "wait_timeout",
    "max_statement_time", "idle_transaction_timeout",
)  # fmt: skip

DRIVERS = ("set names 'utf8mb4'", "autocommit")
"""What the driver itself says first."""

OWN = "SELECT id FROM information_schema.processlist WHERE user = %s AND db = %s"


@pytest.fixture
def logged(folder: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Qd]:
    """A server that writes down every statement, and whose own defaults are not what qd needs."""
    server = own_mariadb("--general-log=1", "--log-output=FILE", "--general-log-file=general.log")
    qd = Qd(folder, server, server.new_database())
    server.run("SET GLOBAL time_zone = '+05:00'")
    server.run("SET GLOBAL sql_mode = 'ANSI_QUOTES'")
    yield qd
    qd.end()


class GeneralLog:
    """What each of the daemon's connections said, in order."""

    def __init__(self, qd: Qd) -> None:
        assert isinstance(qd.server, MariaDB)
        self._file, self._user = qd.server.folder / "data" / "general.log", qd.user

    def connections(self) -> list[list[str]]:
        """The statements of each connection of the daemon's account; a restart begins the numbers anew."""
        heads = re.compile(r"^(?:\d{6}\s+\S+)?\s*(\d+) (Connect|Query|Quit)\t(.*)", re.MULTILINE)
        ours: list[list[str]] = []
        open_now: dict[str, list[str]] = defaultdict(list)
        for number, what, text in heads.findall(self._file.read_text(errors="replace")):
            if what == "Connect":
                open_now[number] = []
                if text.startswith(f"{self._user}@"):
                    ours.append(open_now[number])
            elif what == "Query":
                open_now[number].append(text)
        return ours

    def check(self) -> int:
        """Every connection began with the same settings; how many there were."""
        spoken = [said for said in self.connections() if len(said) > len(DRIVERS)]
        for said in spoken:
            assert all(words in text.lower() for words, text in zip(DRIVERS, said, strict=False)), said[:3]
        (settings,) = {said[len(DRIVERS)] for said in spoken}
        assert settings.startswith("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
        assert [name for name in PINNED if f"{name} = " not in settings] == []
        assert "'READ-COMMITTED'" in settings and "time_zone = '+00:00'" in settings
        later = [text for said in spoken for text in said[len(DRIVERS) + 1 :] if text.lower().startswith("set ")]
        assert [text for text in later if not text.startswith("SET STATEMENT ")] == []
        return len(spoken)


def works(qd: Qd) -> None:
    (job,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.ran("end", job), 30, "a job to run")


def replaced(qd: Qd, log: GeneralLog, act: Callable[[], object]) -> None:
    """After this there are connections that weren't there before, pinned like the first."""
    before = log.check()
    act()
    works(qd)
    wait_for(lambda: log.check() > before, 20, "new connections")


def test_kills_a_restart_and_a_reload_leave_every_connection_pinned_as_at_first(logged: Qd) -> None:
    server, log = logged.server, GeneralLog(logged)
    assert isinstance(server, MariaDB)
    daemon = logged.start()
    works(logged)

    def kill_all() -> None:
        for (number,) in server.run(OWN, (logged.user, logged.database)):
            server.run(f"KILL {number}")

    replaced(logged, log, kill_all)
    replaced(logged, log, server.restart)
    logged.write(queues={"default": {"lease": "6s", "timeout": "30s"}, "new": {"lease": "6s"}})
    replaced(logged, log, lambda: reloaded(daemon))
    assert daemon.stop() == 0


def reloaded(daemon: Daemon) -> None:
    """SIGHUP, taken on."""
    daemon.send(signal.SIGHUP)
    wait_for(lambda: daemon.lines("daemon.reload_applied"), 10, "the reload")
