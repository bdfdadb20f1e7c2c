"""What an idle daemon costs: statements that the server is sent in a second, and processor time of the daemon.

Statements are the server's own count of them (`Questions`, COMMIT and SET included), on a server that nobody else
uses; the one that asks is taken off. Processor time is that of the whole process with all its threads. Nobody
scrapes /metrics meanwhile.
`python -m benchmarks.idle --scale 0.2` runs it alone.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from benchmarks.alone import alone
from benchmarks.measured import Measured, Plan, of_rounds
from benchmarks.members import OWN, running, title
from benchmarks.procfs import processor_seconds
from benchmarks.shipped import daemon
from tests.support.private import PrivateServer

WATCHED, LEAST = 60.0, 10.0
"""Seconds that each daemon is watched for, by the scale, and at least."""

SETTLING = 10.0
"""Seconds after its READY until it is: what it does once at its start is not what it costs."""

TOLD = 4
"""Kinds of statements that the note names."""


@dataclass(frozen=True)
class Kind:
    """A daemon's queues and threads."""

    name: str
    queues: tuple[str, ...]
    workers: tuple[dict[str, Any], ...]


EIGHT = tuple(f"queue{number}" for number in range(8))
KINDS = (
    Kind("1queue", ("default",), ({"queues": ["default"], "threads": 4},)),
    Kind("8queues", EIGHT, tuple({"queues": [queue], "threads": 2} for queue in EIGHT)),
)
"""As shipped, and eight queues with two threads each."""

Counts = dict[str, int]


def measure(plan: Plan) -> list[Measured]:
    """`idle.statements.KIND` and `idle.cpu.KIND`."""
    statements: dict[str, list[float]] = defaultdict(list)
    shares: dict[str, list[float]] = defaultdict(list)
    notes: dict[str, str] = {}
    seconds = max(LEAST, WATCHED * plan.scale)
    with running(OWN) as server:
        for number in range(plan.rounds):
            for kind in KINDS:
                plan.say(f"idle on {title(server)}: {kind.name}, {seconds:g} s, round {number + 1} of {plan.rounds}")
                counts, share, passed = _watched(server, kind, seconds)
                statements[kind.name].append(counts["Questions"] / passed)
                shares[kind.name].append(share)
                notes[kind.name] = _kinds_of(counts, passed)
    return list(_rows(statements, shares, notes))


def _watched(server: PrivateServer, kind: Kind, seconds: float) -> tuple[Counts, float, float]:
    """What was counted, the share of a core in percent, and the seconds that passed."""
    database = server.new_database()
    with (
        daemon(server, database, queues=kind.queues, workers=kind.workers) as running,
        closing(server.connect(autocommit=True)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        time.sleep(SETTLING)
        pid, began = running.process.pid, time.monotonic()
        used, before = processor_seconds(pid), _counts(cursor)
        time.sleep(seconds)
        after, passed = _counts(cursor), time.monotonic() - began
        share = (processor_seconds(pid) - used) / passed * 100
    server.drop_database(database)
    return {name: after[name] - before.get(name, 0) - (name in OWN_COUNTS) for name in after}, share, passed


OWN_COUNTS = ("Questions", "Com_show_status")
"""What the asking itself adds one to."""


def _counts(cursor: Any) -> Counts:
    cursor.execute("SHOW GLOBAL STATUS WHERE Variable_name = 'Questions' OR Variable_name LIKE 'Com\\_%'")
    return {str(name): int(value) for name, value in cursor.fetchall() if str(value).isdigit()}


def _kinds_of(counts: Counts, passed: float) -> str:
    kinds = [(count, name.removeprefix("Com_")) for name, count in counts.items() if name != "Questions" and count > 0]
    most: Sequence[tuple[int, str]] = sorted(kinds, reverse=True)[:TOLD]
    return "a second: " + ", ".join(f"{count / passed:.2f} {name}" for count, name in most)


def _rows(
    statements: dict[str, list[float]], shares: dict[str, list[float]], notes: dict[str, str]
) -> Iterator[Measured]:
    for kind in KINDS:
        threads = sum(worker["threads"] for worker in kind.workers)
        yield of_rounds(f"idle.statements.{kind.name}", statements[kind.name], "statements/s", notes[kind.name])
        yield of_rounds(f"idle.cpu.{kind.name}", shares[kind.name], "%", f"of a core; {threads} threads")


if __name__ == "__main__":
    alone(measure)
