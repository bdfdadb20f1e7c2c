"""`qd jobs`: waiting and running jobs. May import: the modules of cli, the protocol's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import click

from qd.cli import ending, paging
from qd.cli.context import Cli, pass_cli
from qd.cli.shape import away, brief, job_json, payload_text, priority, stamp
from qd.cli.terminal import CUT, confirm, facts, plural, progress, safe, show_json, table
from qd.errors import QdError, StoreError
from qd.store.protocol import STATES, Filter, JobRow

BATCH = 200
"""Rows deleted in one transaction."""

PAST = ("attempt", "outcome", "start", "end", "worker")
"""What an entry of the history tells, besides its error."""

HEADERS = ("ID", "QUEUE", "TYPE", "STATE", "PRIORITY", "ATTEMPTS", "DUE")
HELD = ("HELD SINCE", "BY")
"""Shown where the list has a job that somebody holds."""


@click.group()
def jobs() -> None:
    """Waiting and running jobs."""


def filters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the filters that jobs have."""
    for option in (
        click.option("--state", type=click.Choice(STATES), help="Only in this state."),
        click.option("--type", "job_type", metavar="TYPE", help="Only of this type."),
        paging.queue,
    ):
        function = option(function)
    return function


@jobs.command("list")
@filters
@paging.pages("this job's id")
@pass_cli
def list_jobs(
    cli: Cli, queue: str | None, job_type: str | None, state: str | None, limit: int, after: int | None, as_json: bool
) -> None:
    """List jobs by id."""
    where = Filter(queue=queue, type=job_type, state=state, after=after, limit=limit + 1)
    rows, following = paging.page(cli.store.list_jobs(where), limit, lambda row: row.id)
    if as_json:
        show_json({"jobs": [job_json(row) for row in rows], "next": following})
        return
    held = any(row.reserved_by for row in rows)
    headers = (*HEADERS, *(HELD if held else ()), "PAYLOAD")
    table(headers, [_cells(row, held) for row in rows], right=(0, 5))
    paging.say_more(following)


@jobs.command()
@paging.job_id
@paging.as_json
@pass_cli
def show(cli: Cli, job_id: int, as_json: bool) -> None:
    """Show one job, its payload whole."""
    row = cli.store.job(job_id)
    if as_json:
        show_json(job_json(row))
        return
    facts(_facts(row, cli.store.now(), cli.policy(row.queue).max_attempts))


@jobs.command()
@paging.job_ids
@pass_cli
def release(cli: Cli, job_ids: tuple[int, ...]) -> int:
    """Make delayed or stale jobs due now. Refused while a lease is alive."""

    def release_one(job_id: int) -> str:
        policy = cli.policy(cli.store.job(job_id).queue)
        cli.store.release_job(job_id, policy.max_attempts)
        return f"released job {job_id}"

    return each(job_ids, release_one)


@jobs.command()
@paging.job_ids
@filters
@paging.yes
@pass_cli
def delete(
    cli: Cli, job_ids: tuple[int, ...], queue: str | None, job_type: str | None, state: str | None, yes: bool
) -> int:
    """Delete jobs, by id or by filter; those whose lease is alive stay."""
    where = Filter(queue=queue, type=job_type, state=state)
    filtered = where != Filter()
    if bool(job_ids) == filtered:
        raise click.UsageError("name either ids or a filter (--queue, --type, --state)")
    if job_ids:
        return each(job_ids, lambda job_id: _delete_one(cli, job_id))
    count, highest = cli.store.count_jobs(where)
    if not confirm(count, f"delete {plural(count, 'job')}", yes):
        return ending.DONE
    deleted = _delete_all(cli, where, count, highest)
    click.echo(f"deleted {plural(deleted, 'job')}")
    if deleted < count:
        click.echo(f"{plural(count - deleted, 'job')} had a living lease, or changed meanwhile, and stayed", err=True)
    return ending.DONE


def _delete_one(cli: Cli, job_id: int) -> str:
    cli.store.delete_job(job_id)
    return f"deleted job {job_id}"


def _delete_all(cli: Cli, where: Filter, count: int, highest: int) -> int:
    """Deletes what the filter means, up to the id that was the highest when it was counted."""
    deleted = 0
    with progress("deleting", count) as done:
        for ids in _pages_of_ids(cli, where, highest):
            deleted += cli.store.delete_jobs(ids, where)
            done(len(ids))
    return deleted


def _pages_of_ids(cli: Cli, where: Filter, highest: int) -> Iterator[list[int]]:
    after = 0
    while ids := cli.store.job_ids(replace(where, after=after, limit=BATCH)):
        after = ids[-1]
        yield [job_id for job_id in ids if job_id <= highest]
        if after >= highest:
            return


def each(job_ids: tuple[int, ...], act: Callable[[int], str]) -> int:
    """Does an act for each id, prints what it returns or says its failure, and goes on.

    A database that is away ends it.

    Returns:
        The exit code.
    """
    if not job_ids:
        raise click.UsageError("name at least one id")
    code = ending.DONE
    for job_id in dict.fromkeys(job_ids):
        try:
            click.echo(act(job_id))
        except StoreError:
            raise
        except QdError as error:
            ending.say(error)
            code = ending.exit_code(error)
    return code


def _cells(row: JobRow, held: bool) -> list[object]:
    due = "-" if row.reserved_by else brief(row.available_at)  # of a held row that is its lease's end
    return [
        row.id, row.queue, row.type, row.state, priority(row.priority), row.attempts, due,
        *([brief(row.reserved_at), _holder(row.reserved_by)] if held else ()), safe(row.payload, CUT),
    ]  # fmt: skip


def _holder(token: str | None) -> str:
    """Whom a claim's token names: `HOST:PID THREAD`; a token that isn't the daemon's own is shown as it is."""
    host, _, rest = (token or "-").partition(":")
    pid, _, rest = rest.partition(":")
    thread = rest.partition(":")[2].rpartition(":")[0]
    return f"{host}:{pid} {thread}" if thread else token or "-"


def _facts(row: JobRow, now: datetime, policy_attempts: int) -> list[tuple[str, object]]:
    due = f"{stamp(row.available_at)} ({away((row.available_at - now).total_seconds())})"
    limit = row.max_attempts or f"{policy_attempts} (its queue's)"
    return [
        ("id", row.id), ("queue", row.queue), ("type", row.type), ("state", row.state),
        ("priority", priority(row.priority)), ("attempts", f"{row.attempts} of {limit}"), ("crashes", row.crashes),
        ("lease ends" if row.reserved_by else "due", due),
        ("reserved by", row.reserved_by or "nobody"), ("reserved at", stamp(row.reserved_at) or "-"),
        ("unique key", row.unique_key or "-"), ("enqueued", stamp(row.created_at)),
        ("payload", payload_text(row)), ("last error", row.last_error or "-"), ("history", past_attempts(row.history)),
    ]  # fmt: skip


def past_attempts(history: list[dict[str, Any]]) -> str:
    """The history of a row for people, the oldest attempt first; what it doesn't tell is a dash."""
    return "\n".join(_past_attempt(entry) for entry in history) or "-"


def _past_attempt(entry: dict[str, Any]) -> str:
    attempt, outcome, start, end, worker = (entry.get(key, "-") for key in PAST)
    error = f": {entry['error']}" if entry.get("error") else ""
    return f"attempt {attempt} {outcome}{error}\n  {start} to {end}\n  by {worker}"
