"""`qd enqueue`: a job, or many of the same, from a shell.

May import: client, the store's checks of a new row, the modules of cli, the pure modules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import repeat
from pathlib import Path

import click

from qd.cli import paging
from qd.cli.context import Cli, pass_cli
from qd.cli.terminal import plural, progress
from qd.errors import BadInput, ConnectionLost, QdError, Refused
from qd.job import PRIORITIES, NewJob
from qd.payload import RawJson, checked
from qd.store.callers.enqueue import ROWS
from qd.store.callers.new_row import new_row

MOST = 10_000_000


class Moment(click.ParamType):  # type: ignore[type-arg]
    """ISO 8601 with a zone."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The moment; one without a zone could be meant anywhere."""
        if isinstance(value, datetime):
            return value
        text = str(value)
        try:
            moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
        except ValueError:
            self.fail(f"{text!r} is not ISO 8601; write it like 2026-02-03T04:05:06+01:00", param, ctx)
        if moment.utcoffset() is None:
            self.fail(f"{text!r} has no zone; add Z or an offset like +01:00", param, ctx)
        return moment


class Priority(click.ParamType):  # type: ignore[type-arg]
    """A name or a number."""

    name = "priority"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        spellings = PRIORITIES | {str(number): number for number in PRIORITIES.values()}
        number = spellings.get(str(value).lower())
        if number is None:
            allowed = ", ".join(f"{name} ({number})" for name, number in PRIORITIES.items())
            self.fail(f"{value!r}; allowed: {allowed}", param, ctx)
        return number


@click.command()
@click.argument("job_type", metavar="TYPE")
@click.argument("payload", metavar="[PAYLOAD|@FILE|-]", required=False)
@click.option("--queue", default="default", show_default=True, metavar="QUEUE")
@click.option("--delay", type=paging.Duration(), metavar="DURATION", help="Due after this, like 30s, 5m, 1h30m.")
@click.option("--at", type=Moment(), metavar="TIME", help="Due then: ISO 8601 with a zone, like 2026-02-03T04:05:06Z.")
@click.option(
    "--priority", type=Priority(), default="normal", show_default=True, help="urgent, high, normal, low, or 0 to 3."
)
@click.option("--unique", metavar="KEY", help="At most one job of the queue has this key; prints the id of its holder.")
@click.option("--max-attempts", type=click.IntRange(1, 65535), help="Instead of the queue's.")
@click.option("--count", type=click.IntRange(1, MOST), default=1, help="Enqueue N of it; prints N ids, one a line.")
@click.option("--force", is_flag=True, help="Also into a queue that the configuration doesn't know.")
@pass_cli
def enqueue(
    cli: Cli, job_type: str, payload: str | None, queue: str, delay: float | None, at: datetime | None,
    priority: int, unique: str | None, max_attempts: int | None, count: int, force: bool,
) -> None:  # fmt: skip
    """Put a job of TYPE into a queue; prints its id.

    The payload is any JSON value, kept byte for byte: as an argument, from a file (@FILE) or from
    stdin (-). Without one it is {}.
    """
    if delay is not None and at is not None:
        raise click.UsageError("--delay and --at exclude each other")
    if unique is not None and count > 1:
        raise click.UsageError("--unique and --count exclude each other: there would be one job only")
    job = NewJob(job_type, read_payload(payload), queue, delay or 0, priority, unique, max_attempts)
    try:
        new_row(job, at)
    except BadInput as error:
        raise click.UsageError(str(error)) from error
    wrong = None if force else cli.unknown_queues((queue,))
    if wrong is not None:
        raise Refused(f"{wrong}; nothing was enqueued. Add the queue there, or say --force")
    try:
        _send(cli, job, at, count)
    except BadInput as error:  # only the server could tell: the payload is larger than it takes
        raise Refused(f"{error}; nothing was enqueued") from error


def read_payload(given: str | None) -> RawJson | None:
    """The payload that an argument means, as it is.

    Raises:
        click.UsageError: it can't be read, or isn't JSON.
    """
    if given is None:
        return None
    try:
        if given == "-":
            text = sys.stdin.buffer.read().decode()
        elif given == "@":
            raise click.UsageError("payload: name a file behind the @, or write - for stdin")
        elif given.startswith("@"):
            text = Path(given[1:]).read_bytes().decode()
        else:
            text = given
        return RawJson(checked(text))
    except OSError as error:
        raise click.UsageError(f"payload: {given[1:]}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"payload: not UTF-8 at byte {error.start}") from error
    except BadInput as error:
        raise click.UsageError(f"{error}{_quoting(given)}") from error


def _quoting(given: str) -> str:
    """Advice for what shells do most often: they take the quotes away."""
    return "" if given == "-" or given.startswith("@") else """; quote it for the shell, like '{"to": 7}'"""


def _send(cli: Cli, job: NewJob, at: datetime | None, count: int) -> None:
    from qd.client import Client

    with Client(cli.config) as client:
        if count == 1:
            _print([client.enqueue(
                job.type, job.payload, queue=job.queue, delay=job.delay, priority=job.priority,
                unique_key=job.unique_key, max_attempts=job.max_attempts, at=at,
            )])  # fmt: skip
            return
        if at is not None:
            job.delay = max(0.0, (at - cli.opened.now()).total_seconds())
        with _what_went_in(count) as count_in, progress("enqueuing", count, prints=True) as done:

            def told(ids: list[int]) -> None:
                _print(ids)
                count_in(len(ids))
                done(len(ids))

            client.enqueue_many(repeat(job, count), each=told)


@contextmanager
def _what_went_in(count: int) -> Iterator[Callable[[int], None]]:
    """Says of an act that is cut short how many jobs stand; yields what is told of each part that does."""
    told = 0

    def more(ids: int) -> None:
        nonlocal told
        told += ids

    try:
        yield more
    except (KeyboardInterrupt, QdError) as error:
        unsure = isinstance(error, KeyboardInterrupt) or (isinstance(error, ConnectionLost) and error.outcome_unknown)
        if told or unsure:
            rest = f"; the next {min(ROWS, count - told):,} may be, too" if unsure and told < count else ""
            click.echo(f"qd: {told:,} of {plural(count, 'job')} are enqueued, whose ids were printed{rest}", err=True)
        raise


def _print(ids: list[int]) -> None:
    click.echo("\n".join(map(str, ids)))
