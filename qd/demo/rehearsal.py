"""One run of the demo: the main job from end to end, on real files, judged by itself.

A private database, one job per file and a few of other kinds, a real daemon, and at the end a
comparison with the tree as it is. May import: everything below the command line. Owns: the order
of what happens.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

from rich.console import Console

from qd.client import Client
from qd.clock import monotonic
from qd.config import load_config
from qd.demo import ledger, plan, tree, verdict
from qd.demo.ledger import Line
from qd.demo.mariadb import PrivateMariaDB
from qd.demo.service import DemoFailed, Service, free_address
from qd.demo.verdict import Verdict
from qd.demo.view import LiveView, busy, say, table
from qd.events import Events
from qd.store import open_database
from qd.store.protocol import FailedRow, Filter, FullStore, QueueDepth

BULK = 1000
"""Jobs enqueued at once."""

STALLED = 120.0
"""Seconds without anything running or done after which the demo gives up."""


class Rehearsal:
    """One run.

    Args:
        root: the tree, absolute.
        own: the demo's folder, empty.
        leave_out: absolute folders that aren't entered.
    """

    def __init__(self, console: Console, root: bytes, own: Path, leave_out: Collection[bytes] = ()) -> None:
        self.console, self.root, self.own = console, root, own
        self.leave_out = [*leave_out, os.path.realpath(os.fsencode(own))]
        self.ledger = own / "ledger.jsonl"
        self.address = free_address()

    def run(self, mysql: bool) -> None:
        """From the walk to the verdict.

        Raises:
            QdError: something is not as it should be; what it is has been said.
        """
        with busy(self.console, "looking for files"):
            files, closed = tree.walk(self.root, self.leave_out)
        for reason in closed:
            say(self.console, f"left out: {reason}")
        with ExitStack() as stack:
            config = plan.write_config(self.own, self._database(stack, mysql), self.address)
            store = self._store(stack, config)
            asked_at = monotonic()
            total = self._enqueue(stack, config, list(files))
            env = {ledger.VARIABLE: str(self.ledger), "QD_RUNTIME_DIR": str(self.own)}
            service = Service(self.own, config, self.address, env)
            stack.callback(service.stop)
            service.start()
            ready_at = monotonic()
            self._watch(service, store, total)
            lines, dead = ledger.read(self.ledger), _dead(store)
            with busy(self.console, "comparing with the tree"):
                found = verdict.judge(files, lines, dead, asked_at)
            counts = _settled_counts(service, verdict.expected_counts(lines, dead))
            status = service.stop()
        if counts != (expected := verdict.expected_counts(lines, dead)):
            found.faults.append(f"/metrics counts {counts}, not {expected}")
        if status != 0:
            found.faults.append(f"the daemon ended with {status}: {service.last_words()}")
        self._report(found, lines, dead, counts, ready_at)

    def _database(self, stack: ExitStack, mysql: bool) -> dict[str, Any]:
        if not mysql:
            say(self.console, "database: the embedded SQLite store")
            return {"driver": "sqlite", "path": str(self.own / "qd.sqlite3")}
        server = stack.enter_context(PrivateMariaDB(self.own / "db"))
        say(self.console, f"database: a private MariaDB at {server.socket}")
        password = server.create("qd_demo", "qd_demo")
        return {"unix_socket": str(server.socket), "name": "qd_demo", "user": "qd_demo", "password": password}

    def _store(self, stack: ExitStack, config: Path) -> FullStore:
        database = open_database(load_config(str(config)).database, Events())
        database.migrate()
        store = database.store("demo")
        stack.callback(store.close)
        return store

    def _enqueue(self, stack: ExitStack, config: Path, files: list[bytes]) -> int:
        client = Client.from_config(str(config))
        stack.callback(client.close)
        began, jobs = monotonic(), plan.jobs(files, self.root)
        total = 0
        while part := list(islice(jobs, BULK)):
            total += len(client.enqueue_many(part))
        what = f"{total:,} jobs, {len(files):,} of them files of {tree.readable(self.root)}"
        say(self.console, f"enqueued: {what}, in {monotonic() - began:.2f} s")
        return total

    def _watch(self, service: Service, store: FullStore, total: int) -> None:
        """Shows the counts until all is settled."""
        pause, moved_at, before = Event(), monotonic(), -1
        with LiveView(self.console, total, service.url) as view:
            while True:
                depth = _depth(store)
                open_jobs = depth.ready + depth.delayed + depth.reserved + depth.stale
                view.show(depth, total - open_jobs)
                if not open_jobs:
                    return
                service.check()
                if open_jobs != before or depth.reserved:
                    moved_at, before = monotonic(), open_jobs
                if monotonic() - moved_at > STALLED:
                    raise DemoFailed(f"nothing moved for {STALLED:g} s with {open_jobs} jobs left")
                pause.wait(0.1)

    def _report(
        self, found: Verdict, lines: list[Line], dead: list[FailedRow], counts: dict[str, int], ready_at: float
    ) -> None:
        """Prints what came out. Raises DemoFailed if anything was wrong."""
        files = [line for line in lines if line.type in verdict.HASHERS]
        programs = sum(line.type == verdict.HASHERS[1] for line in files)
        table(self.console, [
            ("files", f"{found.hashed:,} hashed and measured, each once and right, {programs} of them by a program"),
            ("", f"{sum(line.size or 0 for line in files) / 1e6:,.1f} MB{_speed(files, ready_at)}"),
            ("can't be read", _some(found.rejected, "each in the dead letter with its reason")),
            ("changed meanwhile", _some(found.touched, "each done once, not compared")),
            ("failed, then done", f"{len(_attempts(lines))} jobs, at attempts {', '.join(_attempts(lines))}"),
            ("dead letter", _dead_letter(dead)),
            ("urgent job", f"enqueued last, done as number {found.urgent_rank} of {len(lines):,}"),
            ("delayed job", f"wanted after {plan.DELAY:g} s, ran {max(found.late, 0.0):.2f} s after that"),
            ("/metrics", ", ".join(f"{name} {count:,}" for name, count in counts.items())),
        ])  # fmt: skip
        for fault in found.faults:
            say(self.console, f"WRONG: {fault}", style="bold red")
        if found.faults:
            raise DemoFailed("not as it should be, see above")
        text = "All as it should be: compared with the tree, nothing is missing or done twice."
        say(self.console, text, style="bold green")


def _some(count: int, what: str) -> str:
    return f"{count:,}, {what}" if count else ""


def _speed(files: list[Line], since: float) -> str:
    """The rate of those whose time is known, if there are enough to have one."""
    ends = [line.at for line in files if line.at is not None]
    return f", {len(ends) / (max(ends) - since):,.0f} files a second" if len(ends) >= 100 else ""


def _attempts(lines: list[Line]) -> list[str]:
    return sorted(str(line.attempt) for line in lines if line.type == "fails_first")


def _dead_letter(dead: list[FailedRow]) -> str:
    for row in dead:
        if row.type == "always_fails":
            return f"job {row.job_id} after {row.attempts} attempts, reason {row.reason}: {row.error}"
    return "none"


def _settled_counts(service: Service, expected: dict[str, int]) -> dict[str, int]:
    """What /metrics counts, once it says what it should or two seconds have passed.

    A row is settled a moment before its event is counted.
    """
    deadline, pause = monotonic() + 2.0, Event()
    while (counts := service.counts(tuple(expected))) != expected and monotonic() < deadline:
        pause.wait(0.05)
    return counts


def _depth(store: FullStore) -> QueueDepth:
    return next((depth for depth in store.depths() if depth.queue == plan.QUEUE), QueueDepth(plan.QUEUE))


def _dead(store: FullStore) -> list[FailedRow]:
    """All dead letters, page by page."""
    rows: list[FailedRow] = []
    while page := store.list_failed(Filter(after=rows[-1].id if rows else None)):
        rows += page
    return rows
