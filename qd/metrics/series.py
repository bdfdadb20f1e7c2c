"""Which series exist: a number that depends on the configuration alone, never on the jobs.

Counters of every configured queue, registered handler and outcome exist from the start, so that
the first failure after a start is a rise from 0 and no alert misses it. Where queues times
handlers would pass LIMIT series, only the pairs that handlers declare get their own.
May import: catalogue, config, registry.
"""

from __future__ import annotations

from qd.config.model import Config
from qd.metrics.catalogue import OTHER, OUTCOMES
from qd.registry import Registry

LIMIT = 5000
"""Series of qd_job_attempts_total that a full table may have."""

Pair = tuple[str, str]
"""A queue and a job type."""


def series_count(config: Config, registry: Registry) -> int:
    """Series of qd_job_attempts_total if every queue met every handler."""
    return len(config.queues) * len(registry.names()) * len(OUTCOMES)


def collapsed(config: Config, registry: Registry) -> bool:
    """True where that would be too many: pairs that no handler declares are counted under `_other`."""
    return series_count(config, registry) > LIMIT


def pairs(config: Config, registry: Registry) -> list[Pair]:
    """The pairs that have series of their own, and for each queue, `_other` among them, type `_other`."""
    few = not collapsed(config, registry)
    own = [
        (queue, handler.name)
        for queue in config.queues
        for handler in registry.handlers()
        if few or queue in (handler.queues or ())
    ]
    return [*own, *((queue, OTHER) for queue in queues(config))]


def queues(config: Config) -> tuple[str, ...]:
    """The values of the label `queue`, each once."""
    return tuple(dict.fromkeys((*config.queues, OTHER)))


def types(registry: Registry) -> tuple[str, ...]:
    """The values of the label `job_type`, each once."""
    return tuple(dict.fromkeys((*registry.names(), OTHER)))


def clean(text: object) -> str:
    """A label's value that any page can carry: valid UTF-8, at most 200 characters.

    For what doesn't come from names that a pattern bounds: a worker's name, the server's version.
    """
    return str(text)[:200].encode("utf-8", "replace").decode("utf-8")
