"""`qd explain ID`: why a job isn't running. The words are in qd.cli.reasons.

May import: the modules of cli, the protocol's values.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict

import click

from qd.cli import paging
from qd.cli.context import Cli, pass_cli
from qd.cli.reasons import Circumstances, Policy, why, why_dead
from qd.cli.terminal import facts, safe, show_json
from qd.errors import ConnectionLost, NotFound, StoreError
from qd.store.protocol import DaemonRow, FailedRow, JobRow, StaleRow


@click.command()
@paging.job_id
@paging.as_json
@pass_cli
def explain(cli: Cli, job_id: int, as_json: bool) -> None:
    """Say why a job isn't running."""
    job = _find(cli, job_id)
    if isinstance(job, FailedRow):
        holder = cli.store.key_holder(job.queue, job.unique_key) if job.unique_key is not None else None
        state, reasons = "failed", list(why_dead(job, holder))
    else:
        state, reasons = job.state, list(why(job, _circumstances(cli, job)))
    if as_json:
        show_json({"id": job_id, "queue": job.queue, "type": job.type, "state": state,
                   "reasons": [asdict(reason) for reason in reasons]})  # fmt: skip
        return
    facts([("job", f"{job_id} ({job.type} in queue {job.queue})"), ("state", state)])
    for reason in reasons:
        click.echo(f"- {safe(reason.text)}")


def _find(cli: Cli, job_id: int) -> JobRow | FailedRow:
    """The job, or the newest dead letter of that id."""
    for find in (cli.store.job, cli.store.failed, cli.store.job):  # again: it may have been retried in between
        with suppress(NotFound):
            return find(job_id)
    raise NotFound(
        f"no job {job_id}: it has finished (its row is deleted then), was deleted, never was, or the transaction that "
        "enqueues it isn't committed yet"
    )


def _circumstances(cli: Cli, job: JobRow) -> Circumstances:
    daemons, policy = tuple(cli.store.daemons()), _policy(cli, job.queue)
    first = [queue for queues in policy.first.values() for queue in queues]
    look = cli.store.look(list(dict.fromkeys([job.queue, *first])), full=True)
    ready = job.state == "ready"
    return Circumstances(
        now=cli.store.now(),
        policy=policy,
        paused=job.queue in look.paused,
        daemons=daemons,
        position=_position(cli, job) if ready else 0,
        holders=tuple(cli.store.holders(_queues(daemons, job.queue))) if ready else (),
        busy=frozenset(look.hits),
        locked=ready and _locked(cli, job),
    )


def _policy(cli: Cli, queue: str) -> Policy:
    policy = cli.policy(queue)
    first = {
        worker.label: worker.queues[: worker.queues.index(queue)]
        for worker in cli.config.workers
        if queue in worker.queues
    }
    return Policy(policy.max_attempts, policy.timeout, queue in cli.config.queues, tuple(cli.config.queues), first)


def _queues(daemons: tuple[DaemonRow, ...], queue: str) -> list[str]:
    """All queues that the daemons of this one serve: their threads may be at work for any."""
    return sorted({name for daemon in daemons if queue in daemon.queues for name in daemon.queues})


def _position(cli: Cli, job: JobRow) -> int:
    try:
        return cli.store.position(job.id)
    except NotFound:  # it has just been run; what was true a moment ago is what is told
        return 0


def _locked(cli: Cli, job: JobRow) -> bool:
    """Whether a claim would pass the row over; a server that takes no writes doesn't tell."""
    row = StaleRow(job.id, job.queue, job.type, job.reserved_by or "", "", job.attempts)
    try:
        return row not in cli.store.free([row]) and cli.store.job(job.id).state == "ready"
    except NotFound:
        return False
    except ConnectionLost:
        raise
    except StoreError:
        return False
