"""`qd check`: time limits of the configuration that contradict each other.

What can't be at all is refused by the configuration itself; here is what can, but hardly is meant.
May import: config, protocol's values.
"""

from __future__ import annotations

from collections.abc import Iterator

from qd.config.model import Config, DatabaseConfig
from qd.duration import spell
from qd.store.protocol import Finding


def of_limits(config: Config) -> Iterator[Finding]:
    """What contradicts, or how long jobs have."""
    troubles = [*_of_stop(config)]
    if config.database.driver == "mysql":
        troubles += [*_of_seconds(config.database), *_of_leases(config)]
    yield from (Finding("warn", "time limits", trouble) for trouble in troubles)
    if troubles:
        return
    longest = max((queue.timeout for queue in config.queues.values()), default=0.0)
    yield Finding(
        "ok", "time limits",
        f"jobs may run {spell(longest)}; at a stop they have {spell(config.shutdown.grace)}, then are handed back",
    )  # fmt: skip


def _of_leases(config: Config) -> Iterator[str]:
    database = config.database
    slowest = database.connect_timeout + database.statement_timeout
    for name, queue in config.queues.items():
        if queue.lease < 2 * slowest:
            yield (
                f"queues.{name}.lease is {spell(queue.lease)}, but a connect and a statement may take "
                f"{spell(slowest)}: after a broken connection a renewal can come too late. Raise it to twice that, "
                "or lower database's timeouts"
            )


def _of_seconds(database: DatabaseConfig) -> Iterator[str]:
    """The driver counts whole seconds, and has one limit for an answer, that of a connect included."""
    statement, connect = database.statement_timeout, database.connect_timeout
    for key, limit in (("statement_timeout", statement), ("connect_timeout", connect)):
        counted = max(1, int(limit))
        if counted != limit:
            yield f"database.{key} is {spell(limit)}, but the driver counts whole seconds: it is {counted}s. Write that"
    if connect > statement:
        yield (
            f"database.connect_timeout is {spell(connect)}, but no answer is waited for longer than "
            f"database.statement_timeout, {spell(statement)}: lower the one, or raise the other"
        )


def _of_stop(config: Config) -> Iterator[str]:
    """A job that may be started once only, and that a stop doesn't wait for."""
    grace = config.shutdown.grace
    for name, queue in config.queues.items():
        if queue.max_attempts == 1 and queue.timeout > grace:
            yield (
                f"a job of queue {name} may run {spell(queue.timeout)} and be started once (max_attempts: 1), but a "
                f"stop waits {spell(grace)}: what runs longer then becomes a dead letter (interrupted). Raise "
                "shutdown.grace, with the unit's TimeoutStopSec, or max_attempts"
            )
