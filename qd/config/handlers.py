"""The handlers that a configuration names: modules imported, programs added.

What a module raises becomes a problem of the configuration's line.
May import: the pure modules, the registry, loading and the model.
"""

from __future__ import annotations

from collections.abc import Callable

from qd.config.model import Config
from qd.config.problems import Origin, Path
from qd.errors import ConfigError, HandlerError
from qd.loading import import_module, look_here
from qd.registry import REGISTRY, Handler, Registry


def load_handlers(config: Config, registry: Registry | None = None) -> Registry:
    """Imports `handlers.modules` and adds `handlers.commands`.

    A module that is already imported is not run again: its code changes with a restart. A module
    that fails leaves no handler behind, so that it can be tried again after it was mended.

    Args:
        registry: where `@qd.handler` has registered; None takes the process's.

    Returns:
        A registry of its own, for this configuration.

    Raises:
        ConfigError: with every module that can't be imported and every command whose name is taken.
    """
    source = REGISTRY if registry is None else registry
    if config.handlers.modules:  # else nothing of ours is looked for, and nothing there may be taken for another's
        look_here()
    problems: dict[Path, str] = {}
    for n, name in enumerate(config.handlers.modules):
        if (problem := import_module(name, source)) is not None:
            problems["handlers", "modules", n] = problem
    loaded = source.copy()
    for name, command in config.handlers.commands.items():
        try:
            loaded.add(Handler(name, argv=command.argv))
        except HandlerError as error:
            problems["handlers", "commands", name] = str(error)
    if problems:
        origin = config._origin
        raise ConfigError([origin.problem(path, problems[path]) for path in sorted(problems, key=_by_line(origin))])
    return loaded


def _by_line(origin: Origin) -> Callable[[Path], int]:
    return lambda path: origin.line(path) or 0
