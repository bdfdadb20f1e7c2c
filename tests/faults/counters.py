"""The counters of a daemon that lived through it all, held against the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qd.clock import monotonic
from tests.faults.fleet import Member
from tests.faults.story import Story
from tests.support.daemon import Daemon
from tests.support.waiting import wait_for

_SERIES = re.compile(r"(\w+)\{([^}]*)\} (\S+)")

OWN = ("error", "crash", "timeout")
"""Reasons of dead letters that only the holder writes. What a sweep writes is counted by its daemon too, but not
where the answer to its COMMIT was lost."""

FAILED = {"timeout": "failed", "crashed": "failed"}
"""Outcomes that rows don't tell from `failed`."""


def disagreements(member: Member, stories: dict[int, Story]) -> list[str]:
    """Where its counters tell something else than the rows that it wrote; empty if it isn't the first process.

    What the daemon says follows what it wrote, so it is given a moment.
    """
    if len(member.config.started) > 1:
        return []
    wanted = _written(member.account, stories)
    until = monotonic() + 10

    def found() -> list[str] | None:
        wrong = [*_compared(wanted, member.daemon)]
        return wrong if not wrong or monotonic() > until else None

    return wait_for(lambda: (found(),) if found() is not None else None, 30, "counters")[0] or []


def _written(account: str, stories: dict[int, Story]) -> dict[str, int]:
    """What one account wrote: per outcome, and per reason of a dead letter."""
    counts = dict.fromkeys(["succeeded", "snoozed", "failed", *(f"dead letters {reason}" for reason in OWN)], 0)
    for story in stories.values():
        for before, entry in zip([None, *story.row], story.row, strict=False):
            if entry.writer != account:
                continue
            burial = before is not None and before.what == "buried"
            counts["succeeded"] += entry.what == "gone" and not burial
            counts["snoozed"] += entry.what == "release" and "snooze" in story.notes(entry.owner)
            if entry.what == "buried" and entry.reason in OWN:
                counts[f"dead letters {entry.reason}"] += 1
            counts["failed"] += entry.what == "retry" or (entry.what == "buried" and entry.reason in OWN)
    return counts


def _compared(wanted: dict[str, int], daemon: Daemon) -> Iterator[str]:
    counted = dict.fromkeys(wanted, 0.0)
    for name, labels, value in _SERIES.findall(daemon.get("/metrics")[1]):
        told = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if name == "qd_job_attempts_total" and (outcome := FAILED.get(told["outcome"], told["outcome"])) in counted:
            counted[outcome] += float(value)
        if name == "qd_jobs_dead_lettered_total" and told["reason"] in OWN:
            counted[f"dead letters {told['reason']}"] += float(value)
    for what, number in wanted.items():
        if counted[what] != number:
            yield f"/metrics of daemon {daemon.process.pid} says {counted[what]:g} {what}, the rows say {number}"
