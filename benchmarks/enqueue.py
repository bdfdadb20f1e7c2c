"""How fast jobs are put in, and in how much memory: one by one, in bulk, a million of them, and by the command line.

Everything commits to a durable server. `growth` is how far a producer's peak memory (VmHWM) rose from its first 10,000
jobs to its last; for the command line, from a run of 10,000 to a run of all. The rows of the raw loop are the same,
in statements that were written before the clock began.
`python -m benchmarks.enqueue --scale 0.05` runs it alone.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks import enqueuing
from benchmarks.alone import alone
from benchmarks.enqueuing import FIRST, Figures
from benchmarks.measured import Measured, Plan, of_rounds
from benchmarks.members import OWN, running, title
from benchmarks.procfs import memory
from tests.support.private import PrivateServer
from tests.support.server import PASSWORD, ROOT

SINGLE, BULK, MILLION = 5_000, 100_000, 1_000_000

NOTES = {
    "single": "qd.enqueue and COMMIT, one connection",
    "bulk": "enqueue_many of a list, one transaction",
    "raw": "the same rows in ready-made statements of 1,000: what the server takes",
    "million": "enqueue_many of a generator with `each`, one transaction",
    "client": "Client.enqueue_many of a generator with `each`, 1,000 a transaction",
    "cli": "qd enqueue --count, ids into a file, progress on a terminal",
}
UNITS = {"rate": "rows/s", "peak": "MiB", "growth": "MiB", "steps": "steps"}


def measure(plan: Plan) -> list[Measured]:
    """`enqueue.single`, `enqueue.bulk` and `enqueue.raw` in rows/s; of the others rate, peak, growth and steps."""
    taken: dict[str, list[float]] = defaultdict(list)
    with running(OWN) as server:
        for number in range(plan.rounds):
            plan.say(f"enqueue on {title(server)}: round {number + 1} of {plan.rounds}")
            for name, figures in _round(plan, server):
                plan.say(f"  {name}: {figures['rate']:,.0f} rows/s")
                for what, value in figures.items():
                    taken[f"{name}.{what}"].append(value)
    return [_figure(name, rounds) for name, rounds in taken.items()]


def _figure(name: str, rounds: list[float]) -> Measured:
    way, what = name.split(".")
    key = way if what == "rate" and way in ("single", "bulk", "raw") else name
    return of_rounds(f"enqueue.{key}", rounds, UNITS[what], NOTES[way])


def _round(plan: Plan, server: PrivateServer) -> Iterator[tuple[str, Figures]]:
    million = plan.jobs(MILLION)
    with _shop(server) as login:
        yield "single", enqueuing.alone(enqueuing.single, login, plan.jobs(SINGLE))
        yield "bulk", enqueuing.alone(enqueuing.bulk, login, plan.jobs(BULK))
        yield "raw", enqueuing.alone(enqueuing.raw, login, plan.jobs(BULK))
    with _shop(server) as login:
        yield "million", enqueuing.alone(enqueuing.many, login, million)
    with _shop(server) as login:
        yield "client", enqueuing.alone(enqueuing.by_client, str(_config(plan.folder, login)), million)
    with _shop(server) as login:
        yield "cli", _by_command(plan.folder, login, million)


@contextmanager
def _shop(server: PrivateServer) -> Iterator[dict[str, Any]]:
    """A fresh database, and how an application connects to it."""
    shop = server.config(server.new_database(), "shop")
    place = {"host": shop.host, "port": shop.port, "database": shop.name, "user": shop.user, "password": PASSWORD}
    yield place
    server.drop_database(str(shop.name))


def _config(folder: Path, login: dict[str, Any]) -> Path:
    """A configuration of that place."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "enqueue.yaml"
    database = {**login, "name": login["database"]}
    del database["database"]
    file.write_text(json.dumps({"database": database}))  # JSON is YAML
    file.chmod(0o600)
    return file


def _by_command(folder: Path, login: dict[str, Any], count: int) -> Figures:
    small = _command(folder, login, min(FIRST, count // 2))
    all_of_them = _command(folder, login, count)
    return {**all_of_them, "growth": all_of_them["peak"] - small["peak"]}


def _command(folder: Path, login: dict[str, Any], count: int) -> Figures:
    """One run of `qd enqueue --count`: its rate from start to end, its peak, and the steps that its progress showed."""
    own = {"QD_CONFIG": str(_config(folder, login)), "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}
    argv = [sys.executable, "-m", "qd", "enqueue", "noop", '{"order": 7}', "--count", str(count)]
    terminal, end = pty.openpty()
    shown: list[bytes] = []
    began = time.monotonic()
    with (folder / "ids").open("wb") as ids:
        process = subprocess.Popen(
            argv, env=os.environ | own, cwd=folder, stdin=subprocess.DEVNULL, stdout=ids, stderr=end
        )
    os.close(end)
    reader = threading.Thread(target=_read, args=(terminal, shown), daemon=True)
    reader.start()
    peak = 0.0
    while process.poll() is None:
        with suppress(OSError, KeyError):  # it may have ended since
            peak = memory(process.pid)["VmHWM"]
        time.sleep(0.02)
    took = time.monotonic() - began
    reader.join(10)
    os.close(terminal)
    text, made = b"".join(shown).decode(errors="replace"), (folder / "ids").read_bytes().count(b"\n")
    if process.returncode or made != count:
        raise RuntimeError(f"qd enqueue --count {count} ended with {process.returncode} and {made} ids: {text[-500:]}")
    steps = {int(step) for step in re.findall(rf"(\d+)/{count}\b", text)}
    return {"rate": count / took, "peak": peak, "steps": len(steps)}


def _read(terminal: int, shown: list[bytes]) -> None:
    with suppress(OSError):  # EIO: who wrote there has ended
        while part := os.read(terminal, 65536):
            shown.append(part)


if __name__ == "__main__":
    alone(measure)
