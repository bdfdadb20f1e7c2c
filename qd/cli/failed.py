"""`qd failed`: dead letters. Ids are the jobs'. May import: the modules of cli, the protocol's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from qd.cli import ending, paging
from qd.cli.context import Cli, pass_cli
from qd.cli.jobs import each, past_attempts
from qd.cli.shape import brief, job_json, payload_text, priority, stamp
from qd.cli.terminal import CUT, confirm, facts, plural, progress, safe, show_json, table
from qd.duration import spell
from qd.errors import NotFound, Refused
from qd.outcome import Reason
from qd.store.protocol import FailedRow, Filter

REASONS = tuple(reason.value for reason in Reason)
BATCH = 1000
"""Dead letters purged in one transaction."""

HEADERS = ("ID", "QUEUE", "TYPE", "REASON", "ATTEMPTS", "FAILED", "ERROR")


@click.group()
def failed() -> None:
    """Dead letters: jobs that were given up. Each keeps its job's id."""


def filters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the filters that dead letters have."""
    for option in (
        click.option("--older-than", type=paging.Duration(), help="Only those that failed longer ago than this."),
        click.option("--reason", type=click.Choice(REASONS), help="Only with this reason."),
        click.option("--type", "job_type", metavar="TYPE", help="Only of this type."),
        paging.queue,
    ):
        function = option(function)
    return function


everything = click.option("--all", "everything", is_flag=True, help="All, or all that the filters mean.")


@failed.command("list")
@filters
@paging.pages("this dead letter's own id (`id` in --json)")
@pass_cli
def list_failed(
    cli: Cli, queue: str | None, job_type: str | None, reason: str | None, older_than: float | None,
    limit: int, after: int | None, as_json: bool,
) -> None:  # fmt: skip
    """List dead letters, the newest first."""
    where = Filter(queue, job_type, reason=reason, older_than=older_than, after=after, limit=limit + 1)
    rows, following = paging.page(cli.store.list_failed(where), limit, lambda row: row.id)
    if as_json:
        show_json({"failed": [job_json(row) for row in rows], "next": following})
        return
    table(HEADERS, [_cells(row) for row in rows], right=(0, 4))
    paging.say_more(following)


@failed.command()
@paging.job_id
@paging.as_json
@pass_cli
def show(cli: Cli, job_id: int, as_json: bool) -> None:
    """Show a job's newest dead letter, with traceback and history."""
    row = cli.store.failed(job_id)
    _say_others(row)
    if as_json:
        show_json(job_json(row))
        return
    facts(_facts(row))


@failed.command()
@paging.job_ids
@everything
@filters
@paging.yes
@pass_cli
def retry(
    cli: Cli, job_ids: tuple[int, ...], everything: bool, queue: str | None, job_type: str | None,
    reason: str | None, older_than: float | None, yes: bool,
) -> int:  # fmt: skip
    """Bring dead letters back with fresh attempts. Prints the id of each."""
    where = _chosen(job_ids, everything, Filter(queue, job_type, reason=reason, older_than=older_than))
    if where is None:
        return each(job_ids, lambda job_id: _retry_one(cli, job_id))
    return _on_all(cli, where, yes, "retry", cli.store.retry_failed)


@failed.command()
@paging.job_ids
@everything
@filters
@paging.yes
@pass_cli
def delete(
    cli: Cli, job_ids: tuple[int, ...], everything: bool, queue: str | None, job_type: str | None,
    reason: str | None, older_than: float | None, yes: bool,
) -> int:  # fmt: skip
    """Delete dead letters for good."""
    where = _chosen(job_ids, everything, Filter(queue, job_type, reason=reason, older_than=older_than))
    if where is None:
        return each(job_ids, lambda job_id: _delete_one(cli, job_id))
    return _on_all(cli, where, yes, "delete", cli.store.delete_failed)


@failed.command()
@click.option("--older-than", type=paging.Duration(), help="Instead of the configuration's `retention.failed`.")
@paging.yes
@pass_cli
def purge(cli: Cli, older_than: float | None, yes: bool) -> None:
    """Delete dead letters that have outlived their retention. Daemons do it by themselves."""
    age = cli.config.retention.failed if older_than is None else older_than
    count = cli.store.count_failed(Filter(older_than=age))
    act = f"delete {plural(count, 'dead letter')} that failed more than {spell(age)} ago"
    if not confirm(count, act, yes or older_than is None):
        return
    purged = 0
    with progress("purging", count) as done:
        while batch := cli.store.purge_failed(age, BATCH):
            purged += batch
            done(batch)
    click.echo(f"deleted {plural(purged, 'dead letter')}")


def _chosen(job_ids: tuple[int, ...], everything: bool, where: Filter) -> Filter | None:
    """The filter of an act on many; None: it is on the ids.

    Raises:
        click.UsageError: neither or both are named.
    """
    if job_ids and (everything or where != Filter()):
        raise click.UsageError("name either ids, or --all with or without filters")
    if not job_ids and not everything:
        raise click.UsageError("name at least one id, or --all with or without filters")
    return where if everything else None


def _on_all(cli: Cli, where: Filter, yes: bool, act: str, do: Callable[[int, int], object]) -> int:
    """Does an act on exactly the dead letters that were there when it began.

    Those that others took meanwhile are passed over; those that are refused are said and stay.
    """
    rows = cli.store.failed_ids(where)
    if not confirm(len(rows), f"{act} {plural(len(rows), 'dead letter')}", yes):
        return ending.DONE
    acted, refused = 0, 0
    with progress(act, len(rows)) as done:
        for job_id, failed_id in rows:
            try:
                do(job_id, failed_id)
                acted += 1
            except NotFound:
                pass  # another was quicker: what was asked for is done, or no longer ours to do
            except Refused as error:
                ending.say(error)
                refused += 1
            done(1)
    click.echo(f"{'retried' if act == 'retry' else 'deleted'} {plural(acted, 'dead letter')}")
    return ending.COULD_NOT if refused else ending.DONE


def _retry_one(cli: Cli, job_id: int) -> str:
    _say_others(cli.store.failed(job_id))
    return str(cli.store.retry_failed(job_id))


def _delete_one(cli: Cli, job_id: int) -> str:
    _say_others(cli.store.failed(job_id))
    cli.store.delete_failed(job_id)
    return f"deleted the dead letter of job {job_id}"


def _say_others(row: FailedRow) -> None:
    if row.others:
        click.echo(
            f"job id {row.job_id} has {plural(row.others + 1, 'dead letter')}: this is the newest, "
            f"which failed at {brief(row.failed_at)}",
            err=True,
        )


def _cells(row: FailedRow) -> list[object]:
    error = safe((row.error or "").strip(), CUT)
    return [row.job_id, row.queue, row.type, row.reason, row.attempts, brief(row.failed_at), error]


def _facts(row: FailedRow) -> list[tuple[str, object]]:
    return [
        ("job", row.job_id), ("queue", row.queue), ("type", row.type), ("reason", row.reason),
        ("priority", priority(row.priority)), ("attempts", row.attempts), ("unique key", row.unique_key or "-"),
        ("enqueued", stamp(row.created_at)), ("failed", stamp(row.failed_at)),
        ("last claim", row.reserved_by or "-"), ("payload", payload_text(row)), ("error", row.error or "-"),
        ("traceback", row.traceback or "-"), ("history", past_attempts(row.history)),
    ]  # fmt: skip
