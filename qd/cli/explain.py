"""`qd explain ID`: why a job isn't running. May import: the modules of cli, the protocol's values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime

import click

from qd.cli import paging
from qd.cli.context import Cli, pass_cli
from qd.cli.shape import away, stamp
from qd.cli.terminal import facts, plural, safe, show_json
from qd.duration import spell
from qd.errors import NotFound
from qd.store.protocol import POSITION_COUNTED, DaemonRow, FailedRow, JobRow


@dataclass(frozen=True)
class Reason:
    """One reason why a job isn't running.

    Attributes:
        code: for programs.
        text: for people: what is so, and what to do about it.
    """

    code: str
    text: str


@dataclass(frozen=True)
class Circumstances:
    """What stands around a job in qd_jobs."""

    paused: bool
    daemons: list[DaemonRow]
    now: datetime
    position: int


@click.command()
@paging.job_id
@paging.as_json
@pass_cli
def explain(cli: Cli, job_id: int, as_json: bool) -> None:
    """Say why a job isn't running."""
    job = _find(cli, job_id)
    if isinstance(job, FailedRow):
        state, reasons = "failed", [_of_dead_letter(job)]
    else:
        state, reasons = job.state, list(why(job, _circumstances(cli, job)))
    if as_json:
        show_json({"id": job_id, "queue": job.queue, "type": job.type, "state": state,
                   "reasons": [asdict(reason) for reason in reasons]})  # fmt: skip
        return
    facts([("job", f"{job_id} ({job.type} in queue {job.queue})"), ("state", state)])
    for reason in reasons:
        click.echo(f"- {safe(reason.text)}")


def why(job: JobRow, around: Circumstances) -> Iterator[Reason]:
    """All reasons at once, the one that holds it up first."""
    if job.state == "reserved":
        yield _of_reserved(job, around.now)
        return
    if job.state == "blocked":
        yield Reason("blocked", "it waits for a limit or for another job")
    if job.state == "stale":
        yield _of_stale(job, around.now)
    if job.state == "delayed":
        yield _of_delayed(job, around.now)
    if around.paused:
        yield Reason("paused", f"queue {job.queue} is paused; `qd queues resume {job.queue}` lets it go on")
    yield from _of_daemons(job, around.daemons)
    if job.state == "ready":
        yield _of_position(around.position)


def _of_dead_letter(row: FailedRow) -> Reason:
    error = (row.error or "").strip().split("\n")[0]
    return Reason(
        "failed",
        f"it is a dead letter since {stamp(row.failed_at)}, after {plural(row.attempts, 'attempt')}, "
        f"with reason {row.reason}{': ' + error if error else ''}; `qd failed retry {row.job_id}` brings it back",
    )


def _of_reserved(job: JobRow, now: datetime) -> Reason:
    left = spell(max(0.0, (job.available_at - now).total_seconds()))
    return Reason(
        "reserved",
        f"it is held: {job.reserved_by} took it {_ago(job.reserved_at, now)}, runs it or soon will, "
        f"and holds its lease for another {left} (until {stamp(job.available_at)}), or renews it; "
        "should that process be gone, the job is taken back after that",
    )


def _of_stale(job: JobRow, now: datetime) -> Reason:
    return Reason(
        "stale",
        f"it was taken by {job.reserved_by} {_ago(job.reserved_at, now)}, whose lease ran out "
        f"{_ago(job.available_at, now)}: "
        "its owner died or stalls. A daemon that serves the queue takes it back after two looks; "
        "`qd recover` does it now",
    )


def _of_delayed(job: JobRow, now: datetime) -> Reason:
    due = f"it is due {away((job.available_at - now).total_seconds())} ({stamp(job.available_at)})"
    if job.attempts:
        error = (job.last_error or "").strip().split("\n")[0]
        due += f", waiting after attempt {job.attempts}{': ' + error if error else ''}"
    return Reason("delayed", f"{due}; `qd jobs release {job.id}` makes it due now")


def _of_daemons(job: JobRow, daemons: list[DaemonRow]) -> Iterator[Reason]:
    """What the live daemons lack for this job."""
    serving = [daemon for daemon in daemons if job.queue in daemon.queues]
    if not serving:
        there = (
            "none has been seen in the last 60 s, but for such as are stopping"
            if not daemons
            else f"none of {len(daemons)} live daemons does"
        )
        yield Reason("not_served", f"no daemon serves queue {job.queue}: {there}; see `workers:` in the configuration")
    elif not any(job.type in daemon.types for daemon in serving):
        yield Reason(
            "unknown_type",
            f"no daemon that serves queue {job.queue} has a handler for type {job.type}; see `handlers:` in the "
            "configuration. After 15 minutes of this it becomes a dead letter",
        )


def _of_position(position: int) -> Reason:
    if position == 0:
        return Reason("next", "it is ready and the next of its queue")
    many = f"{POSITION_COUNTED:,} or more ready jobs" if position >= POSITION_COUNTED else plural(position, "ready job")
    return Reason("queued", f"it is ready, behind {many} of its queue")


def _ago(moment: datetime | None, now: datetime) -> str:
    return "at an unknown time" if moment is None else away((moment - now).total_seconds())


def _find(cli: Cli, job_id: int) -> JobRow | FailedRow:
    """The job, or the newest dead letter of that id."""
    try:
        return cli.store.job(job_id)
    except NotFound:
        pass
    try:
        return cli.store.failed(job_id)
    except NotFound:
        raise NotFound(
            f"no job {job_id}: it has finished (its row is deleted then), was deleted, or never was"
        ) from None


def _circumstances(cli: Cli, job: JobRow) -> Circumstances:
    depths = {depth.queue: depth for depth in cli.store.depths()}
    return Circumstances(
        paused=job.queue in depths and depths[job.queue].paused,
        daemons=cli.store.daemons(),
        now=cli.store.now(),
        position=_position(cli, job) if job.state == "ready" else 0,
    )


def _position(cli: Cli, job: JobRow) -> int:
    try:
        return cli.store.position(job.id)
    except NotFound:  # it has just been run; what was true a moment ago is what is told
        return 0
