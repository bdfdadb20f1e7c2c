"""Under what a run was made: machine, load, disk, versions, and the servers' own word on how durable they are.

Nothing here ends a run: what can't be found out is said as such. May import: measured, members and the backends
(inside the functions). Starts each server once and ends it again.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from benchmarks.measured import Plan
from benchmarks.record import Conditions
from benchmarks.sections import Part

ROOT = Path(__file__).resolve().parents[1]

VARIABLES = (
    "version", "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_doublewrite",
    "innodb_flush_method", "innodb_buffer_pool_size", "innodb_log_file_size", "innodb_redo_log_capacity",
    "transaction_isolation", "tx_isolation", "performance_schema",
)  # fmt: skip
"""Of MySQL and MariaDB; each server has some of them."""

POSTGRES = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "wal_sync_method")
REDIS = ("appendonly", "appendfsync", "save")

OWN = "mariadb"
"""The machine's own server, which every section uses."""

SYNCS = 100
"""Writes that are synced to know the disk."""

MEMORY = ("tmpfs", "ramfs")
"""File systems that sync nothing."""

UNKNOWN = "not found out"
"""Stands, with the reason, for the facts that should have been there."""

Facts = dict[str, str]


def before(plan: Plan, asked: Sequence[str]) -> Conditions:
    """What is known before anything was run; `asked` are the names of sections."""
    now = datetime.now(timezone.utc)
    return {
        "run": {
            "begun": f"{now:%Y-%m-%d %H:%M} UTC",
            "sections": ", ".join(asked),
            "rounds": str(plan.rounds),
            "scale": f"{plan.scale:g}",
            "qd": _commit(),
            "load before, 1, 5 and 15 min": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        },
        "machine": _machine(plan.folder),
        "Python and drivers": _python(),
    }


def after(plan: Plan, part: Part, known: Conditions) -> Conditions:
    """What can be known once a part has seen to it that its servers and environments are there.

    Args:
        part: the peers' servers and versions belong to `drain`.
        known: what earlier parts have found, which isn't asked again; what they couldn't find out is.
    """
    server = part.server or OWN
    finders = {f"server {server}": lambda: _mysql(server)}
    if part.section.name == "drain":
        finders |= {
            "PostgreSQL": _postgres,
            "Redis": lambda: _redis(synced=False),
            "Redis, `.synced`": lambda: _redis(synced=True),
            "peers": lambda: _peers(plan.folder / "venvs"),
        }
    return {group: _tried(find) for group, find in finders.items() if group not in known or UNKNOWN in known[group]}


def stolen() -> tuple[int, int]:
    """Ticks that the hypervisor gave to others, and all ticks, since the start of the machine."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[7], sum(ticks)


def stolen_since(then: tuple[int, int]) -> str:
    """The share that was stolen since then."""
    stole, total = (now - was for now, was in zip(stolen(), then, strict=True))
    return f"{100 * stole / max(1, total):.1f} % of the time"


def _tried(find: Callable[[], Facts]) -> Facts:
    try:
        return find()
    except Exception as error:  # whatever keeps it from being known, the run's figures are there
        return {UNKNOWN: " ".join(f"{type(error).__name__}: {error}".split())[:300]}


def _commit() -> str:
    try:
        git = ["git", "-C", str(ROOT)]
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "no git checkout"
    return commit + (", with uncommitted changes" if changed.strip() else "")


def _machine(folder: Path) -> Facts:
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "system": f"{_system()}, kernel {platform.release()}",
        "processor": _line_of("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": f"{len(os.sched_getaffinity(0))}, shared by the server, qd and what enqueues",
        "memory": f"{_kib('MemTotal') / 2**20:.1f} GiB, {_kib('MemAvailable') / 2**20:.1f} GiB of it free before",
        "a synced write of 4 KiB": _sync(Path(tempfile.gettempdir())),
        "file system of the servers' data": _file_system(Path(tempfile.gettempdir())),
    }


def _system() -> str:
    with suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return platform.system()


def _line_of(file: str, name: str) -> str:
    with suppress(OSError):
        for line in Path(file).read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""


def _kib(name: str) -> int:
    return int((_line_of("/proc/meminfo", name) or "0 kB").split()[0])


def _sync(folder: Path) -> str:
    """What a commit's sync takes on this disk, which bounds everything that is durable."""
    times = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    return f"{median(times):.2f} ms (median of {SYNCS}, at most {max(times):.1f})"


def _file_system(folder: Path) -> str:
    found = subprocess.run(["stat", "--file-system", "--format=%T", str(folder)], capture_output=True, text=True)
    name = found.stdout.strip() or "unknown"
    return f"{name}: memory, a sync costs nothing and NO server here survives a power cut" if name in MEMORY else name


def _python() -> Facts:
    import mysql.connector

    flavour = "C extension" if mysql.connector.HAVE_CEXT else "pure Python"
    facts = {"Python": sys.version.split()[0], "mysql-connector-python": f"{mysql.connector.__version__}, {flavour}"}
    for package in ("prometheus-client", "pydantic", "PyYAML", "click"):
        with suppress(PackageNotFoundError):
            facts[package] = version(package)
    return facts


def _mysql(name: str) -> Facts:
    from benchmarks.members import running

    with running(name) as server:
        listed = ", ".join(f"'{variable}'" for variable in VARIABLES)
        rows = dict(server.run(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})"))
    return {name: _size(name, str(rows[name])) for name in VARIABLES if name in rows}


def _size(name: str, value: str) -> str:
    sizes = name.endswith(("_size", "_capacity"))
    return f"{int(value) / 2**20:.0f} MiB" if sizes and value.isdigit() else value


def _postgres() -> Facts:
    from benchmarks.backends.postgres import Postgres

    server = Postgres()
    try:
        server.start()
        server.new_database()
        return {name: server.ask(f"SHOW {name}") for name in POSTGRES}
    finally:
        server.discard()


def _redis(*, synced: bool) -> Facts:
    from benchmarks.backends.redis import Redis

    server = Redis(synced=synced)
    try:
        server.start()
        return {"version": server.version()} | _redis_settings(urlsplit(server.url).port or 6379)
    finally:
        server.discard()


def _redis_settings(port: int) -> Facts:
    """As the server says them, over a connection of our own."""
    facts: Facts = {}
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, connection.makefile("rb") as answers:
        for name in REDIS:
            connection.sendall(f"CONFIG GET {name}\r\n".encode())
            lines = [answers.readline().decode().strip() for _ in range(5)]  # *2, $N, the name, $N, the value
            facts[name] = lines[4] or "none"
    return facts


def _peers(environments: Path) -> Facts:
    """What pip installed for each."""
    found: Facts = {}
    for listed in sorted(environments.glob("*/versions.json")):
        packages = json.loads(listed.read_text())
        found[listed.parent.name] = ", ".join(f"{name} {number}" for name, number in sorted(packages.items()))
    return found or {"none": "no environment was made"}


def whole_time(began: float) -> str:
    """How long it took since a moment of the monotonic clock."""
    return f"{(time.monotonic() - began) / 60:.0f} min"
