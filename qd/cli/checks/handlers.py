"""`qd check`: whether the handlers load, what they expect, and what they cost in series and child processes.

May import: config, metrics, executors, protocol's values.
"""

from __future__ import annotations

from collections.abc import Iterator

from qd.config.model import Config
from qd.duration import spell
from qd.errors import ConfigError
from qd.registry import Registry
from qd.store.protocol import Finding


def of_handlers(config: Config) -> Iterator[Finding]:
    """Whether the handlers can be loaded, and what they name."""
    from qd.config.handlers import load_handlers

    try:
        registry = load_handlers(config)
    except ConfigError as error:
        for problem in error.problems:
            yield Finding("FAIL", "handlers", problem)
        return
    types = registry.names()
    if types:
        yield Finding("ok", "handlers", f"{len(types)}: {', '.join(types)}")
    else:
        yield Finding("warn", "handlers", "there is none: name modules or commands in `handlers:`")
    yield from _of_declared_queues(config, registry)
    yield from of_series(config, registry)
    yield from of_children(config, registry)


def of_series(config: Config, registry: Registry) -> Iterator[Finding]:
    """Whether the metrics have every pair of queue and handler."""
    from qd.metrics.series import LIMIT, collapsed, series_count

    if collapsed(config, registry):
        yield Finding(
            "warn", "metrics",
            f"{len(registry.names()):,} handlers x {len(config.queues):,} queues would be "
            f"{series_count(config, registry):,} series of qd_job_attempts_total, over {LIMIT:,}: only the pairs that "
            "handlers declare (queues=[...]) have their own, the rest is under _other",
        )  # fmt: skip


def of_children(config: Config, registry: Registry) -> Iterator[Finding]:
    """Whether a child process for handlers can be started, where any would run in one."""
    from qd.clock import monotonic
    from qd.events import Events
    from qd.executors import Children
    from qd.executors.children import modules_of

    in_processes = any(worker.executor == "process" for worker in config.workers)
    in_quarantine = any(queue.quarantine == "child" for queue in config.queues.values())
    if not any(handler.function for handler in registry.handlers()) or not (in_processes or in_quarantine):
        return
    children, began = Children(modules_of(config.handlers.modules, registry), None, Events()), monotonic()
    child = children.start("check", lambda: None)
    if child is None:
        use = "executor: process" if in_processes else "quarantine: child"
        yield Finding("FAIL" if in_processes else "warn", "children", f"{use} needs them: {children.problem}")
        return
    size = child.memory()
    child.retire()
    took = f"a child process for handlers starts in {spell(round(monotonic() - began, 2))}"
    yield Finding("ok", "children", took if size is None else f"{took} and takes {size >> 20} MiB of memory")


def _of_declared_queues(config: Config, registry: Registry) -> Iterator[Finding]:
    for handler in registry.handlers():
        unknown = [queue for queue in handler.queues or () if queue not in config.queues]
        if unknown:
            yield Finding(
                "warn", "handlers", f"{handler.name} expects queues that `queues:` lacks: {', '.join(unknown)}"
            )
