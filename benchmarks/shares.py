"""What can't be flat, and its share of the time: the full look, the stale sweep, the sampler's count of the rows.

Each grows with the table, or with what is dead in it, and is made more rarely in turn. Measured inside a real daemon,
on the heaviest table of the regimes, with a foreign snapshot held since before 100,000 jobs passed.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks import rows
from benchmarks.measured import Measured, Plan
from benchmarks.shipped import daemon
from benchmarks.states import all_of_them
from benchmarks.subject import QUEUE, Subject
from tests.support.private import PrivateServer
from tests.support.waiting import wait_for

NAMES = {"full_look": "full_look", "stale": "sweep", "count": "sampler"}
"""The store's calls, and what does them."""

WATCHED = 60.0
"""Seconds that a daemon is watched for, by the scale, and longer until each call was seen MANY times."""

LEAST_WATCHED, LONGEST = 20.0, 4
"""Seconds at least; times WATCHED at most."""

MANY = 4

DRAIN = 900.0
"""Seconds in which the jobs must have passed, on the slowest machine."""

Call = tuple[float, float]
"""When it began, and how long it took, in seconds."""


def shares(plan: Plan, server: PrivateServer, name: str) -> Iterator[Measured]:
    """`share.SERVER.{full_look,sweep,sampler}` in percent of the time, and how long each call took."""
    plan.say(f"  what can't be flat, with {name}")
    calls = _watched(plan, server)
    for call, what in NAMES.items():
        seen = calls[call]
        every = f"every {_period(seen):.1f} s" if len(seen) > 1 else "once"
        yield Measured(f"share.{name}.{what}", share(seen) * 100, "%", note=f"of the time; {len(seen)} calls, {every}")
        yield Measured(f"share.{name}.{what}.each", median(took for _, took in seen) * 1000, "ms", note="each call")


def _watched(plan: Plan, server: PrivateServer) -> dict[str, list[Call]]:
    """The calls of a daemon that is idle on the heaviest table."""
    subject = Subject(server)
    all_of_them(plan, subject)
    with tempfile.TemporaryDirectory(prefix="qd-bench-") as folder, subject.foreign_snapshot():
        file = Path(folder) / "calls"
        with daemon(server, subject.config.name, CALLS=str(file)) as running:
            rows.ready(subject.run, plan.jobs(100_000))
            wait_for(lambda: not running.qd.jobs(_OURS), DRAIN, "the jobs to pass")
            since = time.monotonic()
            _wait(plan, file, since)
        calls = read_calls(file, since)
    subject.close()
    return calls


_OURS = f"queue = '{QUEUE}' AND (lane = 0 AND available_at <= NOW(6) OR reserved_by NOT LIKE '{rows.ELSEWHERE}%')"
"""What is ready, or in the hands of the daemon."""


def _wait(plan: Plan, file: Path, since: float) -> None:
    watched = max(LEAST_WATCHED, WATCHED * plan.scale)
    while (passed := time.monotonic() - since) < watched * LONGEST:
        calls = read_calls(file, since)
        if passed >= watched and all(len(calls[call]) >= MANY for call in NAMES):
            return
        time.sleep(0.5)


def read_calls(file: Path, since: float) -> dict[str, list[Call]]:
    """The calls that began since then."""
    calls: dict[str, list[Call]] = defaultdict(list)
    for line in file.read_text().splitlines():
        name, began, ended = line.split()
        if int(began) >= since * 1e9:
            calls[name].append((int(began) / 1e9, (int(ended) - int(began)) / 1e9))
    return calls


def share(calls: list[Call]) -> float:
    """Of whole periods: from the first call's begin to the last one's, which isn't counted."""
    if len(calls) < 2:
        return 0.0
    return sum(took for _, took in calls[:-1]) / (calls[-1][0] - calls[0][0])


def _period(calls: list[Call]) -> float:
    return median(later[0] - sooner[0] for sooner, later in pairwise(calls))
