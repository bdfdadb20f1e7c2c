"""`qd check`: whether the handlers load, what they expect, and what they cost in series and child processes.

May import: config, loading, unit, unit_files, metrics, executors, protocol's values.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from qd.cli.checks.unit import home_of, python_path
from qd.cli.checks.unit_files import Unit
from qd.config.model import Config
from qd.duration import spell
from qd.errors import ConfigError
from qd.loading import LOOKED_FOR
from qd.registry import Registry
from qd.store.protocol import Finding


def of_handlers(config: Config, units: Sequence[Unit] = ()) -> Iterator[Finding]:
    """Whether the handlers can be loaded, and what they name.

    Args:
        units: the services that run this configuration.
    """
    from qd.config.handlers import load_handlers

    try:
        registry = load_handlers(config)
    except ConfigError as error:
        for problem in error.problems:
            yield Finding("FAIL", "handlers", f"{problem}{_elsewhere(problem, units)}")
        return
    yield from _of_folders(config, units)
    types = registry.names()
    if types:
        yield Finding("ok", "handlers", f"{len(types)}: {', '.join(types)}")
    else:
        yield Finding("warn", "handlers", "there is none: name modules or commands in `handlers:`")
    yield from _of_declared_queues(config, registry)
    yield from of_series(config, registry)
    yield from of_children(config, registry)


def _elsewhere(problem: str, units: Sequence[Unit]) -> str:
    """Where the services look for a module that isn't found from here."""
    homes = {unit.name: home_of(unit) for unit in units if LOOKED_FOR in problem}
    away = [f"{name} looks in {home}: cd there first" for name, home in homes.items() if not _is_here(home)]
    return "".join(f"; {words}" for words in away)


def _of_folders(config: Config, units: Sequence[Unit]) -> Iterator[Finding]:
    """Modules that are found only because the check runs in their folder, where a service doesn't look."""
    here = os.path.realpath(os.curdir)
    if not _is_here(sys.path[0]):  # Python looks here for a reason of its own, or not at all
        return
    tops = {name.partition(".")[0] for name in config.handlers.modules}
    found = {top for top in tops if _is_from(here, top)}
    for unit in units:
        searched = [os.path.realpath(home_of(unit)), *python_path(unit)]
        lacking = sorted(top for top in found if not any(_is_in(folder, top) for folder in searched))
        if lacking and not _is_here(home_of(unit)):
            yield Finding(
                "warn", "handlers", f"{', '.join(lacking)} may have been found only because {here} is the folder that "
                f"the check runs in; {unit.name} looks in {home_of(unit)}: cd there and check again"
            )  # fmt: skip


def _is_from(folder: str, module: str) -> bool:
    """Whether a loaded module stands right in this folder."""
    loaded = sys.modules.get(module)
    places = [getattr(loaded, "__file__", None), *getattr(loaded, "__path__", [])]
    stems = (os.path.join(folder, f"{module}."), os.path.join(folder, module, ""))
    return any(f"{os.path.realpath(place)}/".startswith(stems) for place in places if place)


def _is_in(folder: str, module: str) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in (module, f"{module}.py"))


def _is_here(folder: str | Path) -> bool:
    return os.path.realpath(folder) == os.path.realpath(os.curdir)


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
