"""`qd explain ID`: why a job isn't running. The words are in qd.cli.reasons.

May import: the modules of cli, the protocol's values.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TypeVar

import click

from qd.cli import paging
from qd.cli.context import Cli, pass_cli
from qd.cli.reasons import Circumstances, Policy, why, why_dead
from qd.cli.terminal import facts, safe, show_json
from qd.errors import OUT_OF_REACH, NotFound, StoreError
from qd.store.protocol import DaemonRow, FailedRow, JobRow

T = TypeVar("T")
U = TypeVar("U")


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
    """What its state makes worth asking. All are plain reads: a look that locked a row would hold up its claim."""
    ask = _Asking()
    daemons = ask("which daemons live", lambda: tuple(cli.store.daemons()), None)
    around = Circumstances(now=cli.store.now(), policy=_policy(cli, job.queue), daemons=daemons)
    if job.state != "reserved":
        paused = ask("whether its queue is paused", lambda: job.queue in cli.store.look([], full=True).paused, False)
        around = replace(around, paused=paused)
    if job.state == "ready":
        around = _among_others(cli, job, around, ask)
    return replace(around, untold=tuple(ask.untold))


def _among_others(cli: Cli, job: JobRow, around: Circumstances, ask: _Asking) -> Circumstances:
    """What only others' rows tell: who is before a ready job, and at work."""
    before = around.policy.first.values()
    first = list(dict.fromkeys(queue for queues in before for queue in queues)) if all(before) else []
    served = _queues(around.daemons or (), job.queue)
    look = ask("what is served before its queue", lambda: cli.store.look(first, full=True), None) if first else None
    return replace(
        around,
        position=ask("its place in the queue", lambda: _position(cli, job), None),
        holders=ask("what its daemons hold", lambda: tuple(cli.store.holders(served)), None),
        with_ready=frozenset(look.hits if look else ()),
    )


class _Asking:
    """Asks what may fail by itself (a locked table, a walk that its time limit ends) and mustn't cost the rest.

    Attributes:
        untold: what couldn't be asked, and why.
    """

    def __init__(self) -> None:
        self.untold: list[str] = []

    def __call__(self, what: str, question: Callable[[], T], otherwise: U) -> T | U:
        """The answer, or `otherwise` where there is none."""
        try:
            return question()
        except OUT_OF_REACH:
            raise
        except StoreError as error:
            self.untold.append(f"{what} ({error})")
            return otherwise


def _policy(cli: Cli, queue: str) -> Policy:
    policy = cli.policy(queue)
    first = {
        worker.label: worker.queues[: worker.queues.index(queue)]
        for worker in cli.config.workers
        if queue in worker.queues
    }
    labels = frozenset(worker.label for worker in cli.config.workers)
    known = queue in cli.config.queues
    return Policy(policy.max_attempts, policy.timeout, known, tuple(cli.config.queues), first, labels)


def _queues(daemons: tuple[DaemonRow, ...], queue: str) -> list[str]:
    """All queues that the daemons of this one serve: their threads may be at work for any."""
    return sorted({name for daemon in daemons if queue in daemon.queues for name in daemon.queues})


def _position(cli: Cli, job: JobRow) -> int:
    try:
        return cli.store.position(job.id)
    except NotFound:  # it has just been run; what was true a moment ago is what is told
        return 0
