"""`python -m grafana.rehearsal` (`make pictures`): half an hour in a small shop's life, then the pictures of it.

It starts a MariaDB, two daemons and a Prometheus of its own, enqueues a few jobs a second, and has happen what an
operator has to see: a burst, a refused reload, a daemon's death over its jobs, a pause, a restart of the database.
All of it is on this machine, and gone at the end. May import: shop, pictures, tests.support.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from grafana.pictures.__main__ import PICTURES
from grafana.pictures.answers import Source
from grafana.pictures.page import draw_rows
from grafana.shop import CONFIG
from tests.support.daemon import Qd
from tests.support.mariadb import new_server
from tests.support.private import PrivateServer
from tests.support.prometheus import SHIPPED, Prometheus
from tests.support.server import ROOT

SCRAPE = 15.0
"""Seconds, as the shipped configuration has it."""


class Rehearsal:
    """The shop, and what happens in it.

    Args:
        folder: its own.
        minutes: how long it lives; all events keep their share of it.
    """

    def __init__(self, folder: Path, minutes: float) -> None:
        self._length, self._dice = 60 * minutes, random.Random(7)
        self._server: PrivateServer = new_server()
        self._one = Qd(folder, self._server, self._server.new_database())
        self._one.write(**CONFIG)
        self._other = self._one.twin()
        targets = [f"127.0.0.1:{qd.port}" for qd in (self._one, self._other)]
        self.prometheus = Prometheus(folder / "prometheus", targets, rules=[SHIPPED / "qd.rules.yml"], interval="15s")
        self.began = time.time()

    def close(self) -> None:
        """Ends it all."""
        self.prometheus.stop()
        self._one.end()
        self._server.discard()

    def live(self) -> None:
        """From the first job to the last."""
        self.prometheus.start()
        self._one.start()
        self._dying = self._other.start()
        self.began = time.time()
        events = self._events()
        while (age := time.time() - self.began) < self._length:
            while events and age >= events[0][0] * self._length:
                _, name, event = events.pop(0)
                print(f"{age:5.0f} s: {name}", flush=True)
                event()
            self._enqueue(age / self._length)
            time.sleep(1 - (time.time() - self.began) % 1)

    def _events(self) -> list[tuple[float, str, Callable[[], object]]]:
        """When, as a share of the whole, and what."""
        return [
            (0.20, "a burst of images", self._burst),
            (0.40, "a reload is refused", lambda: self._reload("no_such_key: 1")),
            (0.50, "a reload is applied", lambda: self._reload("")),
            (0.55, "a daemon is killed over its jobs", self._kill),
            (0.62, "it is started again", self._other.start),
            (0.68, "a queue is paused", lambda: self._qd("queues", "pause", "webhooks")),
            (0.78, "and resumed", lambda: self._qd("queues", "resume", "webhooks")),
            (0.86, "the database is stopped", self._server.stop),
            (0.91, "and started", self._server.start),
            (0.985, "another burst", self._burst),
        ]

    def _enqueue(self, share: float) -> None:
        """One second's jobs: like the tide, most of them end well."""
        if not self._server.running():
            return
        tide = 1 + 0.6 * math.sin(4 * math.pi * share)
        dice = self._dice
        for _ in range(self._many(3 * tide)):
            self._one.enqueue("send_mail", 1, "mails", seconds=dice.lognormvariate(-2.5, 0.8))
        for _ in range(self._many(1.5 * tide)):
            ends, seconds = (
                dice.choices(["", "fail once", "fail", "reject", "snooze", "late"], [88, 5, 2, 1, 3, 1])[0],
                0.15,
            )
            seconds = 20 if ends == "late" else dice.lognormvariate(-1.5, 0.6)
            self._one.enqueue("call_webhook", 1, "webhooks", ends=ends, seconds=seconds)
        for _ in range(self._many(0.7 * tide)):
            ends = "crash" if dice.random() < 0.01 else ""
            self._one.enqueue("resize_image", 1, "images", ends=ends, seconds=dice.uniform(0.3, 1.5))
        for _ in range(self._many(0.07)):
            self._one.enqueue("build_report", 1, "reports", seconds=dice.uniform(8, 40))

    def _many(self, rate: float) -> int:
        """How many come in a second, at random."""
        count, left = 0, math.exp(-rate)
        while (left := left / max(self._dice.random(), 1e-12)) < 1:
            count += 1
        return count

    def _burst(self) -> None:
        self._one.enqueue("resize_image", int(self._length / 2.5), "images", seconds=0.6)

    def _reload(self, mistake: str) -> None:
        good = self._other.file.read_text()
        if mistake:
            self._other.file.write_text(mistake)
        self._dying.send(signal.SIGHUP)
        time.sleep(1)  # it reads the file at its leisure
        self._other.file.write_text(good)

    def _kill(self) -> None:
        self._dying.process.kill()
        self._dying.process.wait()

    def _qd(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "qd", "--config", str(self._one.file), *arguments]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Lives, then draws."""
    parser = argparse.ArgumentParser(prog="python -m grafana.rehearsal", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--into", type=Path, default=PICTURES, metavar="FOLDER")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="qd-r-"))
    with ExitStack() as end:
        end.callback(shutil.rmtree, folder, ignore_errors=True)
        rehearsal = Rehearsal(folder, given.minutes)
        end.callback(rehearsal.close)
        rehearsal.live()
        source = Source(f"http://{rehearsal.prometheus.address}", rehearsal.began, time.time(), SCRAPE)
        for file in draw_rows(source, given.into):
            print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
